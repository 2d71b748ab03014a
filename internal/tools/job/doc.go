// Package job copies and verifies trees, between any two file systems.
//
// # What a copy promises
//
// Every object of the source is in the destination, with its contents, type,
// permissions and times, or it is among the reported errors: a failing item does
// not stop the others. Files appear under their names when they are complete and
// stable (package transfer). A directory is made with mode 0700 and gets its own
// mode and times when everything in it is done. If there was no space for something in
// it, or no answer, it stays closed until a run finishes it. The one that the copy becomes
// has its mode at once, so that a job that is broken off leaves none there that others
// cannot enter.
// Hard links stay hard links, whatever they are names of, as far as the table of them
// reaches ([maxLinked]).
//
// # Nothing leaves the destination
//
// The destination is reached by handles of directories that the job has made or
// looked at, and names that vfs.CheckName passes. No path is ever resolved
// there: a symbolic link in the destination, old or slipped in meanwhile, is an
// object that is in the way, never one that is followed. A copy into its own
// source is refused ([ErrIntoItself]). So is a link that would replace what it leads to
// ([transfer.ErrSame]).
//
// Where the destination takes two names for one, no name replaces what the run has made
// under another ([Made]): it fails, and is told.
//
// # What is in use, dead or full
//
// What vanished before its turn is a note and no failure ([KindVanished]), and of a
// directory nothing is left that is empty; what only grew is kept as it was at first
// ([KindGrew]). If the source as a whole is gone, or another is in its place, the job
// ends once ([ErrGone]): that is asked when something in it has vanished. What had
// vanished and is there again in the end has failed: somebody took the source, or a
// part of it, away for a while. What changed each time has failed ([KindChanged]). A
// server that gives no answer any more ends the job once ([ErrSilent]), and so does a
// destination that is full ([ErrFull]).
//
// # Doing it again
//
// With a record (CopyOptions.Record) every finished file is noted once its name
// is stable. The same job, started again after whatever ended it, lists the
// source again and passes over files that are noted, unchanged since, and still
// there: what has the copy's size, time and file id. What has another id is compared, as
// long as the ids of the destination are seen to last. If somebody has
// changed their owner or mode, they get them again; if he has made two of them one, or one
// two, the links are as in the source again. What cannot be preserved is counted as in the
// first run. A run that verifies compares them all: nothing else tells a copy of which
// somebody has changed bytes and put back the time. The record is append-only: entries carry
// checksums, and a torn tail is cut off.
//
// # Memory
//
// What is kept is what package walk keeps, the files in flight, the table of
// hard links, and 16 bytes for each noted file; each has a named bound.
package job
