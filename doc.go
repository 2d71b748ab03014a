// Package nfsbox opens files on an NFS server as a program opens files on disk,
// without a mount and without root.
//
//	c, err := nfsbox.Dial(ctx, "nfs://filer/export/projects")
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//	tree, err := c.Tree(ctx)
//	if err != nil {
//		return err
//	}
//	data, err := fs.ReadFile(tree, "plan/budget.csv")
//
// [Dial] understands the URLs of libnfs, whose users need to change nothing
// ([ParseURL] lists the arguments), and returns a [Client]. [Client.FS] is a
// [vfs.FS]: handles, attributes, reads and writes at offsets, listings that
// stream and can be taken up again. [Client.Tree] makes an io/fs.FS of it, for
// everything that Go's library does with those, and adds what package os has to
// write and change files.
//
// # Where the root is
//
// A URL may name a directory anywhere below an export, or a file. FS is rooted
// at the directory, or at the one that holds the file, whose name in it is then
// [Client.Target]. The object itself need not exist, so that a URL can say where
// something shall be created. A program that hands FS on looks at Target, or
// takes [Client.Tree], which is an error unless the URL names a directory. Otherwise a
// name that is missing makes the directory above public.
//
// # What is between the program and the server
//
// Writes that need not be stable at once are gathered, sent behind the caller's
// back, and kept until the server has promised that they are on its disk: Commit
// and Close of a File return that promise, and an error of any write comes out
// there at the latest. A server that restarts in between is sent what it has
// lost.
//
// Reads go to the server, straight into the caller's buffer. Of an open file that
// is read from one end to the other the next bytes are asked for ahead, as far as
// that is measured to pay (readahead in the URL, [WithReadAhead]). They are kept
// for that open file alone, and dropped when the server's attributes say that the
// file has changed, or when they are half a minute old. So a program that opens a file sees
// what was written before another closed it, as with any NFS client.
//
// Attributes and listings are not cached. A tree of package iofs remembers for
// three seconds where directories are, and looks the last name of a path up each
// time; FS itself looks up what it is asked to.
//
// # Where the server is on this host
//
// If the server is an nfsbox on this host, it hands out the files themselves, as
// descriptors, and they are read, written and made stable without the network
// (localio in the URL, [WithLocalIO]). Both find out in the background, by a socket
// in a directory that both see and by a number that goes over the network; no
// address is looked at, so that it works between containers which share the
// directory, and not through a forwarded port to another host. The server judges
// as ever, and takes files back when they are removed or their rights change. What
// cannot be had so, and all else, goes over the network, in the middle of a file if
// need be, and nobody notices but [Client.Stats], which says why.
//
// # Who is asking
//
// The server takes our word for the user (AUTH_SYS): that of the process, or of
// uid= and gid= in the URL, or of [WithCaller]. Other views, for other users,
// come from FS().As and share the connection. Kerberos and TLS are not built
// yet, and a URL that asks for them is refused rather than opened without.
//
// # How long a call goes on
//
// Calls end with their context, at once; the connection lives on. Beyond that
// they are soft, as nfs(5) has it: one that has got no reply after timeo times
// retrans+1, which is three minutes unless the URL or [WithTimeout] says
// otherwise, fails with an error that Is os.ErrDeadlineExceeded if there was a
// connection, and syscall.EIO in any case (syscall.ETIMEDOUT with softerr). Dial
// fails with the former alone where a server takes connections and does not answer.
// A server that restarts within that time goes unnoticed: lost connections are made
// anew, the name being resolved again. With hard in the URL, or [WithHard], a
// call goes on until its context ends. Soft is the default because a library's
// caller has a context and can be told, where a mount has programs that expect
// files never to fail; what was written is kept, and its error is told, either
// way.
//
// # Errors
//
// What a server answers is a vfs.Status; errors.Is(err, fs.ErrNotExist) and the
// like hold. A call whose reply was lost is sent again under the same number. If
// it changes something, and the server, which ought to recognize the number, may
// have executed it twice, then success is success; but an error such as "file
// exists" may be about what the first execution has made. Where something that
// was known before decides, it does (a renamed object is found at its new name, a
// link leads to its file, an exclusive create has its verifier). Elsewhere the
// error Is vfs.ErrUnknownOutcome as well as the status: neither success nor
// failure is claimed that nobody knows. Package documentation of
// internal/client/nfsclient/v3 has the table. A handle whose object is gone is
// vfs.ErrStale, at once; a path is looked up again by package iofs.
//
// # How much at once
//
// One Client serves any number of goroutines. It begins with one connection and
// makes more as it needs them, four at most (nconnect, [WithConnections]), so
// that small calls do not queue behind large ones. How many calls of each class
// (metadata, reads, writes) are under way is limited by what has proved best for
// the server, which is found out all the time; max-load, or [WithMaxLoad], sets a
// number instead. A server that says that it is busy is asked again, at growing
// intervals.
//
// # What can be seen
//
// [Client.Stats] counts calls, errors and times by procedure, the state of the
// limits, and what is buffered; it is made for JSON. [WithLogger] tells of a
// server that does not respond, and when it does again. [Diagnose] goes the way
// of Dial step by step, for those who want to know why it fails.
//
// # Below the file system
//
// [Client.Raw] gives the connection and the credential to programs that call
// procedures themselves, with package proto/nfs3. What only some servers can do
// is found with vfs.As: [ACLer].
package nfsbox
