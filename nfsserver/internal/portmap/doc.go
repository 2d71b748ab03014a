// Package portmap answers those who ask where the server's programs are: the
// port mapper, version 2, and RPCBIND, versions 3 and 4 (RFC 1833). The answer is
// the port on which the question came, if the server's programs are served there,
// and else one of those that [Service.Listening] has named: so a server can
// answer on port 111 and serve on another.
//
// It is no registry. SET and UNSET are refused, nothing is answered about
// programs of others, and calls on behalf of others (CALLIT, BCAST, INDIRECT),
// which lend an attacker the server's address, are not offered.
//
// Where port 111 belongs to a registry of this host, the programs can be entered
// there: see [Register].
package portmap
