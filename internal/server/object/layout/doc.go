// Package layout is how a store of objects lies in a directory: which file has which object, and
// what is in it. object/dir keeps such a store with the kernel's own calls, object/files in any
// vfs.FS. A store that one of them has made, the other one opens.
//
// # Files
//
// Each object is a file of its own: its content, and after it a [Trailer] of 64 bytes with its
// length and checksums. Without this program, head -c -64 gives the content.
//
// A key's last segment is the file's name, its other segments are directories. In between is one
// that the name chooses by its first characters ([Layout].Fanout), its bucket. It is marked by a
// "=", which no key contains:
//
//	.nfsbox-store                  the marker: says what this is, in three lines
//	.nfsbox-writer                 who writes to it now, if it is one process at a time
//	sha256/=9f/9f86d081884c...     the object "sha256/9f86d081884c..."
//	snapshots/=20/2026-11-21       the object "snapshots/2026-11-21"
//	=sn/snapshots                  the object "snapshots", which does not clash
//	sha256/=9f/.tmp-...            what is not finished, or was left behind
//
// The beginning of a name spreads checksums evenly, and keeps the order of keys: so a page of a
// listing reads only the directories that it shows ([Layout.List]).
//
// # What is not part of a store
//
// No segment of a key begins with a dot, or has an upper case letter, or a "+". So names such as
// .snapshot, .nfs0001 and lost+found are nothing of a store's: a listing passes them by. Where a
// directory or an object of the store has its place, and something else is there (a symbolic
// link, a pipe, a file for a directory), objects may be hidden. Then a listing is
// [object.ErrForeign], and not short. If it is one object's place, the error says so
// ([object.ForeignError]), and a listing can go on behind it. So it is with a directory that may not be read ([object.HiddenError]).
package layout
