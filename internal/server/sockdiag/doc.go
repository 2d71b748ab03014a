// Package sockdiag asks the kernel which user is at the far end of a connection within
// this host.
//
// AUTH_SYS proves nothing: a program may claim to be any user. On the same host the
// kernel knows, since a socket belongs to the user that has made it. Linux tells by
// sock_diag(7); other systems do not.
package sockdiag

import "errors"

// ErrUnknown says that the kernel knows no owner: the far end has been closed
// already, or lies in another network namespace.
var ErrUnknown = errors.New("sockdiag: the kernel knows no owner of the far end")
