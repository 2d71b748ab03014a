// Package iofs makes a tree of a [vfs.FS] an [io/fs.FS], so that everything in
// Go that reads files can read it: http.FileServerFS, fs.WalkDir, archive/tar,
// html/template. io/fs has no methods to write and change files; those here are like
// the ones of package os.
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
// io/fs has no contexts, so an [FS] keeps the one that it was made with. When that
// ends, every call fails, also those of open files. [FS.WithContext] makes a view for
// one request, and [FS.As] one for another caller. Views are cheap.
//
// # Files
//
// A [File] is like an os.File: a reader, a writer, a seeker, and, concurrently, a
// ReaderAt and a WriterAt. What was written is on the server's disk when Sync or
// Close has returned without an error. They return the first error of any write.
// What nfsbox.Dial returns keeps the bytes until then, and sends them again if the
// server restarts. A raw file system does not; Sync and Close then fail if bytes may
// be lost. File does not read ahead.
//
// # How NFS differs from a disk
//
//   - O_APPEND asks for the size and writes there: two steps, between which
//     another client can do the same. Programs on several hosts that append to one
//     file need a lock, or a file each. Files of one client take turns.
//   - An NFSv3 server is not told that a file is opened. It checks rights at each
//     READ and WRITE, so a refusal comes from those, not from OpenFile.
//   - There is no umask: modes are used as they are given.
//   - A change whose reply was lost may or may not have been made; the error then
//     Is vfs.ErrUnknownOutcome. Creating with O_EXCL is safe even then.
//   - Each change of a name is on the server's disk when the call returns. FS.Sync
//     is for directories of this host. To replace a file so that no reader ever sees
//     a part of it: write another, Sync, Rename.
//
// # What is remembered
//
// A path is walked by one LOOKUP for each of its parts. A program that opens many
// files would look up the same directories over and over. So an FS caches where
// directories are, from look-ups and listings: up to a few thousand of them, for three
// seconds, the minimum of Linux's client. The last part of a path is always looked up,
// and attributes are not cached. fs.WalkDir therefore costs the pages of each
// directory's listing and little else; Info of its entries makes no call.
//
// What the tree and its views rename or remove they forget at once. If another
// client renames a directory and puts another in its place, paths may lead through
// the old one for three seconds more. A call that fails on a cached way, as not found,
// stale or forbidden, is tried again without the cache. What is cached for one caller
// is not used for another.
//
// # Listings
//
// [FS.Entries] lists a directory of any size in the memory of a page.
// [FS.EntriesFrom] goes on where a listing has stopped, also in another run of the
// program: [Pos] can be stored as text. ReadDir(n) of an open directory needs little
// memory, too. [FS.ReadDir] sorts, so it holds all entries.
//
// # Symbolic links
//
// They are followed, up to [vfs.MaxSymlinks] in a path, but never out of the tree.
// A link to an absolute path, or with more ".." than there are directories above it, is
// an error, as for os.Root. The file system below is not asked what ".." means.
// [FS.Lstat], [FS.ReadLink], [FS.Remove], [FS.RemoveAll] and [FS.Rename] work on the
// link itself.
//
// # Names
//
// io/fs promises that names are valid UTF-8; NFS does not. A byte that is not valid is shown as
// U+201B and two hexadecimal digits, "caf‛E9", as rclone does. Such a name leads to the file.
// U+201B itself is shown twice. So no file is missing from a listing, a walk or an archive, and
// names stay different. Targets of links are not translated.
//
// # Errors
//
// They are *fs.PathError, or *os.LinkError where there are two names, around a
// [vfs.Status]: errors.Is finds them under fs.ErrNotExist and the like, and under
// the syscall.Errno of the same meaning, such as syscall.ESTALE, ENOTEMPTY or
// EDQUOT. Too many links are syscall.ELOOP.
//
// # From io/fs
//
// [From] is the way back: it makes an io/fs.FS a vfs.FS that nobody changes, so that a server
// can serve it.
//
//	//go:embed site
//	var site embed.FS
//	...
//	err := nfsserver.ListenAndServe(ctx, "", export.Export{Path: "/", FS: iofs.From(site)})
//
// A handle means a path, and holds as long as the process lives, whatever comes and goes
// there. So do positions in listings. After a restart both are refused, and clients begin
// again. Up to 1,048,576 objects can be in use. What is listed, and nothing more, is at most
// half of them; then listings come without handles.
//
// io/fs has no owners: everything is root's, with the permissions that it says, and without
// set-id bits. So a file of mode 0600 is for callers with user 0 alone, and fstest.MapFS
// needs modes. A file without a time has that of From. Symbolic links are shown if the FS has
// fs.ReadLinkFS, else what they lead to. os.DirFS follows links out of its directory: serve
// the FS of an os.Root, or vfs/osfs, where others can make links. Names that are not valid
// paths of io/fs are left out.
//
// Files are read by io.ReaderAt or io.Seeker. Those that have neither, as in a zip.Reader,
// are read whole, and kept in 64 MiB of memory; a larger one is [vfs.ErrFBig]. io/fs lists a
// directory from its beginning only, so it is read once for every 4096 entries. A directory of
// more than 4,194,304 names cannot be listed.
package iofs
