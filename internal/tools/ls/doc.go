// Package ls lays out listings as ls(1) does: long lines, columns, sizes that people read,
// sorted, and in the colours of LS_COLORS.
//
// It gets entries, and gives text; where they come from, and how many of them are kept, the
// command decides. Names come from a peer, which may be hostile: everything here passes them
// through progress.Clean before a terminal sees them.
package ls
