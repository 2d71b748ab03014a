// Package ganesha starts nfs-ganesha for tests and comparisons that hold our server beside
// it: NFSv3 over TCP, on free ports of loopback.
//
// It needs root and an rpcbind, which runs in a network namespace of its own. Its socket is
// in a mount namespace of its own, so that nothing outside is touched. The Debian packages
// are nfs-ganesha, nfs-ganesha-vfs and rpcbind.
package ganesha
