package attrcache

import (
	"context"
	"errors"
	"iter"

	"github.com/nfsbox/nfsbox/vfs"
)

// allRights are asked for at once: one answer then does for all questions.
const allRights = vfs.AccessRead | vfs.AccessLookup | vfs.AccessModify | vfs.AccessExtend | vfs.AccessDelete | vfs.AccessExecute

// Root returns what is kept of the root, or asks for it.
func (f *FS) Root(ctx context.Context) (vfs.Handle, vfs.Attr, error) {
	if err := ctx.Err(); err != nil {
		return vfs.Handle{}, vfs.Attr{}, err
	}
	s := f.s
	s.mu.Lock()
	root := s.root
	a, known, q := s.kept(&root, vfs.MaskV3)
	s.count(known)
	s.mu.Unlock()
	if known {
		return root, a, nil
	}
	h, a, err := f.asked.Root(ctx)
	if err == nil {
		s.mu.Lock()
		s.root = h
		s.mu.Unlock()
		s.heard(h, &a, vfs.MaskV3, q)
	}
	return h, a, err
}

// Info passes through.
func (f *FS) Info(ctx context.Context, h vfs.Handle, want vfs.InfoMask) (vfs.Info, error) {
	return f.inner.Info(ctx, h, want)
}

// GetAttr returns what is kept, or asks for it.
func (f *FS) GetAttr(ctx context.Context, h vfs.Handle, want vfs.Mask) (vfs.Attr, error) {
	if err := ctx.Err(); err != nil {
		return vfs.Attr{}, err
	}
	f.s.mu.Lock()
	a, known, q := f.s.kept(&h, want)
	f.s.count(known)
	f.s.mu.Unlock()
	if known {
		return a, nil
	}
	a, err := f.asked.GetAttr(ctx, h, want|vfs.MaskV3)
	f.s.answered(h, &a, want, q, err)
	return a, err
}

// kept returns h's attributes, if they are believed and there is no more to be had. Else q is the question to the FS
// below. s.mu is held.
func (s *shared) kept(h *vfs.Handle, want vfs.Mask) (a vfs.Attr, known bool, q ask) {
	q = s.ticket()
	o := s.objects.get(h)
	if o == nil || !s.believed(o, q.at) || want&^(o.attr.Valid|o.wanted|vfs.MaskHandle) != 0 {
		return a, false, q
	}
	return o.attr, true, q
}

// heard takes over attributes that came for q.
func (s *shared) heard(h vfs.Handle, a *vfs.Attr, wanted vfs.Mask, q ask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enter(&h, a, wanted, q)
}

// answered takes over an answer about h.
func (s *shared) answered(h vfs.Handle, a *vfs.Attr, wanted vfs.Mask, q ask, err error) {
	if err != nil {
		s.failed(h, err)
		return
	}
	s.heard(h, a, wanted, q)
}

// failed is called with an error about h.
func (s *shared) failed(h vfs.Handle, err error) {
	if errors.Is(err, vfs.ErrStale) && !h.IsZero() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.gone(&h)
	}
}

// Access returns what is kept of this caller's rights, or asks for it.
func (f *FS) Access(ctx context.Context, h vfs.Handle, want vfs.Access) (vfs.Access, vfs.Attr, error) {
	if err := ctx.Err(); err != nil {
		return 0, vfs.Attr{}, err
	}
	granted, a, known, q := f.s.access(h, f.who, want)
	if known {
		return granted, a, nil
	}
	granted, a, err := f.asked.Access(ctx, h, want|allRights)
	if err != nil {
		f.s.failed(h, err)
		return 0, a, err
	}
	f.s.judged(h, f.who, want|allRights, granted, &a, q)
	return granted & want, a, nil
}

func (s *shared) access(h vfs.Handle, who string, want vfs.Access) (granted vfs.Access, a vfs.Attr, known bool, q ask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.count(known) }()
	q = s.ticket()
	o := s.objects.get(&h)
	if o == nil || !s.quiet(o) {
		return 0, a, false, q
	}
	if granted, known = o.may(who, want, q.at); known {
		a = s.attrOf(o, q.at)
	}
	return granted, a, known, q
}

// judged takes over an answer to ACCESS. Without the attributes that it was given by it is not kept: they tell whether
// it is older than what is known.
func (s *shared) judged(h vfs.Handle, who string, asked, granted vfs.Access, a *vfs.Attr, q ask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.agree(&h, a, q); o != nil {
		o.permit(who, asked, granted, q)
	}
}

// Lookup returns what is kept of a name, or asks for it.
func (f *FS) Lookup(ctx context.Context, dir vfs.Handle, called string) (h vfs.Handle, attr, dirAttr vfs.Attr, err error) {
	if err := ctx.Err(); err != nil {
		return h, attr, dirAttr, err
	}
	h, attr, dirAttr, known, q := f.s.lookup(dir, called, f.who)
	switch {
	case !known:
	case h.IsZero():
		return h, attr, dirAttr, vfs.ErrNoEnt
	default:
		return h, attr, dirAttr, nil
	}
	h, attr, dirAttr, err = f.asked.Lookup(ctx, dir, called)
	switch {
	case err == nil:
		f.s.found(dir, called, f.who, h, &attr, &dirAttr, q)
	case errors.Is(err, vfs.ErrNoEnt):
		f.s.found(dir, called, f.who, vfs.Handle{}, &attr, &dirAttr, q)
	default:
		f.s.failed(dir, err)
	}
	return h, attr, dirAttr, err
}

// Readlink passes through.
func (f *FS) Readlink(ctx context.Context, h vfs.Handle) (string, vfs.Attr, error) {
	q := f.s.begin()
	target, a, err := f.asked.Readlink(ctx, h)
	f.s.answered(h, &a, 0, q, err)
	return target, a, err
}

// ReadDir passes through. What comes with the entries is kept.
func (f *FS) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, maxBytes uint32) iter.Seq2[*vfs.Entry, error] {
	all := f.asked.ReadDir(ctx, dir, from, want, maxBytes)
	return func(yield func(*vfs.Entry, error) bool) {
		l := f.s.list(dir)
		for e, err := range all {
			switch {
			case err != nil:
				f.s.failed(dir, err)
			case !e.Handle.IsZero():
				f.s.listed(&l, e)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}
