package backup

import (
	"context"
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/internal/tools/delta"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/vfs"
)

// errVanished says that an object that was listed is gone.
var errVanished = errors.New("it vanished")

// gone marks the errors of an object that is gone.
func gone(err error) error {
	if errors.Is(err, vfs.ErrStale) || errors.Is(err, vfs.ErrNoEnt) {
		return fmt.Errorf("%w: %w", errVanished, err)
	}
	return err
}

// sourceFailed is an error of the top directory.
func sourceFailed(err error) error { return fmt.Errorf("attributes of the directory: %w", err) }

// linked names an object with several names.
type linked struct {
	fs [2]uint64
	id uint64
}

// contents are what an object with several names has, once done is closed. If ok is false, it could not be
// read under its first name.
type contents struct {
	left uint32 // names that were not met
	done chan struct{}
	ok   bool
	e    snapshot.Entry
}

// file reads a file, or copies it from its pack, and adds it. What it returns ends the backup.
func (r *run) file(ctx context.Context, d *delta.Dir, h vfs.Handle, e *snapshot.Entry, v *verdict) error {
	c, first := r.link(&e.Attr)
	if c != nil && !first {
		select {
		case <-c.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if c.ok {
			name := e.Name
			*e = c.e
			e.Name = name
			return r.had(ctx, d, e, v)
		}
	}
	r.o.Progress.Working(func() string { return d.Path(e.Name) })
	err := r.content(ctx, d, h, e, v)
	if c != nil && first {
		c.e, c.ok = *e, err == nil
		close(c.done)
	}
	if err != nil {
		if source := (*sourceError)(nil); !errors.As(err, &source) {
			return err // of the store
		}
		return r.failed(ctx, d.Path(e.Name), gone(err))
	}
	if e.Changed {
		r.changed.Add(1)
		r.o.Progress.Report(progress.Event{Type: "note", Kind: "changed", Path: d.Path(e.Name), Message: "it changed while it was read, twice: what was read is kept, and marked"})
	}
	return r.had(ctx, d, e, v)
}

// had adds a file whose content the store has now.
func (r *run) had(ctx context.Context, d *delta.Dir, e *snapshot.Entry, v *verdict) error {
	if v.why == "" {
		return r.keep(ctx, d, e, v)
	}
	return r.add(ctx, d, e)
}

// content has the content of a file stored. What cannot be copied, as it is damaged, is read.
func (r *run) content(ctx context.Context, d *delta.Dir, h vfs.Handle, e *snapshot.Entry, v *verdict) error {
	if v.why == "" {
		if ok, err := r.repacked(ctx, d, h, e, v); ok || err != nil {
			return err
		}
		r.damaged(e, v)
	}
	return r.read(ctx, d, h, e, v.begun)
}

// damaged notes that a file is to be read, as the store has it no more.
func (r *run) damaged(e *snapshot.Entry, v *verdict) {
	v.why = "damaged"
	r.because(v.why)
	r.o.Progress.Add(progress.FoundBytes, e.Attr.Size)
}

// link finds what is known of an object with several names; nil if it has one, or there are too many.
func (r *run) link(a *vfs.Attr) (c *contents, first bool) {
	if a.Nlink < 2 {
		return nil, false
	}
	key := linked{a.FSID, a.FileID}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c = r.links[key]; c != nil {
		if c.left--; c.left == 0 {
			delete(r.links, key)
		}
		return c, false
	}
	if len(r.links) >= maxLinked {
		return nil, false
	}
	c = &contents{left: a.Nlink - 1, done: make(chan struct{})}
	r.links[key] = c
	return c, true
}

// sourceError is an error of the tree, and not of the store.
type sourceError struct{ err error }

func (e *sourceError) Error() string { return e.err.Error() }
func (e *sourceError) Unwrap() error { return e.err }

// source marks err as the tree's; nil is none.
func source(err error) error {
	if err == nil {
		return nil
	}
	return &sourceError{err}
}

// read reads a file until it has not changed meanwhile, twice at most.
func (r *run) read(ctx context.Context, d *delta.Dir, h vfs.Handle, e, begun *snapshot.Entry) error {
	for try := range 2 {
		f, _, err := r.o.FS.Open(ctx, vfs.At{H: h, Label: e.Name}, &vfs.OpenHow{Access: vfs.ShareRead})
		if err != nil {
			return source(err)
		}
		before := e.Attr
		n, err := r.data(ctx, d, f, e, begun)
		begun = nil
		if cerr := f.Close(ctx); err == nil && cerr != nil {
			err = source(cerr)
		}
		if err != nil {
			return err
		}
		r.filesRead.Add(1)
		r.bytesOfRead.Add(n)
		if err := r.extra(ctx, h, e); err != nil {
			return source(err)
		}
		after, err := r.o.FS.GetAttr(ctx, h, vfs.MaskV3)
		if err != nil {
			return source(err)
		}
		same := e.Attr.Size == after.Size && before.Mtime.Equal(after.Mtime) && before.Ctime.Equal(after.Ctime)
		if size := e.Attr.Size; try == 1 || same {
			e.Attr = after
			e.Attr.Size, e.Changed = size, !same
			return nil
		}
		e.Attr = after
	}
	return nil
}

// data stores the data of a file, and sets its size to what there was. n is how many bytes were read.
func (r *run) data(ctx context.Context, d *delta.Dir, f vfs.File, e, begun *snapshot.Entry) (n uint64, err error) {
	s := &stream{ctx: ctx, f: f, size: e.Attr.Size, throttle: r.o.Throttle}
	if e.Attr.Has(vfs.MaskUsed) && e.Attr.Used < e.Attr.Size {
		s.zeros = true
		if s.seek, _ = vfs.As[vfs.HoleSeeker](f); s.seek != nil {
			s.zeros = false
		}
	}
	if begun != nil {
		s.end, s.holes = begun.Attr.Size, begun.Content.Holes
	}
	c, got, err := r.w.Store(r.store, &snapshot.Source{
		R: s, Size: int64(e.Attr.Size), Holes: s.all, Of: e, In: folderOf(d).w, Begun: begun, Each: r.checkpoint,
	})
	if s.err != nil {
		return 0, source(s.err)
	}
	e.Content = c
	e.Attr.Size = s.end
	return uint64(got), err
}
