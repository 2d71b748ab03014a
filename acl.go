package nfsbox

import "github.com/nfsbox/nfsbox/internal/nfsclient/v3"

// ACLer is the power to read and set POSIX access control lists. Find it with
// vfs.As[nfsbox.ACLer](client.FS()); where the server has no such lists, its
// methods are vfs.ErrNotSupp.
type ACLer = v3.ACLer

// ACL, and what it is made of (POSIX.1e, draft 17; acl(5)).
type (
	ACL      = v3.ACL
	ACLEntry = v3.ACLEntry
	ACLTag   = v3.ACLTag
)

// To whom an entry gives rights.
const (
	ACLUserObj  = v3.ACLUserObj  // the owner
	ACLUser     = v3.ACLUser     // the user ID
	ACLGroupObj = v3.ACLGroupObj // the object's group
	ACLGroup    = v3.ACLGroup    // the group ID
	ACLMask     = v3.ACLMask     // the most that all but the owner and others have
	ACLOther    = v3.ACLOther    // everybody else
)
