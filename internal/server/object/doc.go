// Package object is the contract of object stores: whole objects under keys, with
// a fake in memory.
//
// # What a store is for
//
// A store keeps what is written once and read whole or in part: uploads by their
// checksum, the packs of a backup and the small objects that describe them. It
// has no rename, no append and no write in place, so that a directory and an S3
// bucket can both be one, and so that an object, once seen, is known. What needs
// more than that is a file system, and has package vfs.
//
// # What a store promises
//
// Atomicity. An object is there whole, or not at all. Nobody sees a part of one,
// however its Put ends: by an error, by its context, by a crash of the process or
// of the machine. Of several Puts to one key one wins, and its bytes are not mixed
// with those of others. With PutOptions.IfAbsent it is exactly one that succeeds.
//
// Read after write. Once Put or Delete has returned, every Get, Stat and List that
// begins then shows it, on whatever goroutine.
//
// Durability. Once Put or Delete has returned nil, no crash undoes it. More than
// that: what Get, Stat, List and [ErrExist] have shown, no crash undoes either.
// A caller that finds content in the store and therefore does not send it depends on
// that as much as the one that has sent it. A driver that makes an object visible
// before it is stable has to make calls wait that see it.
//
// Order. List is in the order of the keys' bytes, and a page begins behind any key
// one likes, existing or not. So a listing can be stopped, stored as one key, and
// taken up later, by another process, on another driver. What is there from the
// first page to the last is listed once; what comes or goes meanwhile, perhaps.
//
// Integrity. Every object has the SHA-256 of its content with it, computed from
// the bytes that were stored. A caller that reads an object to its end has it verified.
// There is one checksum in the contract, because with two somebody has to say
// what it means if they disagree; it is SHA-256 because content is named by it,
// because processors compute it at about the speed of a disk, because S3 compares
// it on arrival, and because everybody's tools can. A driver may keep a cheaper
// one for itself.
//
// # What a crash leaves
//
// Of Puts and Deletes that had not returned: any part of them, each whole or not
// at all. Of those cut off in the last step, ErrUnknownOutcome says the same. To
// do them again is safe. What a driver may leave besides, invisible through the
// contract, takes up room until the driver's own sweep removes it.
//
// # Keys
//
// Keys come from the wire, and end in file names and URLs; see [CheckKey] for what
// is let through. Slashes nest names for listing by prefix, and mean nothing else:
// "a" and "a/b" can both be objects.
//
// # Neighbours
//
// Package object/dir keeps a store in a local directory, package object/objecttest
// is the suite that every driver passes. A caller that stores by content uses
// [PutContent]. This package and its drivers know nothing of those above.
package object
