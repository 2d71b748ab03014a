// Package backup takes a snapshot of a tree (package snapshot), of which an earlier one may have most.
//
// # What is read
//
// The tree is joined by name with the earlier snapshot (package delta), which costs a listing of each
// directory. An object is taken from the snapshot, and nothing asked for it, if size, mtime, ctime and file id
// are what they were, unless its times are so near to the beginning of the earlier one, or later, that a
// change behind them may have no trace. The [Summary] counts what was read, and why.
//
// A file is as it was from one moment to another if its size, mtime and ctime are the same before and after
// it was read. If not, it is read again, and then kept and marked ([snapshot.Entry].Changed).
//
// Lists and extended attributes are asked for where the earlier snapshot could not see them, or the ctime is another.
//
// # What is not there
//
// An item that vanished before its turn is a note. One that fails is an error, and then the snapshot is
// incomplete: it is kept, and says so. It is no base ([Latest]). What of an earlier snapshot is damaged is told, and read
// from the tree. The new snapshot does not rely on it: if the same bytes are stored again, they take the place of the damaged ones.
// With Options.Verify all is read back before it is relied on, and so what is damaged is found.
//
// Where nothing is met at all, and an earlier snapshot has something, there is no snapshot ([ErrEmpty]): mostly something is not mounted.
//
// # What packs waste
//
// A file that has not changed, and lies in a pack of which the base uses less than half, is copied to a new pack ([repack]), so that the old one
// is in no use once older snapshots are forgotten. The source is not asked for it.
//
// # Going on
//
// What was done so far is noted in the store, each 128 MiB and when the backup ends early (docs/decisions/0097). The next
// backup of the name takes it ([Partial]), by the same judgement as the base, over which it is laid ([earlier]).
//
// # Beside a prune
//
// [Leased] holds a lease meanwhile (package lease). If that is lost the backup ends, and begins again under another one.
//
// # Memory
//
// What packages walk, delta and snapshot have, [maxLinked] objects with several names, and for each file that
// is read what snapshot.Writer.Data takes.
package backup
