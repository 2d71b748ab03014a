// Package ganesha starts nfs-ganesha for tests and comparisons that hold our server beside
// it: NFSv3 over TCP, on free ports of loopback.
//
// It needs root and an rpcbind, which runs in a network namespace of its own. Its socket is
// in a mount namespace of its own, so that nothing outside is touched. The Debian packages
// are nfs-ganesha, nfs-ganesha-vfs and rpcbind.
//
// Locks need a port mapper and a status monitor at the server's own address. So a [Host] has all of them in a network
// of its own, and its clients dial there. It takes rpc.statd besides (nfs-common).
package ganesha
