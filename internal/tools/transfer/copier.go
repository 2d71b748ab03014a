package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/vfs"
)

// copier is one attempt to copy a file.
type copier struct {
	src   *Source
	dst   *Target
	o     *Options
	first *vfs.Attr    // what an earlier attempt found, before its reads changed atime
	moved atomic.Int64 // bytes told to o.Moved

	in, out  vfs.File
	before   vfs.Attr   // of the source
	fresh    bool       // before is from the time of this attempt, not of a listing
	temp     string     // its name
	left     leftTemps  // of this attempt, and of those before it
	made     vfs.Opened // the temporary
	unstable bool       // a COMMIT is needed
	sum      *digest    // of what was read; nil without Options.Verify
	syncer   vfs.Syncer // nil if the destination needs none
	longer   bool       // the source is longer by now
	sizeless bool       // the source has bytes, of which its size does not tell
	stated   uint64     // the size that it states then
	lists    Lists      // of the source
	marked   bool       // the source has extended attributes
	listed   bool       // the source may have an access control list

	whole vfs.Making   // the copy, where files are made whole: nil elsewhere
	attr  vfs.Attr     // that it is made with
	lost  Lost         // what of the source it cannot have
	given atomic.Int64 // bytes that were written to it

	was    Mark   // of an earlier copy
	from   uint64 // what it has copied
	mark   Mark   // the last that was noted
	ending bool   // the temporary has other attributes by now, which no later copy knows
}

// copy makes the attempt and cleans up behind it.
func (c *copier) copy(ctx context.Context) (res Result, err error) {
	if err := c.openSource(ctx); err != nil {
		return res, err
	}
	defer func() {
		if c.in != nil {
			err = join(err, c.closeSource(ctx))
		}
	}()
	if err := c.begin(ctx); err != nil {
		return res, err
	}
	res, err = c.fill(ctx)
	if err == nil {
		// From here on the copy exists or not; nothing else may fail.
		if err = c.publish(ctx, &res); err == nil {
			c.forgo()
			return res, nil
		}
	}
	c.discard(ctx, err)
	return res, err
}

// begin makes what the copy is written to.
func (c *copier) begin(ctx context.Context) error {
	if m, ok := vfs.As[vfs.Maker](c.dst.FS); ok {
		return c.beginWhole(ctx, m)
	}
	taken, err := c.takeUp(ctx)
	if err == nil && !taken {
		err = c.makeTemp(ctx)
	}
	return err
}

// join is err, and then what else went wrong because of it, in one line.
func join(err, then error) error {
	switch {
	case then == nil:
		return err
	case err == nil:
		return then
	}
	return fmt.Errorf("%w; then %w", err, then)
}

// publish gives the temporary its name. After a restart of the server it may be unknown whether
// that was done. Then the object that has the name tells.
func (c *copier) publish(ctx context.Context, res *Result) error {
	if c.whole != nil {
		return c.publishWhole(ctx, res)
	}
	_, _, err := c.dst.FS.Rename(ctx, c.dst.Dir, c.temp, c.dst.Dir, c.dst.Name)
	if err == nil {
		return nil
	}
	if errors.Is(err, vfs.ErrUnknownOutcome) && ctx.Err() == nil {
		if h, _, _, lerr := c.dst.FS.Lookup(ctx, c.dst.Dir, c.dst.Name); lerr == nil && h == c.made.H {
			return nil
		}
	}
	return inTheWay("rename", err)
}

// openSource opens the source and finds out its attributes before it is read. For a file of one
// chunk those of the listing suffice: if they are out of date, another attempt costs little.
func (c *copier) openSource(ctx context.Context) error {
	in, opened, err := c.src.FS.Open(ctx, vfs.At{H: c.src.Handle, Label: c.src.Name}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		return &sourceError{err: fmt.Errorf("open the source: %w", err), opening: true}
	}
	c.in = in
	c.marked, c.listed = c.src.extras(ctx, in)
	switch known := c.src.Attr.Has(needed); {
	case opened.Attr.Has(needed):
		c.before, c.fresh = opened.Attr, true
	case known && (c.fresh || c.src.Attr.Size <= c.o.chunk()):
		c.before = c.src.Attr
	default:
		if c.before, err = c.src.attributes(ctx); err != nil {
			return join(err, c.closeSource(ctx))
		}
		c.fresh = true
	}
	if c.first != nil && c.first.Has(vfs.MaskAtime) {
		c.before.Atime = c.first.Atime
	}
	return nil
}

// needed are the attributes of a source that a copy cannot do without.
const needed = vfs.MaskSize | vfs.MaskMtime | vfs.MaskCtime | vfs.MaskMode

func (c *copier) closeSource(ctx context.Context) error {
	ctx, cancel := cleanup(ctx)
	defer cancel()
	in := c.in
	c.in = nil
	if err := in.Close(ctx); err != nil {
		return fmt.Errorf("close the source: %w", err)
	}
	return nil
}

// makeTemp creates the temporary. If a name with our random number exists, it can only be of a
// call of ours that was sent twice. So it is removed, and another name is tried.
func (c *copier) makeTemp(ctx context.Context) error {
	how := vfs.OpenHow{Access: vfs.ShareRead | vfs.ShareWrite, Create: &vfs.CreateHow{
		Type: vfs.TypeReg,
		Mode: vfs.CreateGuarded,
		Set:  vfs.SetAttr{Valid: vfs.MaskMode, Mode: tempMode},
	}}
	var err error
	lost := 0
	for range maxTempNames {
		if c.temp, err = c.o.tempName(c.dst.Tag); err != nil {
			return err
		}
		if err = c.openTemp(ctx, &how); err == nil {
			return nil
		}
		err = frozen("create a temporary", err)
		unknown, exists := errors.Is(err, vfs.ErrUnknownOutcome), errors.Is(err, vfs.ErrExist)
		if !unknown && !exists {
			return err
		}
		// A call that was sent again after a server's restart meets its own file. Whether
		// that file was made or not, it is removed, and another name does as well.
		rerr := RemoveTemp(ctx, c.dst, c.temp, err)
		c.left.add(c.temp, rerr)
		if rerr != nil && !errors.Is(rerr, errOvertaken) {
			return err
		}
		if !exists {
			lost++
		}
		if lost == maxLostCreates || ctx.Err() != nil {
			break
		}
	}
	return err
}

// openTemp makes the temporary. Once that is asked for, the answer is waited for.
func (c *copier) openTemp(ctx context.Context, how *vfs.OpenHow) (err error) {
	if err = ctx.Err(); err != nil {
		return err
	}
	ctx, end := whileMade(ctx)
	defer end()
	c.out, c.made, err = c.dst.FS.Open(ctx, vfs.At{Dir: c.dst.Dir, Name: c.temp}, how)
	return err
}

// discard closes the temporary and removes it, after the copy has failed with err. One from which a later
// copy can go on stays. An error of its Close does not matter.
func (c *copier) discard(ctx context.Context, err error) {
	if c.whole != nil {
		c.discardWhole(ctx, err)
		return
	}
	closing, cancel := cleanup(ctx)
	defer cancel()
	if c.out != nil {
		_ = c.closeOut(closing)
	}
	if c.mark.Temp != "" && !c.ending && broken(ctx, err) {
		return
	}
	c.left.add(c.temp, RemoveTemp(ctx, c.dst, c.temp, nil))
	c.forgo()
}

func (c *copier) closeOut(ctx context.Context) error {
	out := c.out
	c.out = nil
	if err := out.Close(ctx); err != nil {
		return fmt.Errorf("close the copy: %w", err)
	}
	return nil
}

// fill makes the temporary a complete copy.
func (c *copier) fill(ctx context.Context) (res Result, err error) {
	if c.o.Verify {
		c.sum = newDigest()
	}
	if c.whole != nil {
		return c.fillWhole(ctx)
	}
	c.syncer, _ = vfs.As[vfs.Syncer](c.dst.FS)
	if err := c.contentsAndMode(ctx); err != nil {
		return res, err
	}
	res = Result{Source: c.before, Handle: c.made.H, Attr: c.made.Attr, Bytes: c.before.Size, Grew: c.longer, Left: c.left.names}
	if c.syncer == nil || c.o.Verify {
		err = c.commit(ctx)
	}
	if err == nil && c.o.Verify {
		// Before the times are set: reading changes one of them.
		res.Verified = true
		err = c.verify(ctx)
	}
	if err == nil {
		c.ending = true
		err = c.attributes(ctx, &res)
	}
	if err == nil && c.syncer != nil {
		err = c.settle(ctx)
	}
	if err == nil {
		err = c.closeOut(ctx)
	}
	if err == nil && res.Attr.Has(vfs.MaskSize) && res.Attr.Size != c.before.Size {
		err = fmt.Errorf("the copy has %d bytes instead of %d: %w", res.Attr.Size, c.before.Size, vfs.ErrServerFault)
	}
	return res, err
}

// contentsAndMode copies the bytes, and asks for the access control list meanwhile, if
// there may be one.
func (c *copier) contentsAndMode(ctx context.Context) error {
	c.lists.Mode = c.before.Mode & 0o7777
	if _, ok := c.o.listed.worth(c.src, &c.before); !ok || !c.listed {
		return c.contents(ctx)
	}
	var wg sync.WaitGroup
	var aclErr error
	wg.Go(func() { c.lists, aclErr = c.o.Lists(ctx, c.src, &c.before) })
	err := c.contents(ctx)
	wg.Wait()
	if err == nil {
		err = aclErr
	}
	return err
}

// contents copies the bytes, and makes sure that the source did not change meanwhile.
func (c *copier) contents(ctx context.Context) error {
	after, err := c.pump(ctx)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if !after.Has(needed) {
		var gerr error
		if after, gerr = c.attributesAfter(ctx); gerr != nil {
			return gerr
		}
	}
	switch same := unchanged(&c.before, &after); {
	case c.sizeless && after.Size == c.stated:
		return c.closeSource(ctx) // its attributes do not tell whether it has changed
	case c.sizeless:
		return ErrChanged // it is an ordinary file by now
	case same && err != nil:
		return err
	case !same:
		kept := false
		if err == nil {
			kept, err = c.kept(ctx, &after)
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		if !kept {
			return ErrChanged
		}
	}
	return c.closeSource(ctx)
}

// unchanged reports whether a file was the same at two times.
func unchanged(a, b *vfs.Attr) bool {
	return a.Size == b.Size && a.Mtime.Equal(b.Mtime) && a.Ctime.Equal(b.Ctime)
}

// commit makes stable what was written. The destination owns its dirty bytes, so that no
// verifier has to be compared: see Target.
func (c *copier) commit(ctx context.Context) error {
	if !c.unstable {
		return nil
	}
	var w vfs.Written
	if err := c.out.Commit(ctx, 0, 0, &w); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// settle makes data and attributes stable on a vfs.Syncer. If there was an unstable write, the
// commit covers both.
func (c *copier) settle(ctx context.Context) error {
	if c.unstable {
		return c.commit(ctx)
	}
	if err := c.syncer.Sync(ctx, c.made.H); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	return nil
}

// attributes gives the copy those of the source.
func (c *copier) attributes(ctx context.Context, res *Result) error {
	m := marks{src: c.src, f: c.dst.FS, h: c.made.H}
	if c.marked {
		if err := m.setUsers(ctx); err != nil {
			return err
		}
	}
	after, lost, err := c.o.SetAll(ctx, c.dst.FS, c.made.H, &c.before, &c.made.Attr, &c.lists, c.dst.lists())
	if err != nil {
		return err
	}
	if c.marked {
		err = m.setCapability(ctx, ownersDiffer(&c.before, known(&after, &c.made.Attr)) == 0)
	}
	res.Attr, res.Lost = after, lost
	res.Lost.Xattr = m.lost
	res.Listed, res.Marked = c.lists.Some(), c.marked
	return err
}

// verify reads the copy back. Since the copy is committed, only the host that stores it may
// have cached bytes of it. That host is told to forget them.
func (c *copier) verify(ctx context.Context) error {
	if d, ok := vfs.As[vfs.Dropper](c.out); ok {
		if err := d.Drop(ctx, 0, 0); err != nil && !errors.Is(err, vfs.ErrNotSupp) {
			return fmt.Errorf("drop what is cached: %w", err)
		}
	}
	p := pipe{in: c.out, o: c.o, sum: newDigest(), pieces: pieces{size: c.before.Size, chunk: c.o.paced()}}
	p.pieces.seek(c.out, &c.before)
	_, err := p.run(ctx)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrVerify
	}
	if err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	if p.sum.result() != c.sum.result() {
		return ErrVerify
	}
	return nil
}
