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
	n, err = object.Range(o.info.Size, off, n)
	if err != nil {
		return nil, object.Info{}, errors.Join(err, s.drop(o))
	}
	s.counts.gets.Add(1)
	s.counts.readers.Add(1)
	return &reader{s: s, ctx: ctx, o: o, at: off, end: off + n, whole: off == 0 && n == o.info.Size}, o.info, nil
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

// reader is what Get returns: bytes at to end.
type reader struct {
	s       *Store
	ctx     context.Context
	o       *opened
	at, end int64
	whole   bool
	crc     uint32
	closed  bool
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // our own read, whose end is io.EOF itself
		err = object.Fail("get", r.o.info.Key, err)
	}
	return n, err
}

func (r *reader) read(p []byte) (n int, err error) {
	if r.closed {
		return 0, object.ErrClosed
	}
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if r.at == r.end {
		return 0, r.verdict()
	}
	p = p[:min(int64(len(p)), r.end-r.at)]
	if len(p) == 0 {
		return 0, nil
	}
	if r.o.all != nil {
		n = copy(p, r.o.all[r.at:r.end])
	} else {
		err = r.s.gated(r.ctx, Read, func() (err error) {
			n, err = readAt(r.o.fd, p, r.at)
			return fail("read", err)
		})
		if err == nil && n < len(p) {
			r.s.counts.corrupted.Add(1)
			err = layout.Damaged("it has become shorter")
		}
	}
	if r.whole {
		r.crc = layout.CRC(r.crc, p[:n])
	}
	r.at += int64(n)
	return n, err
}

// verdict is the error at the end of the bytes: io.EOF, or that they are corrupted.
func (r *reader) verdict() error {
	if r.whole && r.crc != r.o.crc {
		r.s.counts.corrupted.Add(1)
		return layout.Damaged("its content does not fit its checksum")
	}
	return io.EOF
}

// Close implements io.Closer. Further ones do nothing.
func (r *reader) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	r.s.counts.readers.Add(-1)
	return object.Fail("get", r.o.info.Key, r.s.drop(r.o))
}
