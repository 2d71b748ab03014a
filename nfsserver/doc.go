// Package nfsserver serves exports over NFS version 3 (RFC 1813).
//
// A [Server] answers, on one and the same port, NFS, MOUNT (versions 3 and, as
// far as it is of use, 1), access control lists (NFSACL), if it is asked to locks
// (NLM 4, and the status monitor), and the port mapper with its successors
// (versions 2 to 4). A client that takes a port needs nothing else; one that
// insists on port 111 for the port mapper finds that, and nothing else, there if the
// server has a listener for it ([Server.ServePortmap]). Beside TCP there is UDP for all but NFS
// itself. NFSv4 is answered with PROG_MISMATCH, 3 to 3, from which clients learn
// to ask for version 3.
//
// What is served, and to which callers, is the business of package export:
// every call is made on the view that [export.Table.For] gives of its caller.
// This package turns credentials into callers, calls into calls of [vfs.FS],
// and errors into statuses; it holds no state about files but for the requests
// that wait for a lock, so that a server that was restarted goes on where it
// was.
//
// # Callers
//
// AUTH_SYS credentials are believed, as far as the export's rules go. AUTH_NONE is
// nobody. Other flavors are denied. Equal credentials of one connection share a
// view.
//
// # Once
//
// A call that changes something is executed once, however often a client sends
// it: its reply is remembered, and sent again. See package oncrpc/replycache.
//
// # Clients on this host
//
// With [Options.LocalIO] clients on the same host, which find out by themselves, are
// handed descriptors of files, and read and write them without the network. The
// rights are those of the same calls over the network; what a descriptor would
// give beyond them stays remote.
//
// # Layout
//
// internal/v3, internal/acl, internal/mountd, internal/nlm, internal/nsm,
// internal/localio and internal/portmap are the programs; internal/peer knows the
// callers of a connection, and internal/callback calls clients back. They are bound
// to their numbers by the descriptors of proto, in tables that oncrpc indexes.
package nfsserver
