package vfs

import "context"

// ACLer is an FS whose objects have POSIX access control lists. Where neither
// the file system nor a server has them, both methods are [ErrNotSupp].
type ACLer interface {
	// ACL returns the lists of an object. If it has none of its own, Access is the
	// list that means the same as its mode.
	ACL(ctx context.Context, h Handle) (ACL, error)
	// SetACL replaces both lists, and the mode with them. An access list without
	// a mask gets the mask that takes no rights away.
	SetACL(ctx context.Context, h Handle, acl ACL) error
}

// ACL are the lists of an object (POSIX.1e, draft 17; acl(5)).
type ACL struct {
	Access  []ACLEntry
	Default []ACLEntry // of a directory: the list that new objects in it inherit
}

// ACLEntry gives rights to someone.
type ACLEntry struct {
	Tag  ACLTag
	ID   uint32 // of ACLUser and ACLGroup
	Perm uint32 // 4 read, 2 write, 1 execute
}

// ACLTag says to whom an entry gives rights.
type ACLTag uint8

// The tags, with the numbers that Linux' extended attributes and the NFSACL
// protocol share.
const (
	ACLUserObj  ACLTag = 0x01 // the owner
	ACLUser     ACLTag = 0x02 // the user ID
	ACLGroupObj ACLTag = 0x04 // the group of the object
	ACLGroup    ACLTag = 0x08 // the group ID
	ACLMask     ACLTag = 0x10 // bounds the rights of all entries but ACLUserObj and ACLOther
	ACLOther    ACLTag = 0x20 // all other users
)
