package transfer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// Part lets the copy of a large file go on where an earlier one ended (Target.Part). From time to time
// what is copied is made stable, and noted. If the copy then ends because its context does, or for want of
// an answer, its temporary stays.
type Part struct {
	// Every is how many bytes are copied from one mark to the next, 1 at least.
	Every uint64
	// Was is what an earlier copy has noted last; zero: nothing. If source and temporary still are those
	// of the mark, the copy goes on behind it. Otherwise that temporary is removed.
	Was Mark
	// Note takes a mark over, to be the Was of a later copy, and reports whether it is kept. If not, no
	// other follows. The zero Mark says that the temporary of the mark before has got the copy's name, or
	// is removed. There is one call at a time.
	Note func(Mark) bool
	// Skipped, if not nil, is called with the number of bytes that an earlier copy has copied. A negative
	// number takes back those of an attempt that failed.
	Skipped func(n int64)
}

// Mark says that the beginning of a file is in a temporary, and stable.
type Mark struct {
	// Of the source, as it was before the first byte was read.
	SourceFSID   [2]uint64
	SourceID     uint64
	Size         uint64
	Mtime, Ctime time.Time

	// Whole is, where files are made whole (vfs.Maker), by what the copy goes on. Temp is a name that tells it from others
	// then, which nothing has, and what follows is zero but for Bytes.
	Whole string

	Temp     string // the temporary's name
	TempFSID [2]uint64
	TempID   uint64
	UID, GID uint32 // of the temporary

	Bytes uint64 // from the beginning of the source
	End   uint64 // of what was written of them: Bytes, or less, as holes are not written
}

// tempMode is the mode of a temporary.
const tempMode = 0o600

// identity are the attributes that tell one object from another.
const identity = vfs.MaskFSID | vfs.MaskFileID

// isOf reports whether a are the attributes of the mark's source, unchanged.
func (m *Mark) isOf(a *vfs.Attr) bool {
	return a.Has(needed|identity) && a.FSID == m.SourceFSID && a.FileID == m.SourceID &&
		a.Size == m.Size && a.Mtime.Equal(m.Mtime) && a.Ctime.Equal(m.Ctime)
}

// IsTemp reports whether a are the attributes of the mark's temporary: the same object, with the owner and
// the mode that it was made with, one name, and all the bytes.
func (m *Mark) IsTemp(a *vfs.Attr) bool {
	return a.Has(vfs.MaskV3) && a.Type == vfs.TypeReg && a.FSID == m.TempFSID && a.FileID == m.TempID &&
		a.UID == m.UID && a.GID == m.GID && a.Mode&0o7777 == tempMode && a.Nlink == 1 && a.Size >= m.End
}

// errDoubt says that a temporary may not be that of the mark.
var errDoubt = errors.New("it may be another file")

// takeUp goes on with the temporary of an earlier copy, if nothing speaks against it. One that does not
// serve is removed. After an error it stays.
func (c *copier) takeUp(ctx context.Context) (taken bool, err error) {
	was := &c.was
	if was.Temp == "" {
		return false, nil
	}
	if err = c.reopen(ctx); err == nil {
		c.temp, c.mark, c.from = was.Temp, *was, was.Bytes
		c.was = Mark{}
		c.skipped(int64(c.from))
		return true, nil
	}
	if c.out != nil {
		closing, cancel := cleanup(ctx)
		defer cancel()
		_ = c.closeOut(closing) // nothing was written
	}
	if broken(ctx, err) {
		return false, fmt.Errorf("go on with the temporary %s: %w", was.Temp, err)
	}
	c.left.add(was.Temp, RemoveTemp(ctx, c.dst, was.Temp, nil))
	c.was = Mark{}
	c.dst.Part.Note(Mark{})
	return false, nil
}

// reopen opens the temporary of c.was, and cuts what follows the mark off. Where a handle follows a name,
// the file that is open may be another than was looked at.
func (c *copier) reopen(ctx context.Context) error {
	was, f := &c.was, c.dst.FS
	if !was.isOf(&c.before) {
		return errDoubt
	}
	h, _, _, err := f.Lookup(ctx, c.dst.Dir, was.Temp)
	if err != nil {
		return err
	}
	attr, err := f.GetAttr(ctx, h, vfs.MaskV3)
	if err != nil {
		return err
	}
	if !was.IsTemp(&attr) {
		return errDoubt
	}
	if c.out, c.made, err = f.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead | vfs.ShareWrite}); err != nil {
		return err
	}
	if c.made.Attr.Has(vfs.MaskV3) && !was.IsTemp(&c.made.Attr) {
		return errDoubt
	}
	c.made.H, c.made.Attr = h, attr
	if _, err := c.out.Truncate(ctx, was.Bytes); err != nil {
		return err
	}
	return c.sameEdges(ctx)
}

// sameEdges compares the first and the last bytes of the temporary with those of the source: a server may
// have lost what it said was stable.
func (c *copier) sameEdges(ctx context.Context) error {
	n := min(edge, c.was.Bytes)
	for _, off := range [...]uint64{0, c.was.Bytes - n} {
		same, err := c.sameAt(ctx, off, int(n))
		if err != nil {
			return err
		}
		if !same {
			return errDoubt
		}
	}
	return nil
}

// broken reports whether a copy that has ended with err was broken off, and another may go on.
func broken(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, vfs.ErrNoAnswer)
}

func (c *copier) skipped(n int64) {
	if c.dst.Part != nil && c.dst.Part.Skipped != nil && n != 0 {
		c.dst.Part.Skipped(n)
	}
}

// note makes a mark, after what it says has become stable. It reports whether further ones are worth it.
func (c *copier) note(ctx context.Context, bytes, end uint64) (more bool, err error) {
	var w vfs.Written
	if err := c.out.Commit(ctx, 0, 0, &w); err != nil {
		return false, fmt.Errorf("commit: %w", err)
	}
	m := c.mark
	if m.Temp == "" {
		attr, err := c.dst.FS.GetAttr(ctx, c.made.H, vfs.MaskV3)
		if err != nil {
			return false, fmt.Errorf("attributes of the temporary: %w", err)
		}
		m = c.sourceMark()
		m.Temp, m.TempFSID, m.TempID, m.UID, m.GID = c.temp, attr.FSID, attr.FileID, attr.UID, attr.GID
		if !m.isOf(&c.before) || !m.IsTemp(&attr) {
			return false, nil // a later copy would not know them again
		}
	}
	if m.Bytes, m.End = bytes, end; !c.dst.Part.Note(m) {
		return false, nil
	}
	c.mark = m
	return true, nil
}

// sourceMark is what a mark says of the source.
func (c *copier) sourceMark() Mark {
	a := &c.before
	return Mark{SourceFSID: a.FSID, SourceID: a.FileID, Size: a.Size, Mtime: a.Mtime, Ctime: a.Ctime}
}

// forgo says that the temporary of the last mark, if any, is none any more.
func (c *copier) forgo() {
	if c.mark.Temp != "" {
		c.dst.Part.Note(Mark{})
	}
}

// milestones are when a pipe notes how far it is. pipe.mu guards them.
type milestones struct {
	note  func(ctx context.Context, bytes, end uint64) (more bool, err error)
	every uint64
	last  uint64              // the bytes of the last mark
	busy  bool                // one is being made
	begun map[uint64]struct{} // where the pieces begin that are not written yet
}

// begin notes that a piece is on its way. p.mu is held.
func (m *milestones) begin(at piece) {
	if m != nil {
		m.begun[at.off] = struct{}{}
	}
}

// mark notes that a piece was written, and makes a mark when it is time. Other workers go on meanwhile.
func (p *pipe) mark(ctx context.Context, at piece) error {
	m := p.milestones
	if m == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(m.begun, at.off)
	bytes := p.pieces.off
	for off := range m.begun {
		bytes = min(bytes, off)
	}
	if m.busy || bytes < m.last || bytes-m.last < m.every {
		return nil
	}
	end := min(p.end, bytes)
	m.busy = true
	p.mu.Unlock()
	more, err := m.note(ctx, bytes, end)
	p.mu.Lock()
	m.busy, m.last = false, bytes
	if !more {
		m.every = math.MaxUint64
	}
	return err
}
