// Package ganesha runs nfs-ganesha, the server beside which tests and comparisons hold
// ours: one of their own, on free ports of the loopback, of NFSv3 over TCP alone.
//
// It wants root, and an rpcbind. That one gets a network namespace of its own, and is
// reached by a socket in a mount namespace of its own, so that nothing outside is
// touched. The Debian packages are nfs-ganesha, nfs-ganesha-vfs and rpcbind.
package ganesha
