// Package snapshot keeps states of a file tree in a store of objects (package object), and shows each as a
// read-only vfs.FS.
//
// # What is in the store
//
// A snapshot exists when its root object does, snapshots/NAME/ID: a line of JSON, and a line with the SHA-256
// of the first. The root leads to all else, by the SHA-256 of what is stored. So nobody can change a part of
// a snapshot without its root. ID is the time when the snapshot was begun, or a later one ([Writer.After]). All other objects are content
// (object.ContentKey):
//
//   - Pieces of files. Up to 256 KiB of data share packs of up to 32 MiB, and are ranges of them. Up to 8 MiB
//     are one object. More is cut by content (FastCDC: 1, 4 and 16 MiB), so that what is inserted
//     changes one or two pieces. Holes are noted, and not stored. What zstd makes a tenth smaller is stored so.
//   - Parts of the manifest: lines of JSON, by zstd, at most 8 MiB before that (the writer makes 1 MiB). A
//     line is an object under one of its names: attributes, where its bytes are, lists, extended attributes.
//   - Tables. Parts and packs have numbers, since a line is written before the pack that it leads to is full.
//     A table has the sums of 16384 numbers.
//
// The root also says how much of each pack the snapshot uses ([PackUse]), so that a later one can copy what is left in a pack of which
// most is waste ([Writer.Repack]).
//
// A checkpoint, partial/NAME, is a root of what a backup has done so far ([Writer.Checkpoint]). There is one a name, until the
// snapshot is there.
//
// # A directory
//
// The lines of a directory are together, in the order of their names, behind a head that says which directory
// it is. Small directories share parts. The entry of a directory says where its lines are: so a path is
// found by one read for each of its names, and fewer where neighbours share a part. The lines of a large directory fill parts of
// their own, and an index has the first name of each: another read. One that does not fit memory is sorted by
// runs in the store, which are merged when it ends.
//
// Names and targets are bytes: JSON has them as strings, or in base64 if they are not UTF-8.
//
// # Reading
//
// A handle is the place of a line. It is valid wherever the snapshot is opened. Listings go on from a cookie,
// which is a place as well. Nothing is kept but the last [heldBytes] of what was unpacked. A piece is
// read whole, and compared with its sum, before a byte of it is returned: a range of a pack is up to 256 KiB
// long, and a piece up to 16 MiB.
//
// # A store made by an enemy
//
// All lengths, numbers and names are checked before they are used. Nothing is unpacked beyond its bound. The
// head of a directory has to be of the path that led there, so no directory is in itself, or in two places;
// the exception are paths of more than vfs.MaxPath bytes, which heads do not have. An index has its parts in the order of their
// numbers, and a name has to be where a search would find it: so no name of a directory is met twice, however many numbers lead to the
// same lines. What has failed in a directory is not read again for it. What is
// missing, changed or breaks the format is a [DamagedError], which names the object.
//
// # Mending
//
// A [Writer] does not send what the store has already. It does not rely on what it was told is damaged ([Writer.Distrust]), and with a
// [Verifier] ([Writer.ReadBack]) on nothing that was not read back: what it has in memory takes the place of an object that
// two reads found damaged. Packs are not mended: what is read again goes into another one.
//
// # Memory
//
// A [Writer] has the lines of open directories ([maxHeld]), packs ([packsOpen]), files that are cut ([cutsOpen]
// buffers of 20 MiB), a file of up to 8 MiB for each call of Data, 32 bytes for each part and pack, and some 100 more for each pack. A
// [Snapshot] has [heldBytes], what is being fetched ([fetchUnits]), and what waits for another use ([spareBytes]). Neither grows with the tree otherwise.
package snapshot
