package nfsbox

import "github.com/nfsbox/nfsbox/vfs"

// ACLer is the power to read and set POSIX access control lists. Find it with
// vfs.As[nfsbox.ACLer](client.FS()); where the server has no such lists, its
// methods are vfs.ErrNotSupp.
type ACLer = vfs.ACLer

// ACL and its parts (POSIX.1e, draft 17; acl(5)).
type (
	ACL      = vfs.ACL
	ACLEntry = vfs.ACLEntry
	ACLTag   = vfs.ACLTag
)

// To whom an entry gives rights.
const (
	ACLUserObj  = vfs.ACLUserObj  // the owner
	ACLUser     = vfs.ACLUser     // the user ID
	ACLGroupObj = vfs.ACLGroupObj // the object's group
	ACLGroup    = vfs.ACLGroup    // the group ID
	ACLMask     = vfs.ACLMask     // the most rights that entries have, except the owner's and others'
	ACLOther    = vfs.ACLOther    // everyone else
)
