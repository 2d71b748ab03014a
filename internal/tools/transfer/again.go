package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/vfs"
)

// tries are the attempts to copy one file.
type tries struct {
	src              *Source
	fresh            bool      // src.Attr was asked for, after the listing
	first            *vfs.Attr // what the first attempt found, before its reads changed atime
	changes, lookups int
	left             leftTemps // of all attempts
	was              Mark      // of an earlier copy, until an attempt has gone on from it, or removed its temporary
}

// again brings the source up to date for another attempt, after c has failed with err. If it
// returns an error, there is no other attempt.
func (t *tries) again(ctx context.Context, c *copier, err error) error {
	if ctx.Err() != nil {
		return err
	}
	switch {
	case movedOn(err):
		return t.lookup(ctx, err)
	case errors.Is(err, ErrChanged) && !c.fresh: // since the listing, it may be
	case errors.Is(err, ErrChanged) && t.changes < maxChanges:
		t.changes++
	default:
		return err
	}
	if t.first == nil {
		t.first = &c.before
	}
	attr, err := t.src.attributes(ctx)
	if movedOn(err) {
		return t.lookup(ctx, err)
	}
	t.src.Attr, t.fresh = attr, true
	return err
}

// lookup finds the file that has the source's name now. err says that the file which was
// listed is gone.
func (t *tries) lookup(ctx context.Context, err error) error {
	for ; t.src.Name != "" && t.lookups < maxLookups; t.lookups++ {
		next, lerr := t.src.again(ctx)
		if movedOn(lerr) {
			err = lerr
			continue
		}
		if lerr != nil {
			return lerr
		}
		t.lookups++
		*t.src, t.fresh, t.first = next, true, nil
		return nil
	}
	if t.src.Name != "" && (errors.Is(err, vfs.ErrStale) || errors.Is(err, vfs.ErrNoEnt)) {
		return fmt.Errorf("%w: its name goes from file to file (%w)", ErrChanged, err)
	}
	return err
}

// again looks the source's name up again. If the name now belongs to an object of another type,
// that is ErrChanged.
func (s *Source) again(ctx context.Context) (Source, error) {
	next := *s
	var err error
	next.Handle, next.Attr, _, err = s.FS.Lookup(ctx, s.Dir, s.Name)
	switch {
	case errors.Is(err, vfs.ErrNoEnt), errors.Is(err, vfs.ErrStale), errors.Is(err, vfs.ErrNotDir):
		return next, fmt.Errorf("the %v %w: %w", s.Attr.Type, ErrVanished, err)
	case err != nil:
		return next, fmt.Errorf("look the source up again: %w", err)
	}
	if !next.Attr.Has(needed | vfs.MaskType) {
		if next.Attr, err = next.attributes(ctx); err != nil {
			return next, err
		}
	}
	if next.Attr.Has(vfs.MaskType) && s.Attr.Has(vfs.MaskType) && next.Attr.Type != s.Attr.Type {
		return next, fmt.Errorf("%w: its name is that of a %v now", ErrChanged, next.Attr.Type)
	}
	return next, nil
}

// attributes asks the source's server for its attributes, past all that is kept of them. An error says that a copy needs one that did
// not come.
func (s *Source) attributes(ctx context.Context) (vfs.Attr, error) {
	a, err := vfs.Anew(s.FS).GetAttr(ctx, s.Handle, vfs.MaskV3)
	if err == nil && !a.Has(needed) {
		err = fmt.Errorf("the peer sent too few: %w", vfs.ErrServerFault)
	}
	if err != nil {
		return a, &sourceError{err: fmt.Errorf("attributes of the source: %w", err)}
	}
	return a, nil
}

// sourceError marks an error as the source's. From the destination the same status means
// something else.
type sourceError struct {
	err     error
	opening bool // to open the file failed, or to read the link
}

func (e *sourceError) Error() string { return e.err.Error() }
func (e *sourceError) Unwrap() error { return e.err }

// movedOn reports whether err says that the source is gone. Where a handle follows a name, an
// object of another type may have taken it: then opening the file fails.
func movedOn(err error) bool {
	e, ok := errors.AsType[*sourceError](err)
	if !ok {
		return false
	}
	for _, s := range [...]vfs.Status{vfs.ErrInval, vfs.ErrIsDir, vfs.ErrNotDir} {
		if e.opening && errors.Is(e, s) {
			return true
		}
	}
	return errors.Is(e, vfs.ErrStale) || errors.Is(e, vfs.ErrNoEnt)
}

// attributesAfter asks for the source's attributes after all was read. Where a handle follows a
// name, another file may have taken the name by now. Then the open File is asked instead: a
// READ at its end returns the attributes of the file that was read.
func (c *copier) attributesAfter(ctx context.Context) (vfs.Attr, error) {
	after, err := c.src.attributes(ctx)
	if err == nil && sameFile(&c.before, &after) || err != nil && !movedOn(err) {
		return after, err
	}
	var post vfs.Attr
	if _, _, rerr := c.in.ReadAt(ctx, make([]byte, 1), c.before.Size, &post); rerr == nil && post.Has(needed) {
		return post, nil
	}
	return after, err
}

// sameFile reports whether a and b may be attributes of one file.
func sameFile(a, b *vfs.Attr) bool {
	return !a.Has(vfs.MaskFileID) || !b.Has(vfs.MaskFileID) || a.FileID == b.FileID
}

// edge is how many bytes, at the start and at the end of a copy, are compared with a source
// that has grown.
const edge = 64 << 10

// kept reports whether the copy is good although the source has changed while it was read:
// bytes were only appended, or none has changed.
func (c *copier) kept(ctx context.Context, after *vfs.Attr) (bool, error) {
	switch {
	case !c.fresh || !sameFile(&c.before, after):
		return false, nil
	case after.Size == c.before.Size && after.Mtime.Equal(c.before.Mtime):
		return c.sameBytes(ctx)
	}
	grew, err := c.grew(ctx, after)
	c.longer = grew
	return grew, err
}

// sameBytes compares the whole copy with a source whose ctime alone has changed: it was
// linked, unlinked or given rights, or written to and dated back. That costs another READ.
// Another attempt would cost a copy, and may meet the next link.
func (c *copier) sameBytes(ctx context.Context) (bool, error) {
	for off := uint64(0); off < c.before.Size; off += c.o.chunk() {
		same, err := c.sameAt(ctx, off, int(min(c.o.chunk(), c.before.Size-off)))
		if !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

// grew reports whether the source has only been appended to, as far as can be told at little
// cost: it is longer, and its first and last bytes up to its first size are the copy's. Those
// of a file that was cut and written anew are not.
func (c *copier) grew(ctx context.Context, after *vfs.Attr) (bool, error) {
	if after.Size <= c.before.Size {
		return false, nil
	}
	n := min(edge, c.before.Size)
	for _, off := range [...]uint64{0, c.before.Size - n} {
		if same, err := c.sameAt(ctx, off, int(n)); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

// sameAt compares n bytes of the copy with those of the source.
func (c *copier) sameAt(ctx context.Context, off uint64, n int) (bool, error) {
	if n == 0 {
		return true, nil
	}
	a, b := c.o.Pool.Get(n), c.o.Pool.Get(n)
	defer a.Release()
	defer b.Release()
	na, err := readFull(ctx, c.in, a.B, off, nil)
	if err != nil {
		return false, &sourceError{err: fmt.Errorf("read at %d again: %w", off, err)}
	}
	nb, err := readFull(ctx, c.out, b.B, off, nil)
	if c.whole != nil && errors.Is(err, vfs.ErrNotSupp) {
		return false, nil // it is not here any more
	}
	if err != nil {
		return false, fmt.Errorf("read the copy at %d: %w", off, err)
	}
	return na == n && nb == n && bytes.Equal(a.B, b.B), nil
}
