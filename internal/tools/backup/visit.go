package backup

import (
	"cmp"
	"context"
	"errors"

	"github.com/nfsbox/nfsbox/internal/tools/delta"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// folder is a directory under way.
type folder struct {
	path string              // in the snapshot
	w    *snapshot.DirWriter // nil: a dry run
	e    *snapshot.Entry
	met  met
}

// longPath stands for all paths that snapshots leave out: no path of a deep tree is kept.
var longPath = string(make([]byte, vfs.MaxPath+1))

func folderOf(d *delta.Dir) *folder { return d.Data.(*folder) }

// pathIn is the path of a directory in the snapshot.
func pathIn(d *delta.Dir) string {
	if d.Parent == nil {
		return ""
	}
	path := d.Name
	if up := folderOf(d.Parent).path; up != "" {
		path = up + "/" + d.Name
	}
	if len(path) > vfs.MaxPath {
		path = longPath
	}
	return path
}

// descend leaves a directory out that was met already, or is to be.
func (r *run) descend(child *delta.Dir) bool {
	if !folderOf(child.Parent).met.add(&r.mets, child.Name) {
		return false
	}
	if r.o.Leave == "" || child.Path("") != r.o.Leave {
		return true
	}
	r.noteStore(r.o.Leave)
	return false
}

// Enter implements delta.Visitor.
func (r *run) Enter(ctx context.Context, d *delta.Dir, there *vfs.Entry) (right vfs.Handle, err error) {
	f := &folder{path: pathIn(d), e: &snapshot.Entry{Name: d.Name, Attr: d.Attr}}
	d.Data = f
	if !d.Attr.Has(vfs.MaskV3) || d.Parent == nil {
		f.e.Attr, err = r.o.FS.GetAttr(ctx, d.Handle, vfs.MaskV3)
	}
	if err == nil {
		is, serr := r.isStore(ctx, d.Handle, &f.e.Attr)
		if is {
			return right, r.leaveStore(d)
		}
		err = serr
	}
	r.o.Progress.Add(progress.FoundItems, 1)
	if err != nil && d.Parent != nil {
		return right, cmp.Or(r.failed(ctx, d.Path(""), gone(err)), walk.ErrSkipDir)
	}
	if err != nil {
		return right, sourceFailed(err)
	}
	if r.was != nil {
		if d.Parent == nil {
			right, there = r.was.top(ctx)
		} else if there != nil && there.Attr.Type == vfs.TypeDir {
			right = there.Handle
		}
	}
	if r.w == nil {
		return right, nil
	}
	if err := r.dirExtra(ctx, d, f.e, there); err != nil {
		if err := r.failed(ctx, d.Path(""), gone(err)); err != nil {
			return right, err
		}
	}
	f.w = r.w.Dir(f.path)
	if d.Parent == nil {
		f.w.In(nil, f.e)
	} else {
		f.w.In(folderOf(d.Parent).w, f.e)
	}
	return right, nil
}

// Entry implements delta.Visitor.
func (r *run) Entry(ctx context.Context, d *delta.Dir, in, there *vfs.Entry) error {
	e := &snapshot.Entry{Name: string(in.Name), Attr: in.Attr}
	h := in.Handle
	if !folderOf(d).met.add(&r.mets, e.Name) {
		return nil
	}
	r.o.Progress.Add(progress.FoundItems, 1)
	if !e.Attr.Has(vfs.MaskV3) {
		a, err := r.o.FS.GetAttr(ctx, h, vfs.MaskV3)
		if err != nil {
			return r.failed(ctx, d.Path(e.Name), gone(err))
		}
		e.Attr = a
	}
	v, err := r.judge(ctx, &e.Attr, there)
	if err != nil {
		return err
	}
	if r.weak(&e.Attr) {
		return r.await(ctx, &named{d, h, e, v})
	}
	return r.do(ctx, d, h, e, &v)
}

// do does what an entry was judged to need.
func (r *run) do(ctx context.Context, d *delta.Dir, h vfs.Handle, e *snapshot.Entry, v *verdict) error {
	switch {
	case v.pack && r.w != nil && v.why == "":
		return r.work(ctx, d, func() error { return r.file(ctx, d, h, e, v) })
	case v.why == "" && r.proof != nil:
		return r.work(ctx, d, func() error { return r.proved(ctx, d, h, e, v) })
	case v.why == "" && v.blind && r.w != nil:
		return r.work(ctx, d, func() error { return r.reuse(ctx, d, h, e, v) })
	case v.why == "":
		return r.reuse(ctx, d, h, e, v)
	case e.Attr.Type != vfs.TypeReg:
		return r.other(ctx, d, h, e)
	}
	r.because(v.why)
	if r.o.DryRun {
		return r.would(ctx, d, e, v)
	}
	r.o.Progress.Add(progress.FoundBytes, e.Attr.Size)
	return r.work(ctx, d, func() error { return r.file(ctx, d, h, e, v) })
}

// would says that a file would be read. An object counts under the first of its names, and with what it takes on the disk if that is
// less than its size: so holes, which nobody has looked for, do not count.
func (r *run) would(ctx context.Context, d *delta.Dir, e *snapshot.Entry, v *verdict) error {
	r.o.Progress.Report(progress.Event{Type: "would", Kind: v.why, Path: d.Path(e.Name)})
	if c, first := r.link(&e.Attr); c == nil || first {
		n := e.Attr.Size
		if e.Attr.Has(vfs.MaskUsed) {
			n = min(n, e.Attr.Used)
		}
		r.filesRead.Add(1)
		r.bytesOfRead.Add(n)
	}
	return r.add(ctx, d, e)
}

// work does what may take long for an entry of d, when there is a place.
func (r *run) work(ctx context.Context, d *delta.Dir, do func() error) error {
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	d.Hold()
	r.flying.Go(func() {
		defer d.Release()
		defer func() { <-r.slots }()
		if err := do(); err != nil {
			d.Abort(err)
		}
	})
	return nil
}

// reuse takes an object as the earlier snapshot has it; what that could not see of it is asked for.
func (r *run) reuse(ctx context.Context, d *delta.Dir, h vfs.Handle, e *snapshot.Entry, v *verdict) error {
	if r.w != nil {
		e.Target, e.Content, e.Extra = v.old.Target, v.old.Content, v.old.Extra
		if v.blind {
			if err := r.extra(ctx, h, e); err != nil {
				return r.failed(ctx, d.Path(e.Name), gone(err))
			}
		}
	}
	if v.pack {
		r.repack.count(&v.old.Content) // a dry run
	}
	return r.keep(ctx, d, e, v)
}

// keep adds an entry whose content was not read.
func (r *run) keep(ctx context.Context, d *delta.Dir, e *snapshot.Entry, v *verdict) error {
	if err := r.put(ctx, d, e); err != nil || e.Attr.Type != vfs.TypeReg {
		return err
	}
	if v.from.partial {
		r.resumed.Add(1)
	}
	r.o.Progress.Add(progress.Skipped, 1)
	r.o.Progress.Add(progress.SkippedBytes, e.Attr.Size)
	return nil
}

// add adds an entry that was read.
func (r *run) add(ctx context.Context, d *delta.Dir, e *snapshot.Entry) error {
	before := r.errors.Load()
	err := r.put(ctx, d, e)
	if err != nil || e.Attr.Type != vfs.TypeReg || r.errors.Load() != before {
		return err
	}
	r.o.Progress.Add(progress.Files, 1)
	if r.o.DryRun {
		return nil // no bytes were moved
	}
	r.o.Progress.Add(progress.Bytes, e.Attr.Size)
	if r.o.Each {
		r.o.Progress.Report(progress.Event{Type: "done", Path: d.Path(e.Name)})
	}
	return nil
}

// put adds an entry to its directory, and counts it.
func (r *run) put(ctx context.Context, d *delta.Dir, e *snapshot.Entry) error {
	if r.w != nil {
		err := folderOf(d).w.Add(r.store, e)
		if errors.Is(err, snapshot.ErrTooLong) {
			return r.failed(ctx, d.Path(e.Name), err)
		}
		if err == nil {
			err = r.checkpoint()
		}
		if err != nil {
			return err
		}
	}
	switch e.Attr.Type {
	case vfs.TypeReg:
		r.files.Add(1)
		r.bytes.Add(e.Attr.Size)
	case vfs.TypeDir:
		r.dirs.Add(1)
		r.o.Progress.Add(progress.Dirs, 1)
	case vfs.TypeSymlink:
		r.symlinks.Add(1)
		r.o.Progress.Add(progress.Symlinks, 1)
	default:
		r.nodes.Add(1)
		r.o.Progress.Add(progress.Nodes, 1)
	}
	return nil
}

// other adds what is neither a file nor a directory.
func (r *run) other(ctx context.Context, d *delta.Dir, h vfs.Handle, e *snapshot.Entry) (err error) {
	if r.w != nil {
		if e.Attr.Type == vfs.TypeSymlink {
			e.Target, _, err = r.o.FS.Readlink(ctx, h)
			if err == nil {
				err = snapshot.CheckTarget(e.Target) // else the snapshot would be damaged
			}
		}
		if err == nil {
			err = r.extra(ctx, h, e)
		}
	}
	if err != nil {
		return r.failed(ctx, d.Path(e.Name), gone(err))
	}
	return r.put(ctx, d, e)
}

// Extra implements delta.Visitor.
func (r *run) Extra(context.Context, *delta.Dir, *vfs.Entry) error { return nil }

// Fault implements delta.Visitor.
func (r *run) Fault(ctx context.Context, d *delta.Dir, name string, err error) error {
	return r.failed(ctx, d.Path(name), err)
}

// FaultRight implements delta.Visitor. The earlier snapshot's faults are its own: see earlier.
func (r *run) FaultRight(_ context.Context, _ *delta.Dir, _ string, err error) error { return err }

// Leave implements delta.Visitor.
func (r *run) Leave(ctx context.Context, d *delta.Dir, _ error) error {
	f := folderOf(d)
	if f.w != nil {
		if err := f.w.Close(r.store, f.e); err != nil {
			return err
		}
	}
	if d.Parent != nil {
		return r.put(ctx, d.Parent, f.e)
	}
	r.dirs.Add(1)
	r.o.Progress.Add(progress.Dirs, 1)
	r.root = f.e
	return nil
}
