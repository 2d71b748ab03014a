// Package callback calls programs of the server's clients: the lock manager that
// waits for a grant, the status monitor that is to be told of a restart. The server
// knows only the address of such a host.
//
// The host's port mapper says where the program is (RFC 1833, version 2 over IPv4 and
// version 4 over IPv6). It is asked over the transport on which the program will be
// called. The transport that the host itself has used is tried first, since firewalls
// tend to let it through, and then the other one.
//
// Each call stands alone: it dials, asks, and hangs up. Calls are rare, and a
// connection kept to every client that has ever locked something would be worse.
package callback
