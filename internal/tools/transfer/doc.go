// Package transfer copies one object from one vfs.FS to another, and compares
// two files.
//
// # A name is whole or absent
//
// [File] writes into a temporary name beside the final one and renames it when
// the contents are safe and the attributes are set. A reader of the final
// name sees the old file or the new one. On any error, cancellation included,
// the temporary is removed, or named in the error ([LeftError]), but for one from which a later
// copy can go on (Target.Part). What a killed process leaves behind is recognised by
// its name ([IsTemp]).
//
// Where files are made whole ([vfs.Maker]), as in a bucket, there is no temporary: the attributes are settled first, and the last step
// publishes the copy. It can be read back only then: one that differs is removed. A copy that is broken off goes on by what
// the destination has of it (Mark.Whole): it is given all bytes again, and takes those that it lacks. Holes become zeros.
//
// # Safe before it has a name
//
// Unstable writes are committed. The destination owns the dirty bytes ([Target]): it sends
// again what its server has forgotten, so this package looks at no verifier. A chunk goes to
// the destination in its buffer, without a copy. Where names and attributes need no sync, a file
// that fits one chunk is written by one FILE_SYNC write, which saves a round trip: between two
// servers it costs READ there, and CREATE, WRITE, SETATTR, RENAME here.
//
// On a [vfs.Syncer] the attributes are set first. Then one commit makes data and attributes
// stable. The caller syncs directories, since it knows when a directory is done. It also
// syncs links and nodes: each such sync may be one of the whole disk, which many can share.
//
// # Going on in a large file
//
// With Target.Part the copy of a file that was broken off, or whose process was killed, is gone on with by a
// later one. From time to time the bytes without a gap from the beginning are committed, and then a [Mark]
// says so: what it says is there after a crash of either end. The temporary of a mark stays where the copy
// ends because its context does, or for want of an answer; after any other error it is removed.
//
// The later copy goes on only if source and temporary are what they were. The source is known by file system, file
// id, size, mtime and ctime. The temporary is known by file system, file id, owner, mode, one name and length. Its
// first and last bytes up to the mark are compared with the source's. What is behind the mark is cut off. In any
// doubt the temporary is removed, and the copy begins anew. The bytes between are not compared, but with
// Options.Verify: then all of the source is read, and hashed, and the whole copy is read back.
//
// # Read back
//
// With Options.Verify the copy is committed, and then read back from the server. Of a directory of
// this host the bytes come from the disk, if the host can be told to forget its pages
// ([vfs.Dropper]). Through LOCALIO they come from the page cache, which the server reads from as
// well.
//
// # The bytes that were there
//
// The source's size, mtime and ctime from before the first read must be those
// after the last one. If not, the copy is made again once, and then fails with
// [ErrChanged]. A change since the listing, whose attributes may stand for those before the first
// read, costs one more copy. A source that ends before its size, and a peer that returns
// counts that cannot be true, are errors.
//
// A source that has only grown is copied as it was at first, with its first mtime (Result.Grew).
// Otherwise a log could never be copied. It counts as grown if all bytes up to its first size could
// be read. The first and the last of them must still equal the copy's.
//
// A file near by whose size is 0 is read to its end: those of /proc have bytes all the same. So
// is one of /sys, whose size is a page whatever it holds. It is known by what no file on a disk has
// together: that size, no storage of its own, and a file system that has none.
//
// If only the ctime has changed, somebody has linked the source or changed its rights. Then
// source and copy are compared once more, byte for byte, and the copy is kept if they are
// the same.
//
// If the source is gone, its name is looked up again, and the file that has the name now is
// copied. If there is none, that is [ErrVanished]. So a name that existed throughout is never
// missing, whatever was renamed over it.
//
// # Lists and extended attributes
//
// Access control lists come along where both ends are a [vfs.ACLer] and the destination takes
// them. In a mode with a list the group's bits are the list's mask. Where the list does not come
// along, the copy gets the rights that the list gives to the group itself ([Lists]). At no moment
// anybody has more rights to the copy than to the source ([Options.SetAll]): not by lists that the
// destination's directory gives to what is made in it either. To ask for a list costs a call,
// beside the reads. It is made for directories, and for what gives its group or others rights by its
// mode, until the file system is found to have no lists. So the list of a file whose mode has rights
// of the owner alone gives nobody anything, and is neither copied nor counted.
//
// Extended attributes come along where both ends are a [vfs.Xattrer]. Those of users are set
// before owner and mode, which may forbid it, and capabilities behind them. A source on this host
// says by one more system call that a file has none, and then nothing else is asked.
//
// # What does not come along
//
// What the destination refuses, or has no room for, is lost, and no failure.
// A server may claim to have set attributes that it has not set. So the attributes in its
// answer are compared with what was asked for. [Lost] says what is missing.
//
// # Many in flight
//
// Each worker reads a chunk, waits for its turn to hash it, and writes it. So reads run ahead
// of writes, and a file takes at most one chunk of memory for each worker. A source that keeps its bytes
// in pieces ([Piecer]) is read piece by piece instead, each once. The client's
// limiter decides how many calls its server gets at once. There are enough workers to keep it
// busy: few where the bytes are near ([vfs.Near]), up to [MaxWindow] elsewhere. A [Budget]
// bounds all files together.
//
// # Holes
//
// A source that uses less storage than its size is asked for its holes ([vfs.HoleSeeker]).
// Without that power, blocks of zeros count as holes. A file system that has it, and then cannot
// tell ([vfs.ErrNotSupp]), has none. Holes are not written. A file without
// holes is not searched for zeros. NFSv3 has no call for holes: if a server reports all bytes
// of a file as used, its copy has no holes, whatever the server's disk has.
package transfer
