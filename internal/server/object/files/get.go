package files

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/server/object/layout"
	"github.com/nfsbox/nfsbox/vfs"
)

// opened is an object that is open: in memory with its trailer, if it is small and was asked
// for, and else as a file.
type opened struct {
	info object.Info
	crc  uint32
	f    vfs.File // nil if the content is in all
	all  *buffer  // of the store's buffers
}

// Get implements [object.Store].
func (s *Store) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, object.Info, error) {
	o, err := s.find(ctx, key, true)
	if err != nil {
		return nil, object.Info{}, object.Fail("get", key, err)
	}
	r := &layout.Reader{Info: o.info, CRC: o.crc, File: o.read, Release: func() error { return s.drop(ctx, o) }}
	if o.all != nil {
		r.All = o.all[:o.info.Size]
	}
	if err := r.Range(ctx, off, n); err != nil {
		return nil, object.Info{}, object.Fail("get", key, err)
	}
	return r, o.info, nil
}

// read reads from the file.
func (o *opened) read(ctx context.Context, p []byte, off int64) (int, error) {
	n, _, err := o.f.ReadAt(ctx, p, uint64(off), nil)
	switch {
	case n < 0 || n > len(p):
		return 0, fmt.Errorf("a read of %d bytes answered %d: %w", len(p), n, vfs.ErrServerFault)
	case gone(err):
		err = fmt.Errorf("%w: another host has replaced or deleted it while it was read: %w", object.ErrBusy, err)
	case err != nil:
		err = fail("read", err)
	}
	return n, err
}

// Stat implements [object.Store].
func (s *Store) Stat(ctx context.Context, key string) (object.Info, error) {
	o, err := s.find(ctx, key, false)
	if err == nil {
		err = s.drop(ctx, o)
	}
	if err != nil {
		return object.Info{}, object.Fail("stat", key, err)
	}
	return o.info, nil
}

// find opens the object of key, and reads it if it is small and content is set.
func (s *Store) find(ctx context.Context, key string, content bool) (o *opened, err error) {
	if err := object.CheckKey(key); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	p, name := s.layout.Split(key)
	err = s.in(ctx, p, false, func(f *folder) (err error) {
		var a vfs.Attr
		err = f.gate.look(ctx, func() (err error) { o, a, err = s.open(ctx, f, name, key); return err })
		if err != nil {
			return err
		}
		if err = s.settleName(ctx, f, &a); err == nil {
			err = s.load(ctx, o, int64(a.Size), content)
		}
		if err != nil {
			err = errors.Join(err, s.drop(ctx, o))
		}
		return err
	})
	if errors.Is(err, object.ErrForeign) {
		err = layout.Damaged("there is something else in the place of its directory")
	}
	return o, err
}

// open opens an object.
func (s *Store) open(ctx context.Context, f *folder, name, key string) (*opened, vfs.Attr, error) {
	h, a, err := s.lookup(ctx, f, name)
	switch {
	case errors.Is(err, vfs.ErrNoEnt):
		return nil, a, object.ErrNotExist
	case err != nil:
		return nil, a, err
	case a.Type != vfs.TypeReg:
		return nil, a, layout.Damaged("there is a " + a.Type.String() + " in its place")
	case a.Size < layout.TrailerSize || a.Size > DefaultMaxSize+layout.TrailerSize:
		return nil, a, layout.Damaged(fmt.Sprintf("it has %d bytes, and no trailer", a.Size))
	}
	file, _, err := s.fs.Open(ctx, vfs.At{H: h, Label: key}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		return nil, a, fail("open", err)
	}
	return &opened{f: file, info: object.Info{Key: key, ModTime: a.Mtime}}, a, nil
}

// load reads an object's trailer, and the whole object if it is small and content is set.
func (s *Store) load(ctx context.Context, o *opened, size int64, content bool) error {
	var room [layout.TrailerSize]byte
	b, off := room[:], size-layout.TrailerSize
	if content && size <= int64(len(buffer{})) {
		o.all = s.buffers.Get().(*buffer)
		b, off = o.all[:size], 0
	}
	n, _, err := vfs.ReadFull(ctx, o.f, b, uint64(off))
	if err != nil {
		return fail("read", err)
	}
	t, err := layout.ParseTrailer(b[max(0, n-layout.TrailerSize):n], o.info.Key, size)
	if err != nil {
		return err
	}
	o.info.Size, o.info.Sum, o.crc = t.Size, t.Sum, t.CRC
	if o.all == nil {
		return nil
	}
	f := o.f
	o.f = nil
	return fail("close", f.Close(context.WithoutCancel(ctx)))
}

// drop releases what o holds.
func (s *Store) drop(ctx context.Context, o *opened) error {
	if o.all != nil {
		s.buffers.Put(o.all)
		o.all = nil
	}
	if o.f == nil {
		return nil
	}
	f := o.f
	o.f = nil
	return fail("close", f.Close(context.WithoutCancel(ctx)))
}
