// Package job copies and verifies trees, between any two file systems.
//
// # What a copy promises
//
// A copy has every object of the source, with contents, type, permissions and times. What it
// does not have is reported as a failed item, noted as vanished, or counted as lost
// ([Summary]: owners, times, lists, extended attributes). A failed item does not stop the
// others. A file gets its name when its contents are complete and stable (package transfer).
//
// A new directory has mode 0700 until everything in it is done; then it gets its own mode,
// lists, extended attributes and times. If an item in it found no space, or got no answer, the directory stays closed
// until a later run finishes it. The directory that the copy becomes gets its mode at once,
// if this run made it: a job that is broken off does not lock others out of it.
//
// Hard links stay hard links, whatever type of object they name. In three cases they become
// objects of their own, and are counted: the destination makes no such links, more than
// [maxLinked] objects are open at once, or the source's attributes contradict each other from
// name to name.
//
// # Nothing leaves the destination
//
// The job names objects of the destination by handles of directories that it has made or
// looked at, and by names that vfs.CheckName passes. No path is resolved there. A symbolic
// link in the destination, old or slipped in meanwhile, is replaced or is an error: nothing
// is written through it. It is followed only to see whether it leads to the source.
//
// Two probes are made and removed outside the copy's own names: a temporary in the tree's
// root, of a sync before it makes something there, and in older directories where two names may be one ([Made]); and one in the
// destination, if it or a directory above it has the file id and ctime of the source. The
// directory gets its mtime again.
//
// A copy into its own source is refused ([ErrIntoItself]) before anything is made. For that both
// ends report file ids, and show what is above the destination. Where they do not (a server exports
// a part of a source on this host), it is found when the walk meets the copy. A link that would
// replace what it leads to is refused ([transfer.ErrSame]). A single file replaces no device, pipe
// or socket ([ErrSpecial]), into which cp(1) would write; in a tree it does, as it replaces a link:
// what is there is asked about for no file.
//
// Where a probe shows that the destination takes two names for one, no name replaces what
// the run has made under another: it fails, and is reported.
//
// # What is in use, dead or full
//
// An item that vanished before its turn is a note and no failure ([KindVanished]). If a
// directory vanished, its copy is removed if this run made it and it is empty. A file that
// only grew is kept as it was at first ([KindGrew]). A file that changed each time it was
// copied has failed ([KindChanged]).
//
// What comes into a directory after its listing is met nowhere else. So in the end each directory
// is looked up once more, up to [maxSeen] of them. If none has changed since its last listing, the
// listings are those of one moment, the beginning of this look: every name of that moment was
// met. Copy lists those that have changed again, copies what is new, and looks again, [maxLooks]
// times in all. Those that have changed then, and of Verify all, are counted ([KindDirChanged]).
//
// Is a copy complete if directories change on? Always to say no would make each copy of a mail spool
// a failure, and hide the one that is. Always to say yes would call complete what may lack a file
// that was there all the time. Such a file is moved out of a directory before it is listed, into
// one that has been. What was made since the last listing may be missing in any copy of a tree in
// use, as the copy might have ended before. So the changed directories are listed a last time. If
// what is in them and not in the copy is newer than the listing, they are noted. If it is older, it
// was moved, and they have failed.
//
// A directory that vanished may have been moved: where a handle follows a name, that looks the
// same. So in the end the source is searched for those, by file id. One that is found, and was
// not copied there by then, has failed: what is below it may be in no copy.
//
// If items have vanished, the job asks after every [maxUnsure] of them, and at the end,
// whether the source is still there. If it is gone, or another directory is in its place,
// the job ends with one error ([ErrGone]). If the copy itself was moved or replaced, that is
// an error in the end ([ErrMoved]). An item that had vanished and is back in the end
// has failed: somebody took the source, or a part of it, away for a while.
//
// A server that has stopped answering ends the job with one error ([ErrSilent]), and so does
// a destination that is full ([ErrFull]). Single failures of these kinds are items'.
//
// # Doing it again
//
// With a record (CopyOptions.Record) every finished regular file is entered once its name is
// stable. The same job, started again, lists the source again. It skips files that are recorded and
// unchanged since, if the destination has them with the copy's size, time and file id. Links,
// devices and directories are made again or found as they should be.
//
//   - A file of another id is compared, as long as the destination's ids are seen to last.
//   - A copy whose owner, mode, list or extended attributes somebody has changed gets them again. It is copied
//     again if it would get set-id bits or capabilities: its bytes may be another's.
//   - Two copies that somebody has made one, or links that somebody has split, are as in the
//     source again, for up to [maxLinked] objects.
//   - What a skipped file has lost (owner, mode, times, list, extended attributes) is
//     counted again.
//   - With Verify all of them are compared. Nothing else finds a copy whose bytes were changed
//     and whose time was put back.
//
// A file larger than CopyOptions.Large, unless workers copy it, is noted in a file beside the record while it is copied:
// each time that a quarter of such a size more is stable in the destination. A run that ends early, or is killed, leaves its
// temporary, which no run removes that may go on there (package transfer). The bytes that are there count as skipped.
// If the source has no such file any more, or the job was begun anew, the temporary is removed when all is copied. At
// most [maxParts] files are noted.
//
// Entries are only appended, and carry checksums. A file whose entry is bad is copied again, and
// what follows the last good entry is cut off. When a run goes on it makes an index from the
// entries, in files beside the record (package index).
//
// # Sync
//
// With CopyOptions.Sync the destination becomes what the source is. Directories that both have are
// joined (package delta), and what is the same by both listings stays: nothing is asked for it, but
// for the targets of symbolic links. The same are files of one size and time, links with one target,
// nodes of one type and number. Owners, modes, and the times of what has no contents, are set again
// where they differ. A file that would get set-id bits or capabilities is made anew: bytes that were not compared get none, and
// neither, with SyncOptions.Wary, another owner. Names are looked up only before they are made in a directory that was there:
// the destination may take them for others, which stay. A run that goes on by a record joins
// directories likewise, and so asks nothing for a file that the record has.
//
// With SyncOptions.Delete, what the source lacks is deleted (package remove), in a pass of its own when
// all is copied. Nothing is deleted if an item has failed, nor more than a given number ([ErrTooMany]). Nothing
// is copied either if the source is empty, or has none of the first names that the destination lists
// ([ErrEmpty], maxTried), unless DeleteOptions.FromEmpty allows it. In that pass each name
// is missing from a second listing and from a LOOKUP. A fault of the source ends it. Then what had to
// give way to a deletion is copied. With CopyOptions.DryRun no call is made that changes anything.
//
// # Memory
//
// All that is kept has a named bound:
//
//   - what packages walk and delta keep, and the files in flight (parallel, maxChunks),
//   - directories of the source (maxSeen), and names of objects with several names (maxLinked),
//   - the record's index (package index: 64 MiB, however many files it has),
//   - names made in a directory that folds names (maxMade) or was not tried out (maxEarly),
//   - names that a verified directory did not list (maxUnlisted),
//   - finished files that wait for a sync (maxUnsynced, maxUnsyncedNodes), and large ones that are copied
//     in part (maxParts),
//   - failures that are held back (maxTight, maxUnsureHeld, maxGoneDirs).
package job
