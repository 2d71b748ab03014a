// Package nfsbox opens files on an NFS server as a program opens files on disk,
// without a mount and without root.
//
//	c, err := nfsbox.Dial(ctx, "nfs://filer/export/projects")
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//	root, _, err := c.FS().Root(ctx)
//	if err != nil {
//		return err
//	}
//	data, err := fs.ReadFile(iofs.New(ctx, c.FS(), root), "plan/budget.csv")
//
// [Dial] understands the URLs of libnfs, whose users need to change nothing
// ([ParseURL] lists the arguments), and returns a [Client]. [Client.FS] is a
// [vfs.FS]: handles, attributes, reads and writes at offsets, listings that
// stream and can be taken up again. Package vfs/iofs makes an io/fs.FS of it, for
// everything that Go's library does with those.
//
// # Where the root is
//
// A URL may name a directory anywhere below an export, or a file. FS is rooted
// at the directory, or at the one that holds the file, whose name in it is then
// [Client.Target]. The object itself need not exist, so that a URL can say where
// something shall be created.
//
// # What is between the program and the server
//
// Reads go to the server, straight into the caller's buffer. Writes that need
// not be stable at once are gathered, sent behind the caller's back, and kept
// until the server has promised that they are on its disk: Commit and Close of
// a File return that promise, and an error of any write comes out there at the
// latest. A server that restarts in between is sent what it has lost. Nothing
// else is cached; what another client has changed is seen by the next call.
//
// # Who is asking
//
// The server takes our word for the user (AUTH_SYS): that of the process, or of
// uid= and gid= in the URL, or of [WithCaller]. Other views, for other users,
// come from FS().As and share the connection. Kerberos and TLS are not built
// yet, and a URL that asks for them is refused rather than opened without.
//
// # Errors
//
// What a server answers is a vfs.Status; errors.Is(err, fs.ErrNotExist) and the
// like hold. Calls end with their context. A connection that is lost is made
// anew, and what is safe to repeat is repeated; what is not (a rename, say) comes
// back as an error that Is vfs.ErrUnknownOutcome, if it may have been executed.
package nfsbox
