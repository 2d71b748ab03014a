// Package posixsuite holds a mounted directory to what programs expect of one: a table of checks that a mount passes
// whatever serves it and whatever lies between ([Run]), and operations by chance that have the same results there as in
// a directory of this host ([Twin]).
//
// A check sees a directory by one mount, by a second one of the same server (which is another client), and on the
// server's own host, as far as these are there. What it leaves out for want of one is said loudly.
//
// NFS is not POSIX. Where it promises less, so does the suite: what was closed is there for whoever opens it afterwards
// (close-to-open), names that others make are seen soon, and a lock carries the bytes that were written under it.
package posixsuite
