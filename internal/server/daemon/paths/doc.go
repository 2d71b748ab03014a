// Package paths tells the daemon what a path of this host leads to. It changes nothing but to
// make private folders. Which other users could change where a path leads, package way says.
//
// [Private] is a folder of the server's user alone.
//
// A [Place] tells a directory from others that are at the same path at another time. A
// [Nesting] finds the trees by which clients reach a path, also where a bind mount shows
// it elsewhere. For that it reads /proc/self/mountinfo.
package paths
