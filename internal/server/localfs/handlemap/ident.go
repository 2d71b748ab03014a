//go:build linux

package handlemap

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
)

// identBy is how the map tells an object from the one that gets its inode number
// after it.
type identBy uint8

const (
	// byNumber: by nothing else than the number. Nothing is searched for under another
	// name, and what has the number at the same name is taken for the object.
	byNumber identBy = iota
	// byBirth: by the time of birth as well. Two objects that are born within one tick
	// of the kernel's clock, a few milliseconds, have the same.
	byBirth
	// byHandle: by what name_to_handle_at(2) says, in which the file system's own
	// generation is; and by the birth.
	byHandle
	// byLayers: by the handle alone. On overlayfs what is written to is copied up, and
	// born again; its handle stays.
	byLayers
)

// Identifier makes the Idents of one file system's objects.
type Identifier struct {
	how identBy
	fid int // the flag that name_to_handle_at(2) takes: fidOnly, or 0 before Linux 6.5
	// copiesUp says that an object may come to look like another when it is changed
	// (overlayfs before Linux 6.6), which a call that has it open then notes: see
	// host.touched. What local programs copy up is stale.
	copiesUp bool
}

// NewIdentifier finds out what tells objects of a file system apart. st is of fd, which is
// a directory of it; magic is statfs' f_type. Only file systems that are known to keep
// their handles are asked for them: FUSE, for one, gives a file another handle when it is
// looked up again.
func NewIdentifier(fd int, st *linux.Stat, magic int64, noHandles bool) Identifier {
	n := Identifier{how: byNumber, fid: linux.FIDOnly}
	layers := magic == unix.OVERLAYFS_SUPER_MAGIC
	if st.Mask&unix.STATX_BTIME != 0 {
		n.how, n.copiesUp = byBirth, layers
	}
	if noHandles || !layers && !linux.IsLocal(magic) {
		return n
	}
	var r linux.RawHandle
	_, err := r.NameToHandle(fd, &linux.EmptyName[0], unix.AT_EMPTY_PATH|n.fid)
	if err != nil && !layers {
		n.fid = 0
		_, err = r.NameToHandle(fd, &linux.EmptyName[0], unix.AT_EMPTY_PATH)
	}
	switch {
	case err != nil:
	case layers:
		n.how, n.copiesUp = byLayers, false
	default:
		n.how = byHandle
	}
	return n
}

// Ident is that of the object that st describes. It is fd itself, or what is called name in
// the directory fd; name ends in a NUL.
func (n *Identifier) Ident(fd int, name *byte, flags int, st *linux.Stat) (linux.Ident, error) {
	id := st.Ident()
	if n.how == byLayers {
		id.Gen = 0
	}
	if n.how < byHandle {
		return id, nil
	}
	var r linux.RawHandle
	switch _, err := r.NameToHandle(fd, name, flags|n.fid); {
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, linux.ErrNoHandles):
		return st.Ident(), nil // a layer may be of another kind than the top
	case err != nil:
		return id, linux.Fail("name_to_handle_at", err)
	}
	id.Gen ^= r.Sum()
	return id, nil
}
