package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/server/object/layout"
	"github.com/nfsbox/nfsbox/vfs"
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
	if err := s.enterChange(ctx); err != nil {
		return info, err
	}
	defer s.leave()
	p, name := s.layout.Split(key)
	var t *temp
	if err := s.in(ctx, p, true, func(f *folder) (err error) {
		if o.IfAbsent {
			if err := s.absent(ctx, f, name); err != nil {
				return err
			}
		}
		t, err = s.newTemp(ctx, f)
		return err
	}); err != nil {
		return info, err
	}
	defer t.discard(ctx)
	b := s.buffers.Get().(*buffer)
	defer s.buffers.Put(b)
	info, err = layout.Fill(ctx, key, r, &o, s.o.MaxSize, b[:], func(p []byte, off int64) error { return t.write(ctx, p, off) })
	if err == nil {
		err = t.finish(ctx)
	}
	if err == nil {
		info.ModTime, err = t.modTime(ctx)
	}
	if err == nil {
		err = t.publish(ctx, name, o.IfAbsent)
	}
	if err != nil {
		return object.Info{}, err
	}
	return info, nil
}

// absent returns nil if there is no object called name, and else object.ErrExist, once that is
// stable.
func (s *Store) absent(ctx context.Context, f *folder, name string) error {
	_, a, err := s.lookup(ctx, f, name)
	if errors.Is(err, vfs.ErrNoEnt) {
		return nil
	}
	if err == nil {
		err = s.settleName(ctx, f, &a)
	}
	if err != nil {
		return err
	}
	return object.ErrExist
}

// modTime is when t was written, by the server's clock.
func (t *temp) modTime(ctx context.Context) (time.Time, error) {
	a, err := t.s.looks.GetAttr(ctx, t.h, looked)
	if err == nil {
		t.attr = a
	}
	return a.Mtime, fail("getattr", err)
}

// Delete implements [object.Store]. Directories remain, even empty ones, as in object/dir.
func (s *Store) Delete(ctx context.Context, key string) error {
	return object.Fail("delete", key, s.delete(ctx, key))
}

func (s *Store) delete(ctx context.Context, key string) error {
	if err := object.CheckKey(key); err != nil {
		return err
	}
	if err := s.enterChange(ctx); err != nil {
		return err
	}
	defer s.leave()
	p, name := s.layout.Split(key)
	err := s.in(ctx, p, false, func(f *folder) error { return s.remove(ctx, f, name) })
	if errors.Is(err, object.ErrNotExist) {
		return nil
	}
	return err
}

// remove removes a name, and makes that stable. If it has gone already, that is another's work, or that of a call
// whose answer was lost.
func (s *Store) remove(ctx context.Context, f *folder, name string) error {
	var err error
	for range maxTries {
		err = f.gate.alone(ctx, func() error { _, err := s.fs.Remove(ctx, f.h, name, false); return err })
		if !unsure(err) || ctx.Err() != nil {
			break
		}
	}
	switch {
	case unsure(err) && !errors.Is(err, vfs.ErrNoEnt):
		return fmt.Errorf("%w: %w", object.ErrUnknownOutcome, fail("remove", err))
	case errors.Is(err, vfs.ErrNoEnt):
		err = s.settle(ctx, f)
	case err == nil:
		err = s.sync(context.WithoutCancel(ctx), f)
	default:
		return fail("remove", err)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", object.ErrUnknownOutcome, err)
	}
	return nil
}
