package dir

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/server/object/layout"
)

// sign writes who has the store open to write, for those that want it meanwhile. The lock, and
// not the file, keeps them out: if the file cannot be written, they are told less.
func (s *Store) sign(root *folder) {
	fd, err := unix.Openat(root.fd, layout.HolderName,
		unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return
	}
	_, _ = unix.Write(fd, s.o.Holder.Append(nil))
	_ = unix.Close(fd)
	s.signed = true
}

// unsign removes what sign has written. The lock must still be held.
func (s *Store) unsign() {
	if root, _ := s.folders.pin("."); root != nil && s.signed {
		_ = unix.Unlinkat(root.fd, layout.HolderName, 0)
		s.folders.unpin(root)
	}
}

// held is the error for a store that another process has open to write.
func (s *Store) held(root *folder) error {
	who := "another process"
	fd, err := openObject(root.fd, layout.HolderName)
	if err == nil {
		b := make([]byte, layout.MaxHolder+1)
		n, err := readAt(fd, b, 0)
		if h, ok := layout.ParseHolder(b[:n]); ok && err == nil {
			who = h.String()
		}
		_ = unix.Close(fd) // nothing was written
	}
	return fmt.Errorf("%w: it is open for writing by %s", object.ErrBusy, who)
}
