// Package transfer copies one object from one vfs.FS to another, and compares
// two files.
//
// # A name is whole or absent
//
// [File] writes into a temporary name beside the final one and renames it when
// the contents are safe and the attributes are set. A reader of the final
// name sees the old file or the new one. On any error, cancellation included,
// the temporary is removed; what a killed process leaves behind is recognised by
// its name ([IsTemp]).
//
// # Safe before it has a name
//
// What was written unstable is committed. Dirty bytes have one owner, and that is the
// destination ([Target]): what a server forgets it sends again, and here no verifier is
// looked at. A chunk is handed over to it in its buffer, and not copied. A file that fits
// one chunk is written with a single FILE_SYNC write instead, one round trip fewer: from an
// NFS server it costs READ there, and CREATE, WRITE, SETATTR, RENAME here.
//
// On a [vfs.Syncer] attributes are set first, and the file's data and attributes
// made stable together, with one commit. Names are not: the caller syncs
// directories, because it knows when it is done with one; nor are the attributes
// of links and nodes, which cost a sync of a whole disk that many can share.
//
// # Read back
//
// With Options.Verify the copy is committed first. What is read back then comes
// from the server, or, where the destination is a directory of this host, from
// the disk, as far as the host can be told to forget the pages ([vfs.Dropper]).
// Files of LOCALIO are in the page cache that the server itself reads from; there
// that cache is what is compared.
//
// # The bytes that were there
//
// The source's size, mtime and ctime from before the first read must be those
// after the last one. If not, the copy is made again once, and then fails with
// [ErrChanged]. A source that ends before its size, and a peer that returns
// counts that cannot be true, are errors.
//
// A source that has only grown is kept as it was at first, with the mtime of then
// (Result.Grew): a log would never be copied else. It is taken to have only grown
// if all bytes up to its first size could be read, and its first and last ones of
// them are the copy's still.
//
// A source whose ctime alone has changed, since somebody has linked it or changed its
// rights, is compared with the copy once more, byte for byte, and kept if it is the
// same.
//
// Of a source that is gone the name is looked up again, and the file is copied that
// has it now; if none has, that is [ErrVanished]. So nothing is missing that had its
// name throughout, whatever was renamed over it.
//
// # What does not come along
//
// Access control lists are not copied. Under one, the group's bits of a mode are
// those of the list's mask; the copy gets what the list gives to the group itself, so
// that nobody has more rights than before ([Options.PlainMode]). A list costs a call,
// which is made while the contents are read, where the mode gives the group rights
// and until the file system is found to have no lists.
//
// Extended attributes are not copied either. Those of a user, and capabilities, are told
// of a source that is a directory of a Linux host: one more system call for a file.
//
// A server may say that it has set attributes and not have set them: the attributes
// that come with the answer are compared with what was asked for. [Lost] says what is
// missing, for whatever reason.
//
// # Many in flight
//
// Each of a few workers reads a chunk, waits for its turn to hash it, and writes it:
// reads run ahead of writes, and a file takes a chunk of memory for each worker at
// most. There is no second queue, and nothing is learnt here: the client's limiter decides how
// many calls its server gets at once. The workers are enough to keep it busy, few where the
// bytes are near ([vfs.Near]) and [MaxWindow] elsewhere. A [Budget] bounds all files together.
//
// # Holes
//
// If a source uses less storage than its size, its holes are asked for
// ([vfs.HoleSeeker]), and where it cannot tell, blocks of zeros count as holes.
// They are not written. A file without holes is not searched for zeros. NFSv3 has no
// question for holes: what comes from a server that reports all of a file's bytes
// as used comes without holes, whatever the server's disk has.
package transfer
