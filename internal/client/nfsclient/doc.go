// Package nfsclient connects to an NFS server: it finds the server's ports,
// asks its MOUNT service for a handle, and returns the file system behind that
// as a raw, unbuffered [vfs.FS]. It is the only place that chooses a version of
// the protocol; today there is one, in package v3.
//
// # Which port
//
// A port that the options name is the one that is used. [Options.Port] stands
// for NFS and MOUNT at once, as our own server has them; if nobody there speaks
// MOUNT, the portmapper is asked where it is, unless nobody listens there at all.
// Without any port the portmapper is asked for both, and if there is no portmapper
// the well-known port 2049 is tried for both. Every port is checked with a NULL
// call, so that the error names what is wrong with which.
//
// # Which directory
//
// A path may lead to a directory deep in an export, or to a file. If the server
// does not mount the path itself, its parents are tried, up to the root, and
// the rest is looked up. Symbolic links on the way are followed below the directory
// that was mounted; one that leads out of it is [vfs.ErrOutside]. [Conn.FS] is rooted
// at the directory that the path names, or at the directory that holds what it names.
// [Conn.Target] is the name that is left, if any.
//
// A directory below the export that the server has mounted from elsewhere is
// entered if the server lets LOOKUP cross over. If it does not, what is in it is
// another export, and another Mount.
//
// # Which connections
//
// MOUNT and the portmapper get a connection each, which ends with the answer. The
// first connection to NFS stays, and up to Options.Conns-1 come beside it. Each is
// dialled by the server's name, from a reserved port if that is wanted and
// allowed.
//
// [Diagnose] makes the same calls one by one, and says of each that fails what
// would help.
package nfsclient
