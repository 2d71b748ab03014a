// Package nfsclient connects to an NFS server: it finds the server's ports, asks its MOUNT service
// for a handle, and returns the file system at that handle as a raw, unbuffered [vfs.FS]. Only
// this package chooses a version of the protocol; today there is one, in package v3.
//
// # Which port
//
// A port in the options is used as it is. [Options.Port] stands for NFS and MOUNT, which our own
// server has at one port. If the port does not serve MOUNT, the portmapper is asked for it, unless
// nothing listens at the port. Without any port the portmapper is asked for both. If there is no
// portmapper, the well-known port 2049 is tried for both. The lock manager is looked for at the port of
// NFS first, where the options have one. Every port is checked with a NULL call,
// so that the error names the port and what is wrong with it.
//
// # Which directory
//
// A path may lead to a directory deep in an export, or to a file. If the server does not mount
// the path itself, its parents are tried, up to the root, and the rest is looked up. Symbolic
// links on the way are followed below the mounted directory. One that leads out of it is
// [vfs.ErrOutside]. [Conn.FS] is rooted at the directory that the path names, or at the directory
// that holds the path's object. [Conn.Target] is the remaining name, if any.
//
// A directory below the export on which the server has mounted another file system is entered if
// the server lets LOOKUP cross over. Otherwise it is another export, which needs another Mount.
//
// # Which connections
//
// MOUNT and the portmapper get one connection each, which is closed after the answer. The first
// connection to NFS stays, and up to Options.Conns-1 are added. Each is dialled by the server's
// name, from a reserved port if that is wanted and permitted.
//
// [Diagnose] makes the same calls one by one, and gives advice on each that fails.
package nfsclient
