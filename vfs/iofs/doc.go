// Package iofs makes a tree of a [vfs.FS] an [io/fs.FS], so that everything in
// Go that reads files reads it: http.FileServerFS, fs.WalkDir, archive/tar,
// html/template. What io/fs has no words for, writing and changing, is as it is
// in package os.
//
//	client, err := nfsbox.Dial(ctx, "nfs://filer/export/www")
//	...
//	tree, err := client.Tree(ctx)
//	...
//	http.Handle("/", http.FileServerFS(tree))
//	...
//	err = tree.WriteFile("news/today.html", page, 0o644)
//
// # The context
//
// io/fs has no contexts, so an [FS] keeps the one that it was made with: when
// that ends, every call fails, those of open files too. [FS.WithContext] makes a
// view for one request, and [FS.As] one for another caller. Views are cheap.
//
// # Files
//
// A [File] is what os.File is: a reader, a writer, a seeker, and, concurrently, a
// ReaderAt and a WriterAt. What was written is on the server's disk when Sync or
// Close has returned without an error, and the first error of any write comes
// back from there at the latest. Whether the bytes are kept until then, and sent
// again if the server restarts, is up to the file system below: what nfsbox.Dial
// returns does that. A raw one does not, and File says so if bytes may be lost.
// Nor does File read ahead.
//
// # How NFS differs from a disk
//
//   - O_APPEND asks for the size and writes there: two steps, between which
//     another client can do the same. Programs on several hosts that append to one
//     file need a lock, or a file each; Files of one client take turns.
//   - An NFSv3 server is not told that a file is opened. Rights are checked with
//     each READ and WRITE, and their want shows there, not in OpenFile.
//   - There is no umask: modes are as they are given.
//   - A change whose reply was lost may or may not have been made; the error then
//     Is vfs.ErrUnknownOutcome. Creating with O_EXCL is safe even so.
//   - Each change of a name is on the server's disk when the call returns, and
//     FS.Sync, for directories of this host, has nothing to do. To replace a file
//     so that nobody ever sees a part of it: write another, Sync, Rename.
//
// # What is remembered
//
// A path is walked by one LOOKUP for each of its parts, and a program that opens
// many files would ask for the same directories over and over. So an FS remembers
// where directories are, from look-ups and listings, up to a few thousand of them
// and for three seconds, which is what Linux's client trusts at the least. The
// last part of a path is always asked for, and attributes are never remembered.
// fs.WalkDir therefore costs the pages of each directory's listing and little
// else; Info of its entries costs nothing.
//
// What the tree and its views rename or remove they forget at once. If another
// client renames a directory, and puts another in its place, paths that lead
// through it may for three seconds lead through the old one, which then still
// exists. No error comes of it: what fails on a remembered way is tried again on
// one that is asked for anew. What is remembered for one caller is not used for
// another.
//
// # Listings
//
// [FS.Entries] lists a directory of any size in the memory of a page, and
// [FS.EntriesFrom] goes on where a listing has stopped, also in another run of the
// program: [Pos] has a text. The ReadDir(n) of an open directory is as frugal.
// [FS.ReadDir] sorts, for which it holds all entries.
//
// # Symbolic links
//
// They are followed, [vfs.MaxSymlinks] of them in a path, but never out of the
// tree: a link to an absolute path, or one with more ".." than there are
// directories above it, is an error, as it is for os.Root. The server or disk
// below is not asked what ".." means. [FS.Lstat], [FS.ReadLink], [FS.Remove],
// [FS.RemoveAll] and [FS.Rename] are about the link itself.
//
// # Names
//
// io/fs promises that names are valid UTF-8; NFS does not. A byte that is not is
// shown as U+201B and two hexadecimal digits, "caf‛E9", as rclone shows it, and
// such a name leads to the file. U+201B itself is shown twice. So no file is
// missing from a listing, a walk or an archive, and names stay different. Targets
// of links are not translated.
//
// # Errors
//
// They are *fs.PathError, or *os.LinkError where there are two names, around a
// [vfs.Status]: errors.Is finds them under fs.ErrNotExist and the like, and under
// the syscall.Errno of the same meaning, such as syscall.ESTALE, ENOTEMPTY or
// EDQUOT. Too many links are syscall.ELOOP.
package iofs
