// Package mounts tells localfs what is mounted below the root of an export, and makes the
// read-only clones of mounts (doubles) that LOCALIO hands out files through.
//
// [Table] is for a tree that has the mounts below its root as parts: it gives each a key
// that lasts, and holds it open. [Double] is a clone of one mount, through which a file can
// be handed to another process that must not change it.
//
// # Locks within
//
// Table.mu is held for reading while a descriptor of a mount is used. Double.mu may be
// taken under it.
package mounts
