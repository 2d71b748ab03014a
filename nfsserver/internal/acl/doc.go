// Package acl is the NFSACL protocol, version 3, over a view of exports: POSIX
// access control lists beside NFS, on its port. No RFC describes it; what is said
// here of Solaris and Linux is what their servers and clients do.
//
// The file system judges the lists ([vfs.ACLer]): whether they are valid, and which
// callers may set them. This package converts them to the form that clients know, and
// handles two peculiarities of the protocol:
//
//   - On the wire an access list has a mask, because Solaris refuses one without.
//     A list of four entries whose mask takes nothing away says what a mode says,
//     and is set as that: otherwise each copy of a plain file would leave a list
//     behind.
//   - A SETACL that does not mention one of the lists leaves it as it is. Linux
//     takes it away; no client of Linux or Solaris can tell, as both send both.
package acl
