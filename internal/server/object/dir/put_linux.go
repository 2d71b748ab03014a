package dir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/server/object/layout"
)

// Put implements [object.Store].
func (s *Store) Put(ctx context.Context, key string, r io.Reader, o object.PutOptions) (object.Info, error) {
	info, err := s.put(ctx, key, r, o)
	return info, object.Fail("put", key, err)
}

func (s *Store) put(ctx context.Context, key string, r io.Reader, o object.PutOptions) (info object.Info, err error) {
	if err := object.CheckKey(key); err != nil {
		return info, err
	}
	if o.Size > s.o.MaxSize {
		return info, object.ErrTooLarge
	}
	if err := s.enterChange(); err != nil {
		return info, err
	}
	defer s.leave()
	p, name := s.layout.Split(key)
	f, err := s.folder(ctx, p, true)
	if err != nil {
		return info, err
	}
	defer s.folders.unpin(f)
	if o.IfAbsent {
		if err := s.absent(ctx, f, name); err != nil {
			return info, err
		}
	}
	var t *temp
	if err := s.gated(ctx, Meta, func() (err error) { t, err = s.newTemp(f); return err }); err != nil {
		return info, err
	}
	info, err = s.fill(ctx, t, key, r, &o)
	if err == nil {
		err = s.publish(ctx, t, name, o.IfAbsent)
	}
	if cerr := t.close(ctx); cerr != nil {
		err = errors.Join(err, fmt.Errorf("%w: %w", object.ErrUnknownOutcome, cerr))
	}
	if err != nil {
		return object.Info{}, err
	}
	s.counts.puts.Add(1)
	s.counts.putBytes.Add(uint64(info.Size))
	return info, nil
}

// absent returns nil if there is no object called name, and else
// object.ErrExist, once that is stable.
func (s *Store) absent(ctx context.Context, f *folder, name string) error {
	err := s.gated(ctx, Meta, func() error { _, err := lstat(f, name); return err })
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fail("stat", err)
	}
	return s.existing(ctx, f, name)
}

// existing is the error for an object that exists although IfAbsent is set.
func (s *Store) existing(ctx context.Context, f *folder, name string) error {
	if err := s.settleName(ctx, f, name); err != nil {
		return err
	}
	return object.ErrExist
}

// fill writes all that r returns, and the trailer, and makes both stable.
func (s *Store) fill(ctx context.Context, t *temp, key string, r io.Reader, o *object.PutOptions) (object.Info, error) {
	b := s.buffers.Get().(*buffer)
	defer s.buffers.Put(b)
	info, err := layout.Fill(ctx, key, r, o, s.o.MaxSize, b[:], func(p []byte, off int64) error {
		return s.gated(ctx, Write, func() error { return s.writeAll(t.fd, p, off) })
	})
	if err == nil {
		info.ModTime, err = s.finish(ctx, t)
	}
	return info, err
}

// finish makes the content stable and returns its time.
func (s *Store) finish(ctx context.Context, t *temp) (time.Time, error) {
	var st unix.Stat_t
	if err := unix.Fstat(t.fd, &st); err != nil {
		return time.Time{}, fail("fstat", err)
	}
	if s.o.NoSync {
		return modTime(&st), nil
	}
	err := s.gated(ctx, Sync, func() error { return fail("fdatasync", s.sys.Fdatasync(t.fd)) })
	return modTime(&st), err
}

func modTime(st *unix.Stat_t) time.Time { return time.Unix(st.Mtim.Unix()) }

func (s *Store) writeAll(fd int, p []byte, off int64) error {
	for len(p) > 0 {
		n, err := s.sys.Pwrite(fd, p, off)
		if err != nil {
			return fail("write", err)
		}
		if n == 0 {
			return fail("write", io.ErrShortWrite)
		}
		p, off = p[n:], off+int64(n)
	}
	return nil
}

// publish gives t its name, and makes that stable. Once t has its name, the end of ctx
// does not stop it.
func (s *Store) publish(ctx context.Context, t *temp, name string, ifAbsent bool) error {
	exists := false
	err := s.change(ctx, t.in, name, func() (bool, error) {
		err := t.name(name, ifAbsent)
		exists = ifAbsent && errors.Is(err, unix.EEXIST)
		return err == nil, err
	})
	if exists {
		return s.existing(ctx, t.in, name)
	}
	if err != nil {
		return err
	}
	if err := s.settle(context.WithoutCancel(ctx), t.in); err != nil {
		return fmt.Errorf("%w: %w", object.ErrUnknownOutcome, err)
	}
	return nil
}
