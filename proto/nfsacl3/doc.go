// Package nfsacl3 is the ACL protocol beside NFS version 3 on the wire: program
// 100227, by which POSIX access control lists are read and set. Solaris defined
// it, Linux and others speak it on the NFS port, and no RFC describes it.
// nfsacl3.x is the specification; cmd/xdrgen makes the Go of it.
//
// Each of the two lists, access and default, comes with a count of its own
// before it. With the mask NA_ACLCNT or NA_DFACLCNT alone, the count is all that
// is asked for, and the list is empty. Entries of the default list have
// NA_ACL_DEFAULT set in their type.
//
// The file handle, the status and the attributes are those of NFS version 3,
// written out again: rooms of protocols do not import each other.
package nfsacl3

//go:generate go run github.com/nfsbox/nfsbox/cmd/xdrgen -pkg nfsacl3 -open nfsstat3,ftype3 nfsacl3.x
