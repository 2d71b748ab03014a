package dir

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

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
	held := new(layout.HeldError)
	fd, err := openObject(root.fd, layout.HolderName)
	if err == nil {
		b := make([]byte, layout.MaxHolder+1)
		n, err := readAt(fd, b, 0)
		if h, ok := layout.ParseHolder(b[:n]); ok && err == nil {
			held.Holder = h
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err == nil { // it was written when the store was opened
			held.Since = time.Unix(st.Mtim.Unix())
		}
		_ = unix.Close(fd) // nothing was written
	}
	return held
}

// apart keeps readers and what removes objects apart, by a lock of the root directory that readers share. A
// file system without such locks, as NFS has none of directories, keeps nobody apart: a reader then is told what is gone.
func (s *Store) apart(root *folder) error {
	how := unix.LOCK_SH
	switch {
	case s.o.Alone:
		how = unix.LOCK_EX
	case !s.o.ReadOnly:
		return nil
	}
	fd, err := unix.Openat(root.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fail("open", err)
	}
	s.guard = fd
	err = again(func() error { return unix.Flock(fd, how|unix.LOCK_NB) })
	switch {
	case errors.Is(err, unix.EWOULDBLOCK) && s.o.Alone:
		return readBy(fd)
	case errors.Is(err, unix.EWOULDBLOCK):
		return s.held(root)
	}
	return nil
}
