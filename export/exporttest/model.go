package exporttest

import (
	"slices"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/vfs"
)

// The bits of a class in a mode.
const (
	read    = 4
	write   = 2
	execute = 1
)

// object is what an operation is about: a file or a directory.
type object struct {
	uid, gid uint32
	mode     uint32
	dir      bool
}

// squashed is the caller that a rule makes of c if it names no anonymous user
// (exports(5), "User ID Mapping").
func squashed(c vfs.Caller, s export.Squash) vfs.Caller {
	const nobody = 65534
	switch s {
	case export.SquashAll:
		return vfs.Caller{UID: nobody, GID: nobody}
	case export.SquashRoot:
		ids := append([]uint32{c.UID, c.GID}, c.Groups...)
		for i := range ids {
			if ids[i] == 0 {
				ids[i] = nobody
			}
		}
		return vfs.Caller{UID: ids[0], GID: ids[1], Groups: ids[2:]}
	}
	return c
}

// may reports whether POSIX gives c all rights in want on o. Only the rights of the one
// class that c is in count.
func may(c vfs.Caller, o object, want uint32) bool {
	if c.UID == 0 {
		// Root may do everything, but run what no class may run.
		return want&execute == 0 || o.dir || o.mode&0o111 != 0
	}
	class := o.mode
	switch {
	case c.UID == o.uid:
		class = o.mode >> 6
	case c.GID == o.gid || slices.Contains(c.Groups, o.gid):
		class = o.mode >> 3
	}
	return class&want == want
}

// verdict is the error that an operation on o by c, which has been squashed, must return.
func (m *matrix) verdict(c vfs.Caller, op *operation, o object) error {
	owns := c.UID == o.uid
	switch {
	case m.readOnly && op.changes:
		return vfs.ErrROFS
	case op.owner:
		if owns || c.UID == 0 {
			return nil
		}
		return vfs.ErrPerm
	case may(c, o, op.needs) || m.overridable(op, o) && overrides(c, o, op.needs):
		return nil
	}
	return vfs.ErrAccess
}

func (m *matrix) overridable(op *operation, o object) bool {
	return m.c.Override && !o.dir && !(m.c.Asks && op.needs&read != 0)
}

// overrides reports whether NFSv3 gives c the rights on a file although POSIX does not
// (RFC 1813, section 4.4). The owner has all of them: it may have opened the file before
// it took its own right away. A caller that may execute may read, since programs are
// loaded by reading them.
func overrides(c vfs.Caller, o object, want uint32) bool {
	if c.UID == o.uid {
		return true
	}
	return may(c, o, want&^read) && (may(c, o, read) || may(c, o, execute))
}

// grants are the rights that ACCESS must grant if it is asked for all.
func (m *matrix) grants(c vfs.Caller, o object) vfs.Access {
	var have vfs.Access
	give := func(needs uint32, a vfs.Access) {
		if may(c, o, needs) {
			have |= a
		}
	}
	give(read, vfs.AccessRead)
	if o.dir {
		give(execute, vfs.AccessLookup)
		give(write|execute, vfs.AccessModify|vfs.AccessExtend|vfs.AccessDelete)
	} else {
		give(write, vfs.AccessModify|vfs.AccessExtend)
		give(execute, vfs.AccessExecute)
	}
	if m.readOnly {
		have &^= vfs.AccessModify | vfs.AccessExtend | vfs.AccessDelete
	}
	return have
}
