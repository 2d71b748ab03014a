package outage

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// Root returns the root, and its attributes.
func (f *FS) Root(ctx context.Context) (h vfs.Handle, a vfs.Attr, err error) {
	err = f.s.ask(ctx, func(ctx context.Context) (err error) {
		h, a, err = f.below.Root(ctx)
		return err
	})
	if err == nil {
		f.s.noteRoot(h, &a)
		return h, a, nil
	}
	if h, a, ok := f.s.rootMeanwhile(err); ok {
		return h, a, nil
	}
	return h, a, err
}

// Info passes through.
func (f *FS) Info(ctx context.Context, h vfs.Handle, want vfs.InfoMask) (info vfs.Info, err error) {
	err = f.s.ask(ctx, func(ctx context.Context) (err error) {
		info, err = f.below.Info(ctx, h, want)
		return err
	})
	return info, err
}

// GetAttr returns the attributes, or those that are remembered.
func (f *FS) GetAttr(ctx context.Context, h vfs.Handle, want vfs.Mask) (a vfs.Attr, err error) {
	err = f.s.ask(ctx, func(ctx context.Context) (err error) {
		a, err = f.below.GetAttr(ctx, h, want)
		return err
	})
	if err == nil {
		f.s.noteAttr(h, &a)
		return a, nil
	}
	if a, ok := f.s.attrMeanwhile(h, err); ok && a.Has(want&^vfs.MaskHandle&vfs.MaskV3) {
		return a, nil
	}
	return a, err
}

// Access returns the rights, or those that are remembered of this caller.
func (f *FS) Access(ctx context.Context, h vfs.Handle, want vfs.Access) (got vfs.Access, a vfs.Attr, err error) {
	err = f.s.ask(ctx, func(ctx context.Context) (err error) {
		got, a, err = f.below.Access(ctx, h, want)
		return err
	})
	if err == nil {
		f.s.noteRights(h, f.who, want, got, &a)
		return got, a, nil
	}
	if got, a, ok := f.s.rightsMeanwhile(h, f.who, want, err); ok {
		return got, a, nil
	}
	return got, a, err
}

// Lookup finds name, or what it was when this caller could look it up.
func (f *FS) Lookup(ctx context.Context, dir vfs.Handle, name string) (h vfs.Handle, a, dirAttr vfs.Attr, err error) {
	err = f.s.ask(ctx, func(ctx context.Context) (err error) {
		h, a, dirAttr, err = f.below.Lookup(ctx, dir, name)
		return err
	})
	if err == nil {
		f.s.noteName(dir, name, h)
		f.s.noteAttr(h, &a)
		f.s.noteRights(dir, f.who, vfs.AccessLookup, vfs.AccessLookup, &dirAttr)
		return h, a, dirAttr, nil
	}
	if h, a, dirAttr, ok := f.s.nameMeanwhile(dir, name, f.who, err); ok {
		return h, a, dirAttr, nil
	}
	return h, a, dirAttr, err
}

// Readlink passes through.
func (f *FS) Readlink(ctx context.Context, h vfs.Handle) (target string, a vfs.Attr, err error) {
	err = f.s.ask(ctx, func(ctx context.Context) (err error) {
		target, a, err = f.below.Readlink(ctx, h)
		return err
	})
	return target, a, err
}

// ReadDir lists as long as each entry comes in time.
func (f *FS) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, maxBytes uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		s := f.s
		if s.silent.Load() {
			yield(nil, errSilent)
			return
		}
		bounded, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		late := func() { cancel(context.DeadlineExceeded) }
		began, timer := s.now(), time.AfterFunc(s.o.Answer, late)
		defer timer.Stop()
		for e, err := range f.below.ReadDir(bounded, dir, from, want, maxBytes) {
			timer.Stop()
			if err != nil {
				if errors.Is(context.Cause(bounded), context.DeadlineExceeded) && ctx.Err() == nil {
					err = context.DeadlineExceeded
				}
				yield(nil, s.judge(ctx, began, err))
				return
			}
			s.noteEntry(dir, e)
			if !yield(e, nil) {
				s.heard.Store(s.now())
				return
			}
			began, timer = s.now(), time.AfterFunc(s.o.Answer, late)
		}
		s.heard.Store(s.now())
	}
}

// SetAttr changes attributes. With a guard it is a change that must not be made twice.
func (f *FS) SetAttr(ctx context.Context, h vfs.Handle, set *vfs.SetAttr, guard *time.Time) (wcc vfs.WCC, err error) {
	if guard != nil {
		set, guard := *set, *guard
		out := f.change(ctx, keyOf("setattr", f.who, h, set, guard), func(ctx context.Context) (o outcome) {
			o.wcc, o.err = f.below.SetAttr(ctx, h, &set, &guard)
			return o
		})
		wcc, err = out.wcc, out.err
	} else {
		err = f.s.ask(ctx, func(ctx context.Context) (err error) {
			wcc, err = f.below.SetAttr(ctx, h, set, nil)
			return err
		})
	}
	f.s.noteChange(h, &wcc, err)
	return wcc, err
}

// Create makes an object.
func (f *FS) Create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (vfs.Handle, vfs.Attr, vfs.WCC, error) {
	own := *how
	out := f.change(ctx, keyOf("create", f.who, dir, name, own), func(ctx context.Context) (o outcome) {
		o.h, o.attr, o.wcc, o.err = f.below.Create(ctx, dir, name, &own)
		return o
	})
	f.s.noteChange(dir, &out.wcc, out.err)
	f.s.forgetName(dir, name, out.err)
	if out.err == nil {
		f.s.noteAttr(out.h, &out.attr)
	}
	return out.h, out.attr, out.wcc, out.err
}

// Link makes a further name.
func (f *FS) Link(ctx context.Context, h, dir vfs.Handle, name string) (vfs.Attr, vfs.WCC, error) {
	out := f.change(ctx, keyOf("link", f.who, h, dir, name), func(ctx context.Context) (o outcome) {
		o.attr, o.wcc, o.err = f.below.Link(ctx, h, dir, name)
		return o
	})
	f.s.noteChange(dir, &out.wcc, out.err)
	f.s.noteChange(h, &vfs.WCC{After: out.attr}, out.err)
	f.s.forgetName(dir, name, out.err)
	return out.attr, out.wcc, out.err
}

// Remove takes a name away.
func (f *FS) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (vfs.WCC, error) {
	out := f.change(ctx, keyOf("remove", f.who, dir, name, isDir), func(ctx context.Context) (o outcome) {
		o.wcc, o.err = f.below.Remove(ctx, dir, name, isDir)
		return o
	})
	f.s.noteChange(dir, &out.wcc, out.err)
	f.s.forgetName(dir, name, out.err)
	return out.wcc, out.err
}

// Rename moves a name.
func (f *FS) Rename(ctx context.Context, fromDir vfs.Handle, fromName string, toDir vfs.Handle, toName string) (from, to vfs.WCC, err error) {
	out := f.change(ctx, keyOf("rename", f.who, fromDir, fromName, toDir, toName), func(ctx context.Context) (o outcome) {
		o.wcc, o.to, o.err = f.below.Rename(ctx, fromDir, fromName, toDir, toName)
		return o
	})
	f.s.noteChange(fromDir, &out.wcc, out.err)
	f.s.noteChange(toDir, &out.to, out.err)
	f.s.forgetName(fromDir, fromName, out.err)
	f.s.forgetName(toDir, toName, out.err)
	return out.wcc, out.to, out.err
}
