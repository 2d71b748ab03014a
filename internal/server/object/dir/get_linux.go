package dir

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/server/object/layout"
)

// opened is an object that is open: in memory with its trailer, if it is small
// and was asked for, and else as a descriptor.
type opened struct {
	info object.Info
	crc  uint32
	fd   int     // -1 if the content is in all
	all  *buffer // of the store's buffers
}

// Get implements [object.Store].
func (s *Store) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, object.Info, error) {
	r, info, err := s.get(ctx, key, off, n)
	if err != nil {
		return nil, object.Info{}, object.Fail("get", key, err)
	}
	return r, info, nil
}

func (s *Store) get(ctx context.Context, key string, off, n int64) (*reader, object.Info, error) {
	o, err := s.find(ctx, key, true)
	if err != nil {
		return nil, object.Info{}, err
	}
	r := &reader{layout.Reader{Info: o.info, CRC: o.crc}, s, o}
	r.File, r.Release = r.file, r.release
	if o.all != nil {
		r.All = o.all[:o.info.Size]
	}
	s.counts.readers.Add(1)
	if err := r.Range(ctx, off, n); err != nil {
		return nil, object.Info{}, err
	}
	s.counts.gets.Add(1)
	return r, o.info, nil
}

// Stat implements [object.Store].
func (s *Store) Stat(ctx context.Context, key string) (object.Info, error) {
	o, err := s.find(ctx, key, false)
	if err == nil {
		err = s.drop(o)
	}
	if err != nil {
		return object.Info{}, object.Fail("stat", key, err)
	}
	return o.info, nil
}

// find opens the object of key, and reads it if it is small and content is set.
func (s *Store) find(ctx context.Context, key string, content bool) (*opened, error) {
	if err := object.CheckKey(key); err != nil {
		return nil, err
	}
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	p, name := s.layout.Split(key)
	f, err := s.folder(ctx, p, false)
	if isOneOf(err, unix.ENOTDIR, unix.ELOOP) {
		err = layout.Damaged("there is something else in the place of its directory")
	}
	if err != nil {
		return nil, err
	}
	defer s.folders.unpin(f)
	var o *opened
	err = s.gated(ctx, Read, func() (err error) {
		o, err = s.open(f, name, key, content)
		return err
	})
	if errors.Is(err, object.ErrCorrupted) {
		s.counts.corrupted.Add(1)
	}
	// A missing object may have been removed in a way that a crash would undo.
	if err == nil || errors.Is(err, object.ErrNotExist) {
		if serr := s.settleName(ctx, f, name); serr != nil {
			if err == nil {
				serr = errors.Join(serr, s.drop(o))
			}
			return nil, serr
		}
	}
	return o, err
}

func (s *Store) open(f *folder, name, key string, content bool) (*opened, error) {
	fd, err := openObject(f.fd, name)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, object.ErrNotExist
	case isOneOf(err, unix.ELOOP, unix.ENXIO):
		return nil, layout.Damaged("there is something else in its place")
	case err != nil:
		return nil, fail("open", err)
	}
	o := &opened{fd: fd, info: object.Info{Key: key}}
	if err := s.load(o, content); err != nil {
		return nil, errors.Join(err, s.drop(o))
	}
	return o, nil
}

// load reads the trailer, and the whole object if it is small and content is set.
func (s *Store) load(o *opened, content bool) error {
	var st unix.Stat_t
	if err := again(func() error { return unix.Fstat(o.fd, &st) }); err != nil {
		return fail("fstat", err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return layout.Damaged("there is something else in its place")
	}
	if st.Size < layout.TrailerSize {
		return layout.Damaged(fmt.Sprintf("it has %d bytes, and no trailer", st.Size))
	}
	o.info.ModTime = modTime(&st)
	var room [layout.TrailerSize]byte
	b, off := room[:], st.Size-layout.TrailerSize
	if content && st.Size <= int64(len(buffer{})) {
		o.all = s.buffers.Get().(*buffer)
		b, off = o.all[:st.Size], 0
	}
	n, err := readAt(o.fd, b, off)
	if err != nil {
		return fail("read", err)
	}
	t, err := layout.ParseTrailer(b[max(0, n-layout.TrailerSize):n], o.info.Key, st.Size)
	if err != nil {
		return err
	}
	o.info.Size, o.info.Sum, o.crc = t.Size, t.Sum, t.CRC
	if o.all == nil {
		return nil
	}
	fd := o.fd
	o.fd = -1
	return fail("close", unix.Close(fd))
}

// drop releases what o holds.
func (s *Store) drop(o *opened) error {
	if o.all != nil {
		s.buffers.Put(o.all)
		o.all = nil
	}
	if o.fd < 0 {
		return nil
	}
	fd := o.fd
	o.fd = -1
	return fail("close", unix.Close(fd))
}

// reader is what Get returns. It counts.
type reader struct {
	layout.Reader
	s *Store
	o *opened
}

// file reads from the descriptor.
func (r *reader) file(ctx context.Context, p []byte, off int64) (n int, err error) {
	err = r.s.gated(ctx, Read, func() (err error) {
		n, err = readAt(r.o.fd, p, off)
		return fail("read", err)
	})
	return n, err
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if errors.Is(err, object.ErrCorrupted) {
		r.s.counts.corrupted.Add(1)
	}
	return n, err
}

func (r *reader) release() error {
	r.s.counts.readers.Add(-1)
	return r.s.drop(r.o)
}
