//go:build linux

package inotify

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// State is what the rights to an object rest on, and how many names it has.
type State struct {
	mode, nlink, uid, gid uint32
	acl                   string
}

// Of is the State of what fd has open, which may be an O_PATH descriptor. It is
// vfs.ErrStale if the object has no name left.
func Of(fd int) (State, error) {
	var st linux.Stat
	if err := st.Of(fd); err != nil {
		return State{}, linux.Fail("statx", err)
	}
	if st.Nlink == 0 {
		return State{}, vfs.ErrStale
	}
	return stateBy(fd, &st), nil
}

// stateBy is Of when st is known.
func stateBy(fd int, st *linux.Stat) State {
	s := State{mode: uint32(st.Mode), nlink: st.Nlink, uid: st.Uid, gid: st.Gid}
	var list [unix.PathMax]byte
	size, err := unix.Getxattr(linux.ProcPath(fd), linux.XattrAccess, list[:])
	switch {
	case err == nil:
		s.acl = string(list[:size])
	case errors.Is(err, unix.ERANGE):
		s.acl = strconv.FormatUint(st.Change(), 10) // any change counts, then
	}
	return s
}

func (s State) changed(now State) (c vfs.Change) {
	if now.nlink < s.nlink {
		c |= vfs.ChangeGone
	}
	if now.nlink = s.nlink; now != s {
		c |= vfs.ChangeRights
	}
	return c
}
