//go:build linux

package localfs

import (
	"context"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// file is an open regular file. It pins the shared descriptors that it needs.
type file struct {
	fs   *FS
	x    vfs.Handle
	r, w *desc
	// granted says that the rights were given at the open and are not asked for
	// again: who has just created a file may write it, whatever its mode.
	granted bool

	// calls counts the calls in flight, and has closedBit once Close was called.
	// Who leaves last gives the descriptors back.
	calls atomic.Int64
	last  sync.Once
}

const closedBit = 1 << 62

var (
	_ vfs.HoleSeeker = (*file)(nil)
	_ vfs.HostFiler  = (*file)(nil)
)

// Open implements vfs.FS. There is no state to deny others anything
// (How.Deny), to reclaim or to delegate: that is ErrNotSupp, but for delegations,
// which are just not given.
func (v *FS) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	var o vfs.Opened
	switch {
	case how.Access == 0 || how.Access&^(vfs.ShareRead|vfs.ShareWrite) != 0:
		return nil, o, vfs.ErrInval
	case how.Trunc && how.Access&vfs.ShareWrite == 0:
		return nil, o, vfs.ErrInval
	case how.Deny != 0 || how.Reclaim:
		return nil, o, vfs.ErrNotSupp
	case v.o.ReadOnly && how.Access&vfs.ShareWrite != 0:
		return nil, o, vfs.ErrROFS
	case how.Create != nil && (at.Name == "" || how.Create.Type != vfs.TypeReg):
		return nil, o, vfs.ErrInval
	}
	o.H = at.H
	var err error
	switch {
	case how.Create != nil:
		o.H, o.Attr, o.Dir, o.Created, err = v.create(ctx, at.Dir, at.Name, how.Create)
	case at.Name != "":
		o.H, o.Attr, _, err = v.Lookup(ctx, at.Dir, at.Name)
	}
	if err != nil {
		return nil, o, err
	}
	f := &file{fs: v, x: o.H, granted: o.Created}
	if err := f.open(ctx, how, &o); err != nil {
		return nil, o, err
	}
	return f, o, nil
}

// open pins what f needs and checks the caller's rights.
func (f *file) open(ctx context.Context, how *vfs.OpenHow, o *vfs.Opened) (err error) {
	v := f.fs
	if err := v.begin(ctx, classMeta); err != nil {
		return err
	}
	defer v.end(classMeta)
	defer func() {
		if err != nil {
			f.unpin()
		}
	}()
	if how.Access&vfs.ShareRead != 0 {
		if f.r, err = v.data(f.x, useRead); err != nil {
			return err
		}
	}
	if how.Access&vfs.ShareWrite != 0 {
		if f.w, err = v.data(f.x, useWrite); err != nil {
			return err
		}
	}
	var st stat
	if err := v.stat(f.any(), &st); err != nil {
		return err
	}
	if err := f.check(&st, f.r != nil, f.w != nil); err != nil {
		return err
	}
	if how.Trunc && st.Size != 0 {
		if err := v.truncate(f.w, 0); err != nil {
			return err
		}
		if err := v.stat(f.w, &st); err != nil {
			return err
		}
	}
	v.attr(&st, &o.Attr)
	return nil
}

// any returns a descriptor of f.
func (f *file) any() *desc {
	if f.w != nil {
		return f.w
	}
	return f.r
}

// check is the check of rights that every read and write makes, since NFSv3 has
// no open and the rights may have changed.
func (f *file) check(st *stat, read, write bool) error {
	if f.granted {
		return nil
	}
	if read {
		if err := f.fs.mayReadData(f.r, st); err != nil {
			return err
		}
	}
	if write {
		return f.fs.mayWriteData(f.w, st)
	}
	return nil
}

// begin is the door of every method: it fails after Close.
func (f *file) begin(ctx context.Context, c class) error {
	if f.calls.Add(1)&closedBit != 0 {
		f.leave()
		return vfs.ErrInval
	}
	if err := f.fs.begin(ctx, c); err != nil {
		f.leave()
		return err
	}
	return nil
}

func (f *file) end(c class) {
	f.fs.end(c)
	f.leave()
}

func (f *file) leave() {
	if f.calls.Add(-1) == closedBit {
		f.last.Do(f.unpin)
	}
}

func (f *file) unpin() {
	for _, d := range []*desc{f.r, f.w} {
		if d != nil {
			f.fs.fds.unpin(d)
		}
	}
}

// Close implements vfs.File. Calls in flight end as they would have; what they
// use is given back when the last has ended.
func (f *file) Close(context.Context) error {
	for {
		n := f.calls.Load()
		if n&closedBit != 0 {
			return vfs.ErrInval
		}
		if f.calls.CompareAndSwap(n, (n+1)|closedBit) {
			f.leave()
			return nil
		}
	}
}

// HostFile implements vfs.HostFiler with a descriptor of its own, so that its
// reader need not know of ours.
func (f *file) HostFile() (*os.File, func(), bool) {
	if f.calls.Add(1)&closedBit != 0 || f.fs.fds.room() != nil {
		f.leave()
		return nil, nil, false
	}
	defer f.leave()
	d := f.r
	if d == nil {
		d = f.w
	}
	fd, err := unix.FcntlInt(uintptr(d.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		f.fs.fds.lend(-1)
		return nil, nil, false
	}
	host := os.NewFile(uintptr(fd), "nfsbox file")
	var once sync.Once
	return host, func() { once.Do(func() { _ = host.Close(); f.fs.fds.lend(-1) }) }, true
}
