// Package portmap answers those who ask where the server's programs are: the
// port mapper, version 2, and RPCBIND, versions 3 and 4 (RFC 1833). The answer
// is the port on which the question came, since there is no other.
//
// It is no registry. SET and UNSET are refused, nothing is answered about
// programs of others, and calls on behalf of others (CALLIT, BCAST, INDIRECT),
// which lend an attacker the server's address, are not offered.
package portmap
