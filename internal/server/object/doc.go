// Package object is the contract of object stores, for uploads by checksum and for
// backups: whole objects under keys. It has a fake in memory.
//
// # What a store is for
//
// A store keeps what is written once and read whole or in part: uploads by their
// checksum, the packs of a backup and the small objects that describe them. It has no
// rename, no append and no write in place. So a directory and an S3 bucket can both be
// a store, and an object does not change. Code that needs more uses package vfs.
//
// # What a store promises
//
// Atomicity. An object is there whole, or not at all. No call sees a part of one,
// however its Put ends: by an error, by its context, by a crash of the process or
// of the machine. Of several Puts to one key one wins, and its bytes are not mixed
// with those of others. With PutOptions.IfAbsent exactly one succeeds.
//
// Read after write. Once Put or Delete has returned, every Get, Stat and List that
// begins then shows it, on whatever goroutine.
//
// Durability. Once Put or Delete has returned nil, no crash undoes it. Nor does a crash
// undo what Get, Stat, List and [ErrExist] have shown: a caller that finds content in
// the store, and so does not send it, depends on it as much as the one that has sent it.
// If a driver makes an object visible before it is stable, it must make the calls that
// see it wait.
//
// Order. List is in the order of the keys' bytes, and a page begins after any key,
// existing or not. So a listing can be stopped, stored as one key, and taken up later,
// by another process, on another driver. What exists from the first page to the last is
// listed once; what comes or goes meanwhile may be listed or not.
//
// Integrity. Every object has the SHA-256 of its content, computed from the bytes that
// were stored. Reading an object to its end verifies it. The contract has only one
// checksum, so that two cannot disagree. It is SHA-256 because content is named by it,
// processors compute it at about the speed of a disk, S3 compares it on arrival, and
// common tools can compute it. A driver may keep a cheaper one for itself.
//
// # What a crash leaves
//
// Each Put and Delete that had not returned is done or not, never in part. The same
// holds after ErrUnknownOutcome. Repeating it is safe. A driver may leave files that are
// invisible through the contract: they take up space until the driver's own sweep
// removes them.
//
// # Keys
//
// Keys come from the wire, and end in file names and URLs; [CheckKey] says which are
// valid. Slashes nest names for listing by prefix, and mean nothing else: "a" and "a/b"
// can both be objects.
//
// # Neighbours
//
// Package object/layout is how a store lies in a directory; package object/dir keeps one in a
// directory of this host, package object/files in any vfs.FS, such as a server's; package
// object/objecttest is the suite that every driver passes. A caller that stores by content uses [PutContent].
package object
