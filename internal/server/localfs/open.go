//go:build linux

package localfs

import (
	"context"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// file is an open regular file. It pins the shared descriptors that it needs.
type file struct {
	fs   *FS
	r, w *fdcache.Desc
	// granted says that the rights were given at the open and are not asked for
	// again: a caller that has just created a file may write it, whatever its mode.
	granted bool
	// forgetful says that no Commit will follow what is written.
	forgetful bool
	// seen says that the file had a name when it was looked at first. From then
	// on it stays readable without one.
	seen atomic.Bool

	// calls counts the calls in flight, and has closedBit once Close was called.
	// The last one to leave gives the descriptors back.
	calls atomic.Int64
}

const (
	closedBit = 1 << 62
	goneBit   = 1 << 61
)

var (
	_ vfs.HoleSeeker = (*file)(nil)
	_ vfs.HostFiler  = (*file)(nil)
)

// Open implements vfs.FS. There is no state to deny others anything
// (How.Deny), to reclaim or to delegate: that is ErrNotSupp, but for delegations,
// which are just not given.
//
// An open by handle alone is what every READ and WRITE of NFSv3 begins with. If
// the file is open already it costs no system call: the caller's rights are
// checked by each use, which has to do so anyway.
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
	if how.Create != nil {
		return v.openNew(ctx, at, how)
	}
	o.H = at.H
	if at.Name != "" {
		var err error
		if o.H, o.Attr, _, err = v.Lookup(ctx, at.Dir, at.Name); err != nil {
			return nil, o, err
		}
	}
	f := &file{fs: v, forgetful: how.NoCommit}
	if at.Name == "" && !how.Trunc && f.pinCached(at.H, how.Access) {
		if err := v.ready(ctx); err != nil {
			f.unpin()
			return nil, o, err
		}
		return f, o, nil
	}
	if err := f.open(ctx, how, &o); err != nil {
		return nil, o, err
	}
	return f, o, nil
}

// openNew is Open of what may have to be made first. Of what was, there is nothing
// to look at any more.
func (v *FS) openNew(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	o, w, err := v.create(ctx, at.Dir, at.Name, how.Create)
	if err != nil {
		return nil, o, err
	}
	f := &file{fs: v, granted: o.Created, forgetful: how.NoCommit}
	switch {
	case w != nil && how.Access&vfs.ShareWrite != 0:
		f.w = w
	case w != nil:
		v.release(w)
	}
	if f.w != nil && how.Access == vfs.ShareWrite && !how.Trunc {
		f.seen.Store(o.Attr.Nlink > 0)
		return f, o, nil
	}
	if err := f.open(ctx, how, &o); err != nil {
		return nil, o, err
	}
	return f, o, nil
}

// pinCached pins what f needs if all of it is open.
func (f *file) pinCached(x vfs.Handle, access vfs.Share) bool {
	c := f.fs.fds
	if access&vfs.ShareRead != 0 {
		if f.r = c.Get(x, fdcache.Read); f.r == nil {
			return false
		}
	}
	if access&vfs.ShareWrite != 0 {
		if f.w = c.Get(x, fdcache.Write); f.w == nil {
			f.unpin()
			f.r = nil
			return false
		}
	}
	return true
}

// open pins what f needs, opening it if need be, and checks the caller's rights.
func (f *file) open(ctx context.Context, how *vfs.OpenHow, o *vfs.Opened) (err error) {
	v := f.fs
	defer func() {
		if err != nil {
			f.unpin()
		}
	}()
	if err := v.begin(ctx, classMeta); err != nil {
		return err
	}
	defer v.end(classMeta)
	if how.Access&vfs.ShareRead != 0 {
		if f.r, err = v.data(o.H, fdcache.Read); err != nil {
			return err
		}
	}
	if how.Access&vfs.ShareWrite != 0 && f.w == nil {
		if f.w, err = v.data(o.H, fdcache.Write); err != nil {
			return err
		}
	}
	var st linux.Stat
	if err := st.Of(f.any().FD); err != nil {
		return linux.Fail("statx", err)
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

func (f *file) any() *fdcache.Desc {
	if f.w != nil {
		return f.w
	}
	return f.r
}

// check is the check of rights that every read and write makes, since NFSv3 has
// no open and the rights may have changed.
func (f *file) check(st *linux.Stat, read, write bool) error {
	if !f.seen.Load() {
		if st.Nlink == 0 {
			return f.fs.gone(f.any().H)
		}
		f.seen.Store(true)
	}
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

// begin is called before anything that may block; it fails after Close.
func (f *file) begin(ctx context.Context, c class) error {
	if err := f.ready(ctx); err != nil {
		return err
	}
	if err := f.fs.enter(ctx, c); err != nil {
		f.leave()
		return err
	}
	return nil
}

func (f *file) end(c class) {
	f.fs.end(c)
	f.leave()
}

// ready is begin for a method that takes its place later, if at all; leave ends
// it.
func (f *file) ready(ctx context.Context) error {
	if f.calls.Add(1)&closedBit != 0 {
		f.leave()
		return vfs.ErrInval
	}
	if err := f.fs.ready(ctx); err != nil {
		f.leave()
		return err
	}
	return nil
}

// leave ends a call. The last one to leave after Close gives the descriptors
// back, and goneBit keeps others from doing so again.
func (f *file) leave() {
	if f.calls.Add(-1) == closedBit && f.calls.CompareAndSwap(closedBit, closedBit|goneBit) {
		f.unpin()
	}
}

// unpin gives the descriptors back. The caller has no place.
func (f *file) unpin() {
	if f.r != nil {
		f.fs.release(f.r)
	}
	if f.w != nil {
		f.fs.release(f.w)
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
	if f.begin(context.Background(), classMeta) != nil {
		return nil, nil, false
	}
	defer f.end(classMeta)
	d := f.r
	if d == nil {
		d = f.w
	}
	var st linux.Stat
	c := f.fs.fds
	if st.Of(d.FD) != nil || f.check(&st, f.r != nil, f.w != nil) != nil || c.Room() != nil {
		return nil, nil, false
	}
	fd, err := unix.FcntlInt(uintptr(d.FD), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		c.AddOpen(-1)
		return nil, nil, false
	}
	host := os.NewFile(uintptr(fd), "nfsbox file")
	var once sync.Once
	return host, func() { once.Do(func() { _ = host.Close(); c.AddOpen(-1) }) }, true
}
