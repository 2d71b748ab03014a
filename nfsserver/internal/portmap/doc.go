// Package portmap tells clients where the server's programs are: the port mapper,
// version 2, and RPCBIND, versions 3 and 4 (RFC 1833). The answer is the port on which
// the call came, if the server's programs are served there, and else one that
// [Service.Listening] has named. So a server can answer on port 111 and serve on
// another.
//
// It is no registry. SET and UNSET are refused, and programs of other servers are not
// known. Calls on behalf of others (CALLIT, BCAST, INDIRECT) are not offered: an
// attacker could use the server's address by them.
//
// Where port 111 belongs to a registry of this host, the programs can be entered
// there: see [Register].
package portmap
