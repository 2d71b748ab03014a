// Package paths tells the daemon what a path of this host leads to, and which other users
// could change that. It changes nothing but to make private folders.
//
// [Way] is every step by which a path is looked up, its symbolic links included. Whoever
// may replace one step decides what the path leads to: [ReplacedBy] and [SharedWith]
// name such users, by owner, mode and access list. [Private] is a folder of the server's
// user alone.
//
// A [Place] tells a directory from others that are at the same path at another time. A
// [Nesting] finds the trees by which clients reach a path, also where a bind mount shows
// it elsewhere. For that it reads /proc/self/mountinfo.
package paths
