// Package handlemap makes file handles for localfs where the kernel gives none: it numbers
// the objects of a tree, and keeps their numbers and names in a file.
//
// It is for containers and processes without privilege, and for file systems without
// handles. A handle is
//
//	byte     version: 2
//	[8]byte  the map's nonce
//	uint32   slot, big endian
//	uint64   serial: slots are used again, serials are not
//
// It survives restarts, and renames that are made through the file system which uses the
// map ([Map.Expect], [Map.Unbind]). An object that was renamed behind its back is searched
// for in the directories where it was. If no name of it is there, its handle is stale, and
// remains so. An object that gets the inode number of another one is told from it by what
// the file system says of generations ([Identifier]).
//
// # The file
//
// The map is in memory, about 80 bytes for each object. Behind it is a log of records
// (record.go), which also has the names: they are read back by offset. When more of the
// log is dead than alive it is written anew ([Map] waits meanwhile, about a second for each
// million names). A map without a state directory has its log in memory.
//
// A record gets a log sequence number, [LSN]. A handle must not leave the server before
// WaitStable(LSN) has returned, and a rename is noted before it is made. Concurrent calls
// share the sync. If a sync fails, the map gives out no handles any more.
//
// # Objects that local programs remove
//
// Nobody tells the map of those. When it has grown by a quarter, a sweep looks for every
// object, some at a time ([Map.Sweep]).
//
// # Lock order
//
// Map.moving, Map.mu, log.mu. Map.moving is held for reading while a rename is under way.
// A search that has not found an object takes it for writing, and looks once more: only
// then is the object given up.
package handlemap
