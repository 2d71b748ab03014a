package transfer

import (
	"context"
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/vfs"
)

// wholeAttrs are the attributes that an object gets where objects are made whole (vfs.Maker), and what of a source cannot be
// kept there. Without owners to be kept, there are no set-id bits: they would speak for whoever is the owner when it is copied back.
func (o *Options) wholeAttrs(of *vfs.Attr, l *Lists) (a vfs.Attr, lost Lost) {
	a = *of
	a.Mode = l.Mode & 0o7777
	if o.Owners == nil {
		set := settings(&a, vfs.MaskUID|vfs.MaskGID)
		lost.SetID = a.Has(vfs.MaskMode) && a.Type != vfs.TypeSymlink && set.Mode != a.Mode
		a.Mode = set.Mode
		a.Valid &^= vfs.MaskUID | vfs.MaskGID
	}
	lost.ACL = l.Named
	return a, lost
}

// beginWhole begins a copy that gets its name and its attributes with its last byte.
func (c *copier) beginWhole(ctx context.Context, m vfs.Maker) (err error) {
	c.lists.Mode = c.before.Mode & 0o7777
	if _, ok := c.o.listed.worth(c.src, &c.before); ok && c.listed {
		if c.lists, err = c.o.Lists(ctx, c.src, &c.before); err != nil {
			return err
		}
	}
	c.attr, c.lost = c.o.wholeAttrs(&c.before, &c.lists)
	c.lost.Xattr = c.marked
	if c.lost.Holes, err = c.hasHoles(ctx); err != nil {
		return err
	}
	was, err := c.wasWhole(ctx, m)
	if err != nil {
		return err
	}
	if c.whole, err = m.Make(ctx, c.dst.Dir, c.dst.Name, &c.attr, was.Whole); err != nil {
		return fmt.Errorf("begin the copy: %w", err)
	}
	c.out, c.was = c.whole, Mark{}
	return c.noteWhole(&was)
}

// wasWhole is what an earlier copy has noted of this very source. What it has left of another one is removed.
func (c *copier) wasWhole(ctx context.Context, m vfs.Maker) (Mark, error) {
	was := c.was
	if was.Whole == "" || was.isOf(&c.before) {
		return was, nil
	}
	if err := m.Unmake(ctx, was.Whole); err != nil {
		return was, fmt.Errorf("remove what an earlier copy has left: %w", err)
	}
	c.dst.Part.Note(Mark{})
	return Mark{}, nil
}

// noteWhole notes by what a later copy goes on.
func (c *copier) noteWhole(was *Mark) (err error) {
	m := c.sourceMark()
	if m.Whole = c.whole.Mark(); c.dst.Part == nil || m.Whole == "" {
		return nil
	}
	if m.Whole == was.Whole && c.whole.Resumed() > 0 {
		m.Temp, c.from = was.Temp, c.whole.Resumed()
	} else {
		if was.Whole != "" {
			c.dst.Part.Note(Mark{})
		}
		if m.Temp, err = c.o.tempName(c.dst.Tag); err != nil {
			return err
		}
	}
	m.Bytes = c.from
	if m.isOf(&c.before) && c.dst.Part.Note(m) {
		c.mark = m
	}
	c.skipped(int64(c.from))
	return nil
}

// discardWhole ends a copy that has failed with err. What a later copy can go on with stays.
func (c *copier) discardWhole(ctx context.Context, err error) {
	kept := c.mark.Temp != "" && broken(ctx, err)
	if kept {
		c.whole.Keep()
	}
	if c.out == c.whole {
		closing, cancel := cleanup(ctx)
		defer cancel()
		if cerr := c.closeOut(closing); cerr != nil && !kept {
			c.left.names, c.left.why = append(c.left.names, "parts of "+c.dst.Name), cerr
		}
	}
	if !kept {
		c.forgo()
	}
}

// movedWhole counts n bytes that were given to a copy. Those that an earlier one has put are counted already.
func (c *copier) movedWhole(n int) int {
	now := c.given.Add(int64(n))
	return int(max(now-max(now-int64(n), int64(c.from)), 0))
}

// hasHoles reports whether the source has a hole, as far as it can tell.
func (c *copier) hasHoles(ctx context.Context) (bool, error) {
	p := pieces{size: c.before.Size, chunk: 1}
	if p.seek(c.in, &c.before); p.holes == nil {
		return false, nil
	}
	hole, err := p.look(ctx)
	if err != nil {
		return false, &sourceError{err: err}
	}
	return hole.n > 0 || p.holes != nil && p.data < p.size, nil
}

// fillWhole writes the copy.
func (c *copier) fillWhole(ctx context.Context) (Result, error) {
	if err := c.contents(ctx); err != nil {
		return Result{}, err
	}
	return Result{
		Source: c.before, Bytes: c.before.Size, Grew: c.longer, Lost: c.lost, Listed: c.lists.Some(), Marked: c.marked,
	}, nil
}

// publishWhole gives the copy its name. Only then it can be read back: one that differs is removed again, and one that could not be
// read stays.
func (c *copier) publishWhole(ctx context.Context, res *Result) (err error) {
	if res.Handle, res.Attr, err = c.whole.Publish(ctx); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	if err := c.closeOut(ctx); err != nil {
		return err
	}
	if res.Attr.Has(vfs.MaskSize) && res.Attr.Size != c.before.Size {
		return fmt.Errorf("the copy has %d bytes instead of %d: %w", res.Attr.Size, c.before.Size, vfs.ErrServerFault)
	}
	if c.sum == nil {
		return nil
	}
	if c.out, _, err = c.dst.FS.Open(ctx, vfs.At{H: res.Handle}, &vfs.OpenHow{Access: vfs.ShareRead}); err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	err = join(c.verify(ctx), c.closeOut(ctx))
	switch {
	case err == nil:
		res.Verified = true
		return nil
	case !errors.Is(err, ErrVerify):
		return err
	}
	removing, cancel := cleanup(ctx)
	defer cancel()
	if _, rerr := c.dst.FS.Remove(removing, c.dst.Dir, c.dst.Name, false); rerr != nil {
		return join(err, fmt.Errorf("remove it again: %w", rerr))
	}
	return err
}

// symlinkWhole is Symlink where objects are made whole.
func symlinkWhole(ctx context.Context, m vfs.Maker, src *Source, dst *Target, target string, o *Options) (Result, error) {
	there, attr, _, err := dst.FS.Lookup(ctx, dst.Dir, dst.Name)
	if err == nil {
		err = src.Spares(ctx, dst.FS, there, &attr)
	} else if errors.Is(err, vfs.ErrNoEnt) {
		err = nil
	}
	if err != nil {
		return Result{}, err
	}
	want, lost := o.wholeAttrs(&src.Attr, &Lists{Mode: src.Attr.Mode})
	lost.Xattr = src.HasXattrs(ctx)
	h, now, err := m.MakeLink(ctx, dst.Dir, dst.Name, target, &want)
	if err != nil {
		return Result{}, fmt.Errorf("make the link: %w", err)
	}
	return Result{Source: src.Attr, Handle: h, Attr: now, Lost: lost}, nil
}
