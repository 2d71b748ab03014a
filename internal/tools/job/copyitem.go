package job

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"

	"github.com/nfsbox/nfsbox/internal/tools/delta"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/vfs"
)

// Entry copies an object in the background.
func (j *copyJob) Entry(ctx context.Context, d *delta.Dir, e, there *vfs.Entry) error {
	return j.begin(ctx, d.Dir, e, func(name string, own *vfs.Entry) error {
		return j.item(ctx, d.Data.(*dirState), name, own, there)
	})
}

// item copies one object that is no directory, and reports a failure. there is what the destination
// has listed under its name. The error it returns ends the job.
func (j *copyJob) item(ctx context.Context, s *dirState, name string, e, there *vfs.Entry) error {
	src := transfer.Source{FS: j.o.Source.FS, Handle: e.Handle, Attr: e.Attr}
	if s.dir != nil {
		src.Dir, src.Name = s.dir.Handle, name
	} else {
		src.Dir, src.Name, src.Fresh = j.o.SourceDir, j.o.SourceName, true
	}
	dst := transfer.Target{FS: j.o.Dest.FS, Dir: s.handle, Name: name, Listed: s.listed}
	j.start()
	j.progress.Working(func() string { return s.path(name) })
	fatal, err := j.copy(ctx, s, src, dst, there)
	if errors.Is(err, errLater) {
		j.later(s, &src.Attr)
		return fatal
	}
	if s.dir == nil && errors.Is(err, transfer.ErrVanished) {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	if err != nil {
		s.missing.CompareAndSwap(false, errors.Is(err, transfer.ErrVanished))
		s.unfinished.CompareAndSwap(false, cutsOff(err))
		j.failAt(ctx, s.path(name), noRoom(err, src.Attr.Size), listed{src.Dir, src.Name, src.Handle, src.Attr.Nlink})
	} else {
		j.done()
	}
	return fatal
}

// tell reports an item that was made or changed.
func (j *copyJob) tell(path string) {
	if j.o.Each {
		j.progress.Report(progress.Event{Type: "done", Path: path})
	}
}

// object copies one object, unless it is as it should be. copied is zero if the name had become
// another object's: further names must not be linked to it. fatal ends the job, err is the object's
// own.
func (j *copyJob) object(ctx context.Context, s *dirState, src transfer.Source, dst transfer.Target, there *vfs.Entry) (copied object, fatal, err error) {
	if j.o.Sync != nil && there != nil {
		copied, same, err := j.unchanged(ctx, s, &src, &dst, there)
		if same || err != nil {
			return copied, nil, err
		}
	}
	if err := j.beforeMade(ctx, s, dst.Name, there); err != nil {
		return copied, nil, err
	}
	end, err := j.beginName(ctx, s, dst.Name)
	if err != nil {
		return copied, nil, err
	}
	copied, fatal, err = j.make(ctx, s, src, dst, there)
	end(fatal == nil && err == nil)
	return copied, fatal, err
}

// make copies one object by its type.
func (j *copyJob) make(ctx context.Context, s *dirState, src transfer.Source, dst transfer.Target, there *vfs.Entry) (copied object, fatal, err error) {
	switch src.Attr.Type {
	case vfs.TypeReg:
		return j.contents(ctx, s, src, dst, there)
	case vfs.TypeSymlink:
		copied, err = j.other(ctx, s, progress.Symlinks, transfer.Symlink, src, dst)
	default:
		copied, err = j.other(ctx, s, progress.Nodes, transfer.Node, src, dst)
	}
	return copied, nil, err
}

// other copies something without contents.
func (j *copyJob) other(
	ctx context.Context, s *dirState, c progress.Counter,
	copy func(context.Context, transfer.Source, transfer.Target, *transfer.Options) (transfer.Result, error),
	src transfer.Source, dst transfer.Target,
) (object, error) {
	res, err := copy(ctx, src, dst, &j.t)
	if err != nil {
		return object{}, err
	}
	j.lost(res.Lost, s.path(dst.Name))
	if j.goesOn() && res.Kept {
		j.needsNothing(&src.Attr)
	} else {
		j.progress.Add(c, 1)
		j.tell(s.path(dst.Name))
	}
	copied := object{handle: res.Handle, attr: res.Attr}
	if j.replaced(ctx, s, &src, &res.Source) {
		copied = object{}
	}
	return copied, j.syncLater(ctx, res.Handle)
}

// replaced reports whether the copied object is not the one that was listed. Then the whole
// source may be another, so it is asked in the end.
func (j *copyJob) replaced(ctx context.Context, s *dirState, src *transfer.Source, now *vfs.Attr) bool {
	if !another(&src.Attr, now) {
		return false
	}
	if s.dir != nil {
		j.mistrust(ctx, s.path(src.Name), listed{src.Dir, src.Name, src.Handle, src.Attr.Nlink})
	}
	return true
}

// another reports whether two sets of attributes belong to different objects.
func another(listed, now *vfs.Attr) bool {
	a, aok := idOf(listed)
	b, bok := idOf(now)
	return aok && bok && a != b
}

// maxUnsyncedNodes is how many links and nodes wait to be synced together. At the bound
// they are synced.
const maxUnsyncedNodes = 256

// syncLater takes note of a link or node whose attributes are not stable yet.
func (j *copyJob) syncLater(ctx context.Context, h vfs.Handle) error {
	if j.syncer == nil {
		return nil
	}
	j.nodesMu.Lock()
	j.nodes = append(j.nodes, h)
	full := len(j.nodes) >= maxUnsyncedNodes
	j.nodesMu.Unlock()
	if full {
		return j.syncNodes(ctx)
	}
	return nil
}

// syncNodes syncs the waiting links and nodes concurrently, so that they share the work:
// each sync may be one of the whole disk.
func (j *copyJob) syncNodes(ctx context.Context) error {
	j.nodesMu.Lock()
	nodes := j.nodes
	j.nodes = nil
	j.nodesMu.Unlock()
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, h := range nodes {
		wg.Go(func() { errs[i] = j.syncer.Sync(ctx, h) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, vfs.ErrStale) { // replaced meanwhile
			return fmt.Errorf("sync of links: %w", err)
		}
	}
	return nil
}

// copy copies one object that is no directory. A further name of an object that was copied
// before becomes a hard link. fatal ends the job, err is the object's own.
func (j *copyJob) copy(ctx context.Context, s *dirState, src transfer.Source, dst transfer.Target, there *vfs.Entry) (fatal, err error) {
	id, ok := linkIDOf(&src.Attr)
	if !ok || src.Attr.Nlink < 2 {
		_, fatal, err = j.object(ctx, s, src, dst, there)
		return fatal, err
	}
	for {
		l, first, odd := j.links.claim(id)
		if odd {
			j.split()
		}
		switch {
		case l == nil:
			j.split()
			_, fatal, err = j.object(ctx, s, src, dst, there)
			return fatal, err
		case first:
			s.linked.Store(true)
			copied, fatal, err := j.object(ctx, s, src, dst, there)
			l.at = dst
			j.links.settle(l, copied, fatal == nil && err == nil && !copied.handle.IsZero())
			return fatal, err
		}
		select {
		case <-l.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if l.ok {
			return j.link(ctx, s, l, src, dst, there)
		}
		// The first name's copy failed; ours may not.
	}
}

// link makes a further name of a copy. Names of files enter the record like the first: the
// next run may meet the names in another order.
func (j *copyJob) link(ctx context.Context, s *dirState, l *linked, src transfer.Source, dst transfer.Target, there *vfs.Entry) (fatal, err error) {
	if j.o.Sync != nil && hasLink(&l.copy.attr, there) || j.keepsAll() && there != nil {
		j.needsNothing(&src.Attr)
		return nil, nil
	}
	copied, err := j.makeLink(ctx, s, l, &src, dst, there)
	switch {
	case err == nil && j.goesOn() && hasLink(&l.copy.attr, there):
		j.needsNothing(&src.Attr)
	case err == nil:
		j.progress.Add(progress.Hardlinks, 1)
		j.tell(s.path(dst.Name))
		if src.Attr.Type == vfs.TypeReg {
			j.progress.Add(progress.FoundBytes, -src.Attr.Size)
		}
	case cannotLink(err, src.Attr.Type):
		j.split()
		_, fatal, err = j.object(ctx, s, src, dst, there)
		return fatal, err
	default:
		return nil, err
	}
	if src.Attr.Type != vfs.TypeReg {
		return nil, nil
	}
	return j.finished(ctx, s, dst.Name, &src.Attr, &copied), nil
}

// hasLink reports whether what the destination has listed is the copy already.
func hasLink(copied *vfs.Attr, there *vfs.Entry) bool {
	if there == nil {
		return false
	}
	a, aok := idOf(copied)
	b, bok := idOf(&there.Attr)
	return aok && bok && a == b
}

// makeLink gives a copy a further name.
func (j *copyJob) makeLink(ctx context.Context, s *dirState, l *linked, src *transfer.Source, dst transfer.Target, there *vfs.Entry) (copied object, err error) {
	if err := j.spares(ctx, src, &dst); err != nil {
		return copied, err
	}
	if err := j.beforeMade(ctx, s, dst.Name, there); err != nil {
		return copied, err
	}
	end, err := j.beginName(ctx, s, dst.Name)
	if err != nil {
		return copied, err
	}
	if copied = l.copy; !hasLink(&copied.attr, there) {
		copied, err = j.linkTo(ctx, l, dst)
	}
	end(err == nil)
	if err != nil && !cannotLink(err, src.Attr.Type) {
		err = fmt.Errorf("hard link: %w", err)
	}
	return copied, err
}

// spares returns an error if src is a symbolic link that leads to what it would replace.
func (j *copyJob) spares(ctx context.Context, src *transfer.Source, dst *transfer.Target) error {
	if src.Attr.Type != vfs.TypeSymlink {
		return nil
	}
	there, ok, err := lookup(ctx, dst.FS, dst.Dir, dst.Name)
	if err != nil || !ok {
		return err
	}
	return src.Spares(ctx, dst.FS, there.handle, &there.attr)
}

// maxRelinked is how often linkTo looks the copy's name up again because another job keeps
// replacing the copy. After that the further name becomes a file of its own.
const maxRelinked = 8

// linkTo makes the name dst for the copy. If another job has replaced the copy meanwhile,
// the object that has its name now is linked instead, if it looks like the same copy.
func (j *copyJob) linkTo(ctx context.Context, l *linked, dst transfer.Target) (copied object, err error) {
	copied = l.copy
	for range maxRelinked {
		err = transfer.Link(ctx, copied.handle, dst, &j.t)
		if !isGone(err) || ctx.Err() != nil {
			return copied, err
		}
		now, ok, lerr := lookup(ctx, l.at.FS, l.at.Dir, l.at.Name)
		if isGone(lerr) {
			continue // replaced once more
		}
		if lerr != nil || !ok || !alike(&l.copy.attr, &now.attr) {
			return copied, err
		}
		copied.handle, copied.attr = now.handle, now.attr
	}
	return copied, err
}

// isGone reports whether err says that an object has no name any more. A local file system
// may answer ENOENT to a link of an open file without a name.
func isGone(err error) bool { return errors.Is(err, vfs.ErrStale) || errors.Is(err, vfs.ErrNoEnt) }

// alike reports whether two regular files look like copies of one. Other types never do.
func alike(a, b *vfs.Attr) bool {
	const known = vfs.MaskType | vfs.MaskSize | vfs.MaskMtime
	return a.Has(known) && b.Has(known) && a.Type == vfs.TypeReg && b.Type == vfs.TypeReg &&
		a.Size == b.Size && a.Mtime.Equal(b.Mtime)
}

// cannotLink reports whether err says that the destination makes no further names of such
// an object, or that the object is gone. Many file systems link only regular files, and
// each refuses the others with an error of its own.
func cannotLink(err error, t vfs.Type) bool {
	if isGone(err) || errors.Is(err, vfs.ErrMLink) || errors.Is(err, vfs.ErrNotSupp) || errors.Is(err, vfs.ErrXDev) {
		return true
	}
	return t != vfs.TypeReg && (errors.Is(err, fs.ErrPermission) || errors.Is(err, vfs.ErrInval) || errors.Is(err, vfs.ErrBadType))
}

// split counts a hard link that becomes a file of its own.
func (j *copyJob) split() {
	if j.linksSplit.Add(1) == 1 {
		j.progress.Report(progress.Event{Type: "note", Message: "some hard links are copied as files of their own: " +
			"there are more than are kept track of, the destination has none or is changed by others, or the source does not say the same of all names"})
	}
}

// contents copies a regular file unless the record shows that it is done. copied is zero if
// the name had become another file's: further names must not be linked to it.
func (j *copyJob) contents(ctx context.Context, s *dirState, src transfer.Source, dst transfer.Target, there *vfs.Entry) (copied object, fatal, err error) {
	if j.record != nil && j.record.resumed {
		copied, known, fatal, err := j.before(ctx, s, &src, &dst, there)
		if known || err != nil {
			return copied, fatal, err
		}
	}
	begun := j.begun.Load()
	dst.Part = j.part(s, &src, dst.Name)
	if j.hands.AtOnce() > 0 {
		s.handed.Store(true)
	}
	res, err := j.hands.Copy(ctx, s.where(), src, dst, &j.t)
	if err != nil {
		return copied, nil, err
	}
	if res.Bytes > 0 {
		j.foundRoom(begun)
	}
	j.progress.Add(progress.Files, 1)
	if res.Verified {
		j.progress.Add(progress.Verified, 1)
	}
	j.left.add(path.Dir(s.path(dst.Name)), res.Left)
	if res.Grew {
		j.grewMeanwhile(s.path(dst.Name), res.Bytes)
	}
	j.lost(res.Lost, s.path(dst.Name))
	copied = object{handle: res.Handle, attr: res.Attr, listed: res.Listed, xattr: res.Marked}
	if j.record != nil && !copied.attr.Has(vfs.MaskSize|vfs.MaskMtime) {
		if copied.attr, err = dst.FS.GetAttr(ctx, res.Handle, vfs.MaskV3); err != nil {
			return copied, nil, fmt.Errorf("attributes of the copy: %w", err)
		}
	}
	j.tell(s.path(dst.Name))
	fatal = j.finished(ctx, s, dst.Name, &res.Source, &copied)
	if j.replaced(ctx, s, &src, &res.Source) {
		copied = object{}
	}
	return copied, fatal, nil
}
