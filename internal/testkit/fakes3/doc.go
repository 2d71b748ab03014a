// Package fakes3 is a server with as much of S3 as a store of objects asks for: one bucket, whole objects
// and ranges of them, SHA-256, If-None-Match, listings by ListObjectsV2. It keeps all in memory.
//
// It has the faults that real servers have, by a seed ([Faults]), and those of servers that are none ([HTML],
// [Endless]). A signature has to be there, of the right key, and is not computed: a real server does that.
package fakes3
