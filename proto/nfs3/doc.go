// Package nfs3 is NFS version 3 on the wire: RFC 1813, all 22 procedures.
//
// nfs3.x is the RFC's own text as a specification, and nfs3_xdr.go is what
// cmd/xdrgen makes of it: a struct for every type, [NFS_V3] for the program, a
// *xdr.Proc for every procedure. Names are the RFC's: those in capitals as they
// are (READ3args, NFS3ERR_STALE), the others as Go writes them (fattr3 is
// [Fattr3], obj_attributes is ObjAttributes).
//
// # What the RFC leaves open
//
// Names and paths have no bound in the RFC, and have none here: the record that
// they came in bounds them, and what is too long for a file system is answered
// with NFS3ERR_NAMETOOLONG, not with a decoding error. Statuses and other enums
// that the RFC does not list are decoded as they are, for servers send them.
//
// # Data and directories
//
// The data of READ and WRITE stays outside the codec ([xdr.BulkArgs],
// [xdr.BulkResult]). Directories need not be held as a whole: [Entry3] and
// [Entryplus3] are nodes of a list, and their Next and AppendNext take and make
// one entry after the other in a struct that is used again.
//
// Thirteen procedures are safe to repeat when an answer is lost. SETATTR, CREATE,
// MKDIR, SYMLINK, MKNOD, REMOVE, RMDIR, RENAME and LINK are not: done twice they
// fail where once they succeeded. (A SETATTR does so only with a guard, but the
// descriptor speaks of procedures, not of calls.)
package nfs3

//go:generate go run github.com/nfsbox/nfsbox/cmd/xdrgen -pkg nfs3 -open nfsstat3,ftype3,stable_how -bulk READ3resok.data,WRITE3args.data -once NFSPROC3_SETATTR,NFSPROC3_CREATE,NFSPROC3_MKDIR,NFSPROC3_SYMLINK,NFSPROC3_MKNOD,NFSPROC3_REMOVE,NFSPROC3_RMDIR,NFSPROC3_RENAME,NFSPROC3_LINK nfs3.x
