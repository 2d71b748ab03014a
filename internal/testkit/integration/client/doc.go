// Package client holds the tests of what nfsbox.Dial gives, over a real server:
// loopback or a network in memory, files in memory or on disk, and a proxy between
// the two ends that loses, delays, repeats and forges replies (faults_*). They dial
// as any program does; tests of one room stand beside the room.
//
// One run takes one to two minutes, most of it waiting. NFSBOX_SOAK=1 makes it an
// hour or more: a hundred killed servers, ten million directory entries, two
// thousand rounds of local I/O.
package client
