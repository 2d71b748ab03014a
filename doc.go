// Package nfsbox opens files on an NFS server like files on disk, without a mount and without
// root.
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
// [Dial] understands the URLs of libnfs unchanged ([ParseURL] lists the arguments), and returns
// a [Client]. [Client.FS] is a [vfs.FS]: handles, attributes, reads and writes at offsets, and
// listings that stream and can be resumed. [Client.Tree] makes an io/fs.FS of it, for Go's
// library, with the methods of package os for writing and changing files.
//
// # Where the root is
//
// A URL may name a directory anywhere below an export, or a file. FS is rooted at the directory,
// or at the one that holds the file, whose name in it is then [Client.Target]. The object itself
// need not exist, so that a URL can say where to create something. A program that hands FS on
// checks Target, or uses [Client.Tree], which fails unless the URL names a directory. Otherwise
// a mistyped name would expose the directory above.
//
// # Between the program and the server
//
// Writes that need not be stable at once are collected, and sent in the background. They are kept
// until the server has confirmed that they are on its disk. Commit and Close of a File wait for
// that. They return the error of any earlier write, if no call has before. If the server restarts
// in between, lost writes are sent again.
//
// Reads go to the server, straight into the caller's buffer. When an open file is read in sequence,
// the next bytes are asked for ahead, as far as that helps, which is measured (readahead in the
// URL, [WithReadAhead]). They are kept for that open file alone. They are dropped when the server's
// attributes show that the file has changed, or after half a minute. So a program that opens a file
// sees what was written before another closed it, as with any NFS client.
//
// Attributes and listings are not cached. A tree of package iofs remembers for three seconds
// where directories are, and looks the last name of a path up each time. FS itself makes the
// look-ups that it is asked for.
//
// # A server on this host
//
// If the server is an nfsbox on this host, it hands out descriptors of files. Files are then read,
// written and made stable without the network (localio in the URL, [WithLocalIO]). Client and
// server find out in the background, by a socket in a directory that both see and by a number sent
// over the network. Addresses are not compared. So it works between containers that share the
// directory, and not through a port forwarded to another host. The server checks rights as ever,
// and revokes descriptors when files are removed or their rights change. All else goes over the
// network, in the middle of a file if need be. Only [Client.Stats] shows it, with the reason.
//
// # The caller
//
// The server trusts the user ID that the client sends (AUTH_SYS): that of the process, of uid=
// and gid= in the URL, or of [WithCaller]. Views for other users come from FS().As and share the
// connection. Kerberos and TLS are not built yet. A URL that asks for them is refused, and never
// opened without.
//
// # How long a call is tried
//
// Calls end with their context, at once; the connection lives on. Otherwise they are soft, as in
// nfs(5): a call without a reply after timeo times retrans+1 fails. That is three minutes unless
// the URL or [WithTimeout] says otherwise. The error Is syscall.EIO (syscall.ETIMEDOUT with
// softerr), and also os.ErrDeadlineExceeded if there was a connection. Dial's error Is only the
// latter if a server takes connections and does not answer. A server that restarts within that
// time goes unnoticed: lost connections are made again, and the name is resolved again. With
// hard in the URL, or [WithHard], a call goes on until its context ends. Soft is the default
// because callers of a library have contexts and handle errors, while programs on a mount expect
// files never to fail. Either way written data is kept, and its error is returned.
//
// # Errors
//
// Errors are found with errors.Is; their types are internal.
//
//   - A server's answer is a [vfs.Status], and Is fs.ErrNotExist and the like.
//   - [vfs.ErrStale]: the handle's object is gone. Package iofs looks the path up again.
//   - [vfs.ErrBusy]: the server was busy (NFS3ERR_JUKEBOX) until the patience or the context ended.
//   - [vfs.ErrNoAnswer]: the server did not answer in time.
//   - [vfs.ErrUnknownOutcome]: a change was sent, and no reply says what became of it.
//   - The context's error, if it ended the call.
//
// A call whose reply was lost is sent again under the same number, by which the server should
// recognise it. If it changes something, the server may have executed it twice. Then success is
// success. But an error such as "file exists" may come from the first execution. It is resolved
// where earlier knowledge decides: a renamed object is at its new name, a link leads to its file,
// an exclusive create has its verifier. Otherwise the error Is vfs.ErrUnknownOutcome as well as
// the status. The documentation of internal/client/nfsclient/v3 has the table.
//
// # What is sent again
//
// Each layer has a reason of its own, and a bound with a name in its bounds.go:
//
//	oncrpc        no reply, or a lost connection   growing time-outs, until the patience ends
//	nfsclient/v3  JUKEBOX                          pauses of 0.1 to 5 s, until the patience ends
//	nfsclient/v3  BAD_COOKIE in a listing          from the last entry, or from the beginning
//	writeback     WRITE, COMMIT: a failed call     pauses, until the patience ends
//	writeback     the server lost unstable bytes   each byte 16 times, then the file fails
//	nlm           a lock, while the server has     pauses of 0.1 to 5 s, 150 s in all
//	              a grace after its restart
//	nlm           locks held, when the server      until it has answered; up to 16 times while it
//	              may have restarted: reclaims     does not say whether it has a grace
//
// # How much at once
//
// One Client serves any number of goroutines. It begins with one connection and makes more when
// needed, four at most (nconnect, [WithConnections]), so that small calls do not queue behind large
// ones. The calls in flight of each class (metadata, reads, writes) are limited. The limit is what
// has proved best for the server, which is measured continuously. max-load, or [WithMaxLoad], sets
// a fixed number. If a server says that it is busy, calls are repeated at growing intervals.
//
// # What can be observed
//
// [Client.Stats] counts calls, errors and times by procedure, the state of the limits, and what
// is buffered; it can be marshalled as JSON. [WithLogger] logs when a server stops responding,
// and when it responds again. [Diagnose] repeats Dial step by step, to find out why it fails.
//
// # Below the file system
//
// [Client.Raw] gives the connection and the credential to programs that call procedures
// themselves, with package proto/nfs3. What only some servers can do is found with vfs.As:
// [ACLer].
package nfsbox
