package bench

import (
	"context"
	"errors"

	"github.com/nfsbox/nfsbox/vfs"
)

// writeVerb writes files that it makes, one for each caller, again and again
// from their beginnings, with a COMMIT at the end of each.
var writeVerb = verb{name: "write", size: DefaultSize, count: 1024, start: startWrite}

type writeWork struct {
	*mount
	scratch *scratch
	data    []byte // of every operation
	size    uint64 // of a file
	how     vfs.Stability
}

func startWrite(ctx context.Context, o *Options) (work, error) {
	m, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	if m.target.Attr.Type != vfs.TypeDir {
		return nil, errors.Join(usage("%s is a %s: name a directory, in which files are made and removed", o.URL, m.target.Attr.Type), m.client.Close())
	}
	w := &writeWork{
		mount: m, scratch: newScratch(m), data: noise(o.Size, o.Seed),
		size: uint64(o.fileSize(o.Concurrency)) / uint64(o.Size) * uint64(o.Size),
	}
	if o.Stable {
		w.how = vfs.FileSync
	}
	return w, nil
}

func (w *writeWork) end(ctx context.Context) error {
	return errors.Join(w.scratch.remove(ctx), w.mount.end(ctx))
}

func (w *writeWork) caller(ctx context.Context, _ int) (caller, error) {
	f, _, err := w.scratch.create(ctx)
	if err != nil {
		return nil, err
	}
	return &writeCaller{w: w, f: f}, nil
}

type writeCaller struct {
	w     *writeWork
	f     vfs.File
	off   uint64
	dirty bool         // something was written that is not stable
	verf  vfs.Verifier // of it
	lost  bool         // it had several verifiers
}

// op writes one block; the last one of a file is followed by its COMMIT, in the
// time of the same operation.
func (c *writeCaller) op(ctx context.Context) (moved, error) {
	if c.off == c.w.size {
		c.off = 0
	}
	var done vfs.Written
	n, err := vfs.WriteFull(ctx, c.f, c.w.data, c.off, c.w.how, &done)
	if err != nil {
		return moved{}, err
	}
	c.off += uint64(n)
	if done.Committed == vfs.Unstable {
		c.lost = c.lost || c.dirty && done.Verf != c.verf
		c.dirty, c.verf = true, done.Verf
	}
	if c.off == c.w.size {
		err = c.flush(ctx)
	}
	return moved{bytes: uint64(n)}, err
}

func (c *writeCaller) flush(ctx context.Context) error {
	if !c.dirty || c.w.o.NoCommit {
		return nil
	}
	var done vfs.Written
	if err := c.f.Commit(ctx, 0, 0, &done); err != nil {
		return err
	}
	c.w.commits.Add(1)
	lost := c.lost || done.Verf != c.verf
	c.dirty, c.lost = false, false
	if lost {
		return errVerifier
	}
	return nil
}

func (c *writeCaller) close(ctx context.Context) error { return c.f.Close(ctx) }
