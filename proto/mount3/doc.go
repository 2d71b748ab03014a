// Package mount3 is the MOUNT protocol on the wire, by which a client of NFS
// version 3 turns the path of an export into its first file handle: RFC 1813,
// appendix I, as mount3.x, and what cmd/xdrgen makes of it.
//
// Version 1 is here as well ([MOUNT_V1]; RFC 1094, appendix A). Its handles are
// those of NFS version 2 and of no use to us, but showmount and older clients
// ask it for the list of exports and of mounts, which have not changed since.
//
// The argument of MNT and UMNT is a bare path in the RFC; the struct around it,
// [Mountargs], adds nothing on the wire. Mounts and exports are linked lists,
// in Go slices: [Mountlist], [Exports].
package mount3

//go:generate go run github.com/nfsbox/nfsbox/cmd/xdrgen -pkg mount3 -open mountstat3 mount3.x
