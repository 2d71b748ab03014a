//go:build linux

package localfs

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

var _ vfs.Walker = (*FS)(nil)

// Walk implements vfs.Walker. It is Lookup, of one name after the other, without what that
// asks of the directory each time: the step before has just found that where it is, and with
// what attributes. So a name costs two system calls, and not four.
func (v *FS) Walk(ctx context.Context, dir vfs.Handle, names []string) (n int, at vfs.Resolved) {
	if v.begin(ctx, classMeta) != nil {
		return 0, at
	}
	defer v.end(classMeta)
	var st linux.Stat
	d, err := v.dirFor(dir, &st, mayExec)
	if err != nil {
		return 0, at
	}
	at.Handle = dir
	for _, name := range names {
		if vfs.CheckName(name) != nil {
			break
		}
		if n > 0 && (!st.Is(unix.S_IFDIR) || v.permits(d, &st, mayExec) != nil) {
			break
		}
		was := st
		o := v.next(d, name, &st)
		if o == nil || st.Is(unix.S_IFLNK) {
			if st = was; o != nil {
				v.fds.Unpin(o)
			}
			break
		}
		v.fds.Unpin(d)
		d = o
		at = vfs.Resolved{Handle: o.H, Dir: at.Handle, Name: name}
		n++
	}
	v.attr(&st, &at.Attr)
	v.fds.Unpin(d)
	return n, at
}

// next is what has the name in d, pinned, with its attributes; nil: a Lookup has to say why
// there is nothing.
func (v *FS) next(d *fdcache.Desc, name string, st *linux.Stat) *fdcache.Desc {
	if _, ok := v.handles.(*kernelHandles); ok {
		return v.childByHandle(d, name, st)
	}
	x, _, err := v.child(d, name)
	if err != nil {
		return nil
	}
	o := v.fds.GetAny(x)
	if o != nil && (st.Of(o.FD) != nil || st.Nlink == 0) {
		v.fds.Unpin(o)
		return nil
	}
	return o
}
