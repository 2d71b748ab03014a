// Package localio is the server's half of LOCALIO: it hands descriptors of files
// to clients on the same host, which then read and write without the network. What
// goes over the wire is in proto/localio; session.x has the messages.
//
// # Who is who
//
// A session has two identities, and needs both. The RPC connection that brought the
// client's nonce says where the client is, as the exports' rules see it. The kernel
// says which user is at the Unix socket. A client may name the caller of each file, as
// it does over the network, but only root may name other users. What the caller may do
// is decided by the same view as for calls of that RPC connection
// ([export.View.OpenHost]).
//
// The client proves once where it is. The session keeps that address and port when the
// RPC connection is closed, which becomes idle when a client reads by descriptors. The
// session ends with the process. To refuse an address from now on, change the rules.
//
// # Revocation
//
// A descriptor cannot be taken back from a hostile client, only from one that
// cooperates. Each file is watched before it is looked at ([export.View.Watch]), and
// has a word in a page of memory that the client reads before each access. A change
// stores another value there before the change is answered, and never waits: another
// goroutine sends the message that follows. A file that is revoked before its
// descriptor is sent is not sent. When a session ends, the first word of its page says
// so for all its files. After the server was killed, the end of the socket does.
//
// # What a process of this host may cost
//
// Every process can connect to the socket, and bounds.go says what it can take.
// Connections, sessions, files, and descriptors that are being sent are divided among
// users. A session is one goroutine that reads, and some more while files are being
// opened. Back pressure is not to read: a client with enough files under way is not
// read until it has received them. Descriptors are closed as soon as they are sent.
//
// On kernels that let a client send us descriptors, it can block the goroutine that
// reads from it. So nothing but Close waits for a reader. A session ends when its page is
// dead and its socket shut down; the reader closes the socket.
//
// # Locks
//
// Service.mu guards the table of clients and their states; client.mu guards the files of
// one client and what is to be sent to it. Neither is held with the other, nor while
// a file system is called, a watch begun or stopped, or a message sent. The callback of
// a watch takes client.mu, and no lock that others hold for long.
package localio
