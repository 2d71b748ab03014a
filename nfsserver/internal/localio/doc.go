// Package localio is the server's half of LOCALIO: it hands descriptors of files
// to clients on the same host, which then read and write without the network. What
// goes over the wire is in proto/localio; session.x has the talk.
//
// # Who is who
//
// Two identities meet in a session, and it needs both. The RPC connection that the
// client's nonce came by says where the client is, as the exports' rules see it;
// the kernel says of the Unix socket which user is there. A client may claim the
// caller of each file as it does over the network, but only root may claim
// anybody; others are themselves. What the caller may do is then for the same
// view to say that the calls of that RPC connection have ([export.View.OpenHost]).
//
// Where the client is, it has shown once. The session keeps that address and port
// when the connection is closed, which a client that reads by descriptors lets fall
// idle, and ends with the process: an operator that wants an address to mean nothing any more
// says so in the rules.
//
// # Taking back
//
// What was handed out cannot be taken back from a client that means harm, only
// from one that plays along. Each file is watched from before it is looked at
// ([export.View.Watch]) and has a word in a page of memory that the client
// looks at before each access. A change stores another value there before it is
// answered to the client that has made it, and never waits: the message that follows is
// sent by somebody else. A file that is revoked before its descriptor is on its
// way does not leave. When a session ends, the first word of its page says so of
// all its files, and after a kill of the server the end of the socket does.
//
// # What a process of this host may cost
//
// The socket is open to everybody, and bounds.go says how much anybody gets of
// it: of what one user could take from others, connections, sessions, files and
// descriptors on their way, he has a part. A session is one goroutine that reads, and
// some more while files are being opened. Back pressure is not reading: a client with
// enough files on their way is left alone until it has taken them. Descriptors are
// closed as soon as they were sent.
//
// A client can hold up the goroutine that reads from it, on kernels that let it send us
// descriptors. So nobody waits for a reader: a session ends when its page is dead
// and its socket shut down, and the socket is the reader's to close.
//
// # Locks
//
// Service.mu guards the table of clients, and their states; client.mu the files of one
// client and what is to be sent to it. Neither is held with the other, nor while
// a file system is called, a watch begun or stopped, or a message sent; a watch
// that calls takes client.mu, and that is all it takes.
package localio
