// Package sockdiag asks the kernel whose a connection within this host is.
//
// AUTH_SYS proves nothing: every program may claim to be every user. Of a program
// on the same host the kernel knows better, for a socket belongs to the user that
// has made it. Linux tells by sock_diag(7); elsewhere nobody can be asked.
package sockdiag

import "errors"

// ErrUnknown says that the kernel knows no owner: the far end has been closed
// already, or lies in another network namespace.
var ErrUnknown = errors.New("sockdiag: the kernel knows no owner of the far end")
