// Package store keeps pieces of files of servers in a directory of this host, in the manner of
// FS-Cache and cachefilesd. What is in it is a copy: the server has the original, and whatever
// is missing, damaged or in doubt is fetched again.
//
// # What is on the disk
//
// Below the directory that the user names, the store has one of its own (Name). cachefilesd and
// the kernel delete what they do not know, so the two may share a directory only by name.
//
//	head        magic and version; without it the directory is not ours
//	lock        locked (flock(2)) by the process that owns the store
//	index       what is in the store, oldest use first; there while no process has it open
//	index.old   the index from when the store was last opened: after a crash its order is used
//	stats       counters, over all runs
//	data/XX/Y   an entry, by the hash of its key
//	trash/      entries that are being removed
//
// An entry is one version of one file: its key (server, FSID, handle, the user's mark), the size,
// times and change number that it had, and of each granule whether it is there, with its
// CRC-32C. The checksums begin with a number that is random for each entry. So a granule of
// another entry, or of an earlier version, never passes.
//
// # Crashes
//
// A granule is written before the table says so. Where there are checksums nothing is synced: if
// the power fails, the table may be on the disk without the granule, which then fails its check at
// the first read. Without checksums the data is synced first. The header and each part of
// the table have checksums of their own. An entry whose header or table is not whole is
// dropped. After a crash the directory is listed anew. An index is written when the removals before it are
// stable, so that nothing it lacks comes back.
//
// # Bounds
//
// What the entries take is counted before it is written, in blocks of 4 KiB, with one more for each
// entry. No write makes it exceed Options.Size: the writer itself first removes the oldest entries.
// One goroutine keeps a sixteenth of Size free, so that few writers have to. It also culls as cachefilesd
// does, by the free blocks and files of the disk: below cull until run is reached again. Below stop
// nothing is written. Entries in use stay, and pinned ones as far as they take no more than their share of
// Size.
//
// A store whose disk fails reports it once, and is then empty to its users: no method of an
// Entry returns an error.
//
// Locks: Entry.mu before Store.mu. Files are opened and read under neither; but the file of a new entry is
// made, and one that goes is renamed, under Store.mu, and tables are written under Entry.mu.
package store
