// Package inotify tells watchers of objects when the rights to one change, or one of its
// names goes: also when a program of this host does it (inotify(7)).
//
// It is for those that grant something on what an object was when they looked. A rename
// ends nothing, and neither do new data. What is changed through the file system that uses
// this package it says itself, at once ([Watches.Changed]); the kernel's event of it comes
// later, and finds nothing new.
//
// # A, B and A again
//
// An event does not say what has changed: the object is looked at anew, and compared with
// what it was. A local program may give a right and take it back before the event is read,
// and the comparison finds nothing. So each grant notes what it was made on
// ([Watches.Judged]): if that was B, the look at A finds a change.
//
// # Bounds
//
// The first watch makes the inotify instance, one descriptor, and a goroutine that reads
// it until Close. If the kernel's queue overflows, all watchers are told of everything.
//
// # Locks within
//
// Watches.mu is held while watchers are told, so they must not call back. Look is called
// without it.
package inotify
