// Package callback calls programs of the server's clients: the lock manager that
// waits for a grant, the status monitor that is to hear of a restart. A server is
// the client here, of hosts that it knows by no more than an address.
//
// Such a program is found as any other: the host's port mapper (RFC 1833, version
// 2 over IPv4 and version 4 over IPv6) is asked over the transport on which the
// program shall be called. The transport that the host itself has used comes
// first, since firewalls tend to let it through, and then the other one.
//
// Each call stands alone: it dials, asks, and hangs up. Calls are rare, and a
// connection kept to every client that has ever locked something would be worse.
package callback
