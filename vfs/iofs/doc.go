// Package iofs makes a tree of a [vfs.FS] an [io/fs.FS], so that everything in
// Go that reads files reads it: http.FileServerFS, fs.WalkDir, archive/tar,
// html/template.
//
//	client, err := nfsbox.Dial(ctx, "nfs://filer/export/www")
//	...
//	root, _, err := client.FS().Root(ctx)
//	http.Handle("/", http.FileServerFS(iofs.New(ctx, client.FS(), root)))
//
// # The context
//
// io/fs has no contexts, so an FS keeps the one that it was made with: when that
// ends, every call fails. WithContext makes a view for one request.
//
// # Symbolic links
//
// They are followed, but never out of the tree: a link to an absolute path, or
// one with more ".." than there are directories above it, is an error, as it is
// for os.Root. The server or disk below is not asked what ".." means.
//
// # Names
//
// io/fs promises that names are valid UTF-8; NFS does not. Entries whose names
// io/fs cannot say are left out of listings, and cannot be opened. Whoever needs
// every name works with [vfs.FS].
package iofs
