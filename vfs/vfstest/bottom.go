package vfstest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// bottom is the innermost file system of a stack whose powers are proved. It wraps a
// file system that is stable by itself, and has every power, or none. It knows what a
// crash would lose: what was changed and neither committed nor synced.
type bottom struct {
	vfs.FS // of a caller
	*ledger
}

// ledger is what all views of a bottom share.
type ledger struct {
	all  vfs.FS // for its own caller
	able bool   // it has every power
	temp func() (*os.File, error)

	mu      sync.Mutex
	names   map[vfs.Handle]bool // and attributes: changed, and not synced
	data    map[vfs.Handle]bool // written Unstable, and not committed
	watches map[*bottomWatch]bool
	dropped atomic.Int64 // calls of Drop
}

type bottomWatch struct {
	h       vfs.Handle
	changed func(vfs.Change)
}

func newBottom(all vfs.FS, able bool, temp func() (*os.File, error)) *bottom {
	return &bottom{FS: all, ledger: &ledger{
		all: all, able: able, temp: temp,
		names: make(map[vfs.Handle]bool), data: make(map[vfs.Handle]bool), watches: make(map[*bottomWatch]bool),
	}}
}

var (
	_ vfs.Syncer     = (*bottom)(nil)
	_ vfs.Putter     = (*bottom)(nil)
	_ vfs.HostOpener = (*bottom)(nil)
	_ vfs.Watcher    = (*bottom)(nil)
	_ vfs.Dropper    = (*bottomFile)(nil)
	_ vfs.HostFiler  = (*bottomFile)(nil)
)

// Holds implements vfs.Holder. The maker of the file system below closes it.
func (b *bottom) Holds(power any) bool {
	switch power.(type) {
	case *vfs.Closer, *vfs.Forgetter:
		return false
	}
	return b.able
}

// Unwrap returns the file system below, for the powers that bottom does not implement:
// locks, lists.
func (b *bottom) Unwrap() any { return b.FS }

func (b *bottom) As(c *vfs.Caller) vfs.FS { return &bottom{b.all.As(c), b.ledger} }

// changed notes that names in the objects, or their attributes, have changed, and tells
// their watchers.
func (l *ledger) changed(what vfs.Change, all ...vfs.Handle) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range all {
		if l.able && !h.IsZero() {
			l.names[h] = true
		}
		for w := range l.watches {
			if w.h == h {
				w.changed(what)
			}
		}
	}
}

// settled notes that everything of h is stable.
func (l *ledger) settled(h vfs.Handle) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.names, h)
	delete(l.data, h)
}

// owes says what of h a crash would lose.
func (l *ledger) owes(h vfs.Handle) (names, data bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.names[h], l.data[h]
}

func (b *bottom) SetAttr(ctx context.Context, h vfs.Handle, set *vfs.SetAttr, guard *time.Time) (vfs.WCC, error) {
	w, err := b.FS.SetAttr(ctx, h, set, guard)
	if err == nil {
		b.changed(vfs.ChangeRights, h)
	}
	return w, err
}

func (b *bottom) Create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (vfs.Handle, vfs.Attr, vfs.WCC, error) {
	h, a, w, err := b.FS.Create(ctx, dir, name, how)
	if err == nil {
		b.changed(0, dir, h)
	}
	return h, a, w, err
}

func (b *bottom) Link(ctx context.Context, h, dir vfs.Handle, name string) (vfs.Attr, vfs.WCC, error) {
	a, w, err := b.FS.Link(ctx, h, dir, name)
	if err == nil {
		b.changed(0, dir)
	}
	return a, w, err
}

func (b *bottom) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (vfs.WCC, error) {
	h, _, _, _ := b.FS.Lookup(ctx, dir, name)
	w, err := b.FS.Remove(ctx, dir, name, isDir)
	if err == nil {
		b.changed(vfs.ChangeGone, dir, h)
		b.settled(h)
	}
	return w, err
}

func (b *bottom) Rename(ctx context.Context, fromDir vfs.Handle, from string, toDir vfs.Handle, to string) (vfs.WCC, vfs.WCC, error) {
	h, _, _, _ := b.FS.Lookup(ctx, toDir, to)
	v, w, err := b.FS.Rename(ctx, fromDir, from, toDir, to)
	if err == nil {
		b.changed(vfs.ChangeGone, fromDir, toDir, h)
		b.settled(h)
	}
	return v, w, err
}

func (b *bottom) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	f, o, err := b.FS.Open(ctx, at, how)
	if err != nil {
		return nil, o, err
	}
	if o.Created {
		b.changed(0, at.Dir, o.H)
	} else if how.Trunc {
		b.changed(0, o.H)
	}
	return &bottomFile{f, b.ledger, o.H}, o, nil
}

func (b *bottom) Sync(ctx context.Context, h vfs.Handle) error {
	if below, ok := vfs.As[vfs.Syncer](b.FS); ok {
		if err := below.Sync(ctx, h); err != nil {
			return err
		}
	}
	b.settled(h)
	return ctx.Err()
}

func (b *bottom) Put(ctx context.Context, dir vfs.Handle, name string, mode uint32, data []byte) (vfs.Handle, vfs.Attr, error) {
	f, o, err := b.FS.Open(ctx, vfs.At{Dir: dir, Name: name}, &vfs.OpenHow{Access: vfs.ShareWrite, Create: fileHow(mode)})
	if err != nil {
		return vfs.Handle{}, vfs.Attr{}, err
	}
	_, err = vfs.WriteFull(ctx, f, data, 0, vfs.FileSync, new(vfs.Written))
	if err = errors.Join(err, f.Close(ctx)); err != nil {
		return vfs.Handle{}, vfs.Attr{}, err
	}
	b.changed(0, dir, o.H)
	a, err := b.FS.GetAttr(ctx, o.H, vfs.MaskV3)
	return o.H, a, err
}

func (b *bottom) SetACL(ctx context.Context, h vfs.Handle, acl vfs.ACL) error {
	below, ok := vfs.As[vfs.ACLer](b.FS)
	if !ok {
		return vfs.ErrNotSupp
	}
	err := below.SetACL(ctx, h, acl)
	if err == nil {
		b.changed(vfs.ChangeRights, h)
	}
	return err
}

func (b *bottom) ACL(ctx context.Context, h vfs.Handle) (vfs.ACL, error) {
	below, ok := vfs.As[vfs.ACLer](b.FS)
	if !ok {
		return vfs.ACL{}, vfs.ErrNotSupp
	}
	return below.ACL(ctx, h)
}

func (b *bottom) SetXattr(ctx context.Context, h vfs.Handle, name string, value []byte, how vfs.XattrHow) error {
	return b.changeXattr(h, func(below vfs.Xattrer) error { return below.SetXattr(ctx, h, name, value, how) })
}

func (b *bottom) RemoveXattr(ctx context.Context, h vfs.Handle, name string) error {
	return b.changeXattr(h, func(below vfs.Xattrer) error { return below.RemoveXattr(ctx, h, name) })
}

func (b *bottom) changeXattr(h vfs.Handle, change func(vfs.Xattrer) error) error {
	below, ok := vfs.As[vfs.Xattrer](b.FS)
	if !ok {
		return vfs.ErrNotSupp
	}
	err := change(below)
	if err == nil {
		b.changed(0, h)
	}
	return err
}

func (b *bottom) Xattrs(ctx context.Context, h vfs.Handle) ([]string, error) {
	below, ok := vfs.As[vfs.Xattrer](b.FS)
	if !ok {
		return nil, vfs.ErrNotSupp
	}
	return below.Xattrs(ctx, h)
}

func (b *bottom) Xattr(ctx context.Context, h vfs.Handle, name string) ([]byte, error) {
	below, ok := vfs.As[vfs.Xattrer](b.FS)
	if !ok {
		return nil, vfs.ErrNotSupp
	}
	return below.Xattr(ctx, h, name)
}

func (b *bottom) Watch(h vfs.Handle, changed func(vfs.Change)) (stop func(), err error) {
	w := &bottomWatch{h, changed}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watches[w] = true
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.watches, w)
	}, nil
}

// OpenHost implements vfs.HostOpener. If the file system below has no files of this
// host, it opens a copy of the file as it is now.
func (b *bottom) OpenHost(ctx context.Context, h vfs.Handle, how *vfs.HostOpen) (*os.File, vfs.Attr, error) {
	if below, ok := vfs.As[vfs.HostOpener](b.FS); ok {
		return below.OpenHost(ctx, h, how)
	}
	if how.Access != vfs.ShareRead {
		return nil, vfs.Attr{}, vfs.ErrNotSupp
	}
	a, err := b.FS.GetAttr(ctx, h, vfs.MaskV3)
	if err != nil {
		return nil, vfs.Attr{}, err
	}
	f, _, err := b.FS.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		return nil, vfs.Attr{}, err
	}
	host, err := b.copyOf(ctx, f)
	return host, a, errors.Join(err, f.Close(ctx))
}

func (l *ledger) copyOf(ctx context.Context, f vfs.File) (*os.File, error) {
	host, err := l.temp()
	if err != nil {
		return nil, err
	}
	p := make([]byte, 64<<10)
	for off := uint64(0); ; {
		n, eof, err := vfs.ReadFull(ctx, f, p, off)
		if err == nil {
			_, err = host.WriteAt(p[:n], int64(off))
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("copying: %w", err), host.Close())
		}
		if off += uint64(n); eof {
			_, err := host.Seek(0, io.SeekStart)
			return host, err
		}
	}
}

// bottomFile is an open file of a bottom.
type bottomFile struct {
	vfs.File
	l *ledger
	h vfs.Handle
}

func (f *bottomFile) Holds(any) bool { return f.l.able }

// Unwrap returns the file below, for the power that bottomFile does not implement: holes.
func (f *bottomFile) Unwrap() any { return f.File }

func (f *bottomFile) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (int, error) {
	n, err := f.File.WriteAt(ctx, p, off, how, w)
	if n > 0 && how == vfs.Unstable {
		f.l.mu.Lock()
		defer f.l.mu.Unlock()
		f.l.data[f.h] = true
	}
	return n, err
}

func (f *bottomFile) Truncate(ctx context.Context, size uint64) (vfs.WCC, error) {
	w, err := f.File.Truncate(ctx, size)
	if err == nil {
		f.l.changed(0, f.h)
	}
	return w, err
}

func (f *bottomFile) Commit(ctx context.Context, off, n uint64, w *vfs.Written) error {
	err := f.File.Commit(ctx, off, n, w)
	if err == nil {
		f.l.settled(f.h)
	}
	return err
}

func (f *bottomFile) Drop(ctx context.Context, _, _ uint64) error {
	f.l.dropped.Add(1)
	return ctx.Err()
}

func (f *bottomFile) HostFile() (*os.File, func(), bool) {
	if below, ok := vfs.As[vfs.HostFiler](f.File); ok {
		return below.HostFile()
	}
	host, err := f.l.copyOf(context.Background(), f.File)
	if err != nil {
		return nil, nil, false
	}
	return host, func() { _ = host.Close() }, true
}
