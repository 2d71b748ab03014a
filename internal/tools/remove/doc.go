// Package remove removes objects, and directories with all that lies below them.
//
// # What it costs
//
// A directory costs its listing (package walk), and each object one REMOVE or RMDIR. Objects are
// removed behind the listing, [DefaultParallel] at once; a directory when all in it is gone.
// Memory is package walk's, for each of the [maxTrees] directories that are removed at once.
//
// # What is removed
//
// Only what lies below the directory that a [Target] names. Directories are entered by the
// handles that came with their names, never by paths. A symbolic link is removed, and not
// followed: what has the name when it is removed may be a link, and loses its name and no more.
// A directory that takes the place of another meanwhile is left, and reported. So is one of
// another file system, if Target.Within says which one it should be.
//
// What is gone before its turn is as it should be. All else that stays is reported to
// Options.Failed, once: of the directories above it nothing is told. A directory into which
// others put something while it is removed is listed again, [maxPasses] times in all; then it is
// [ErrFilled].
package remove
