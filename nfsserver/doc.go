// Package nfsserver serves exports over NFS version 3 (RFC 1813).
//
//	tree, err := osfs.Open("/srv/photos", osfs.Options{})
//	if err != nil {
//		return err
//	}
//	defer tree.Close()
//	return nfsserver.ListenAndServe(ctx, "", export.Export{Path: "/", FS: tree, ReadOnly: true})
//
// [ListenAndServe] and [Serve] are all that most programs need: they serve on loopback, to
// the programs of this host, unless they are told otherwise, and drain when their context
// ends. What is served may be any [vfs.FS]: a directory (vfs/osfs), a tree in memory
// (vfs/memfs), or one's own ([vfs.Unimplemented]). [New] is for those that
// keep handles over restarts, want locks, LOCALIO or metrics, or change exports on the way.
//
// A [Server] answers all its programs on one port: NFS, MOUNT (version 3 and part of
// version 1), access control lists (NFSACL), the port mapper with its successors
// (versions 2 to 4) and, if [Options.Locks] is set, locks (NLM 4, and the status
// monitor). A client that is given the port needs nothing else. For clients that ask
// the port mapper on port 111, [Server.ServePortmap] serves it there alone. UDP has all
// programs but NFS and NFSACL. NFSv4 is answered with PROG_MISMATCH, 3 to 3, from which
// clients learn to ask for version 3.
//
// Package export decides what is served, and to which callers: every call is made on
// the view that [export.Table.From] returns for its caller. This package turns
// credentials into callers, calls into calls of [vfs.FS], and errors into statuses. It
// keeps no state about files but for locks and for files that LOCALIO has handed out;
// both are built up again after a restart.
//
// # Callers
//
// AUTH_SYS credentials are believed, as far as the export's rules go. AUTH_NONE is
// anonymous. Other flavors are denied. Equal credentials of one connection share a
// view.
//
// # Once
//
// A call that changes something is executed once, however often a client sends
// it: its reply is remembered, and sent again. See package oncrpc/replycache.
//
// # Clients on this host
//
// With [Options.LocalIO] clients on the same host get descriptors of files, and read
// and write them without the network. They find out by themselves that they are on the
// same host. The rights are those of the same calls over the network; a file whose
// descriptor would give more stays remote.
//
// # Layout
//
// internal/v3, internal/acl, internal/mountd, internal/nlm, internal/nsm,
// internal/localio and internal/portmap are the programs; internal/peer knows the
// callers of a connection, and internal/callback calls clients back. They are bound
// to their numbers by the descriptors of proto, in tables that oncrpc indexes.
package nfsserver
