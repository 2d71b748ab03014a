package job

import (
	"context"
	"fmt"
	"sync"

	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/vfs"
)

// ends is what both ends say before anything is copied.
type ends struct {
	dst   vfs.Attr
	chunk int
	at    vfs.Handle // what has the copy's name already
	there vfs.Attr
	none  error // why at is not known
}

// lookAtEnds asks both ends, all at once: a server may be far away.
func (j *copyJob) lookAtEnds(ctx context.Context) (*ends, error) {
	o, e := j.o, new(ends)
	var all sync.WaitGroup
	var srcErr, dstErr, chunkErr error
	j.destListed = listedSoon(ctx, &o.Dest)
	dest := func() { e.dst, dstErr = o.Dest.FS.GetAttr(ctx, o.Dest.Handle, vfs.MaskV3) }
	all.Go(func() { j.srcAttr, srcErr = o.Source.FS.GetAttr(ctx, o.Source.Handle, vfs.MaskV3) })
	all.Go(func() {
		src := transfer.Source{FS: o.Source.FS, Handle: o.Source.Handle}
		e.chunk, chunkErr = transfer.Chunk(ctx, src, transfer.Target{FS: o.Dest.FS, Dir: o.Dest.Handle})
	})
	if o.There != nil {
		e.known(o.There)
	} else {
		all.Go(dest)
		if o.Name != "" {
			all.Go(func() { e.at, e.there, _, e.none = o.Dest.FS.Lookup(ctx, o.Dest.Handle, o.Name) })
		}
	}
	all.Wait()
	if o.There != nil && j.srcAttr.Type == vfs.TypeDir {
		dest() // the source was no directory when There was asked for
	}
	switch {
	case srcErr != nil:
		return nil, fmt.Errorf("the source %w: %w", ErrUnreachable, srcErr)
	case dstErr != nil:
		return nil, fmt.Errorf("the destination %w: %w", ErrUnreachable, dstErr)
	case e.dst.Type != vfs.TypeDir || o.Name == "" && j.srcAttr.Type != vfs.TypeDir:
		return nil, fmt.Errorf("the destination is no directory: %w", vfs.ErrInval)
	}
	return e, chunkErr
}

// listedSoon asks whether a directory has access control lists, and goes on meanwhile. The function
// that it returns waits for the answer.
func listedSoon(ctx context.Context, p *Place) func() bool {
	var asked sync.WaitGroup
	var listed bool
	asked.Go(func() { listed = new(transfer.Options).Listed(ctx, p.FS, p.Handle, new(vfs.Attr)) })
	return func() bool {
		asked.Wait()
		return listed
	}
}

// known takes the caller's answers over. Dest is a directory then.
func (e *ends) known(t *There) {
	e.dst.Type, e.at, e.there = vfs.TypeDir, t.Handle, t.Attr
	if t.Handle.IsZero() {
		e.none = vfs.ErrNoEnt
	}
}
