package session

import (
	"errors"
	"fmt"
	"time"

	"github.com/nfsbox/nfsbox/proto/localio"
)

// SendTimeout is how long a message may wait for room in the socket. At the bound the
// connection is closed, because the peer does not read.
const SendTimeout = 5 * time.Second

// ErrNoDescriptors says that a message was sent or received without its descriptors. From
// [Conn.Receive]: this process can have no more (RLIMIT_NOFILE), those that came were closed,
// and the message is valid. From [Conn.Send]: too many are in flight, and nothing was sent. The
// connection stays open.
var ErrNoDescriptors = errors.New("localio: no room for descriptors")

// Refused says why an existing socket, or its directory, must not be used.
type Refused struct{ Why string }

// Error says why the socket is not used.
func (r *Refused) Error() string { return "localio: " + r.Why }

// refused makes a [*Refused], like fmt.Sprintf.
func refused(format string, args ...any) error { return &Refused{Why: fmt.Sprintf(format, args...)} }

// Peer is the process at the other end of a connection, as the kernel knew it when it
// connected, or began to listen. Ids are those of our own user namespace; a user without an id
// there is the overflow user, 65534.
type Peer struct {
	UID, GID uint32
	Groups   []uint32 // supplementary groups
	// PID is 0 if the process is in a PID namespace that we do not see. The process may be
	// gone, and the number another's: nothing important may depend on it.
	PID int32
	// UserNS is the inode of its user namespace; 0 if we are not permitted to ask. An
	// unprivileged process may ask only for processes of its own user.
	UserNS uint64
}

// InGroup reports whether gid is one of the peer's groups.
func (p *Peer) InGroup(gid uint32) bool {
	for _, g := range p.Groups {
		if g == gid {
			return true
		}
	}
	return p.GID == gid
}

// FormatUUID is a UUID as text, as in the names of sockets.
func FormatUUID(u [localio.UUID_SIZE]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// The name of a socket is its server's UUID and suffix.
const suffix = ".sock"

// checkSlots checks the number of slots of a page against its bounds.
func checkSlots(slots int) error {
	if slots < 1 || slots > localio.SESSION_MAX_SLOTS {
		return fmt.Errorf("localio: a page of %d slots; it has 1 to %d", slots, localio.SESSION_MAX_SLOTS)
	}
	return nil
}

// wordSize is the size of a word of the page, in bytes. The first word comes before the slots'.
const wordSize = 4

func pageSize(slots int) int64 { return wordSize * (1 + int64(slots)) }
