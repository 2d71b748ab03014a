package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/tools/delta"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// maxUnlisted bounds the names of a directory that a LOOKUP has found in the destination, and its
// listing has not shown. At the bound the destination's directory is listed once more, and again in
// the end.
const maxUnlisted = 256

// side is what stands for a directory of the source in the destination.
type side struct {
	handle vfs.Handle

	missing atomic.Bool // an entry of the source's directory has vanished

	seen *seenDir // nil if there was no place for it

	mu       sync.Mutex
	unlisted []string // names that the destination has, and did not list
	folds    bool     // it takes names for others
}

// Enter finds the directory in the destination.
func (j *verifyJob) Enter(ctx context.Context, d *delta.Dir, there *vfs.Entry) (vfs.Handle, error) {
	j.found(&d.Attr)
	j.mistrustReplaced(ctx, d.Dir)
	s := &side{seen: j.see(d)}
	e := vfs.Entry{Handle: d.Handle, Attr: d.Attr}
	p := pair{src: &e, path: func() string { return d.Path("") }}
	ok := true
	var err error
	if d.Parent == nil {
		p.dst = object{handle: j.o.Dest.Handle, attr: j.dstAttr}
	} else {
		p.dst, ok, err = j.match(ctx, d.Parent, d.Name, there)
	}
	if err == nil && ok {
		err = j.compare(ctx, &p)
	}
	j.fail(ctx, p.path(), err)
	if cerr := ctx.Err(); cerr != nil {
		return vfs.Handle{}, cerr
	}
	if err != nil || !ok || p.dst.attr.Type != vfs.TypeDir {
		return vfs.Handle{}, walk.ErrSkipDir
	}
	s.handle, d.Data = p.dst.handle, s
	return s.handle, nil
}

// see notes a directory of the source, to look at it again in the end.
func (j *verifyJob) see(d *delta.Dir) *seenDir {
	if d.Parent == nil {
		return j.seeing.add(nil, "", &d.Attr)
	}
	if up := d.Parent.Data.(*side).seen; up != nil {
		return j.seeing.add(up, d.Name, &d.Attr)
	}
	return nil
}

// match returns the counterpart of an entry of d in the destination, and reports the entry as
// missing if there is none. there is what the destination has listed. Only if that is nothing, or
// not all, it looks the name up.
func (j *verifyJob) match(ctx context.Context, d *delta.Dir, name string, there *vfs.Entry) (o object, ok bool, err error) {
	if there != nil && !there.Handle.IsZero() && there.Attr.Has(vfs.MaskV3) {
		return object{handle: there.Handle, attr: there.Attr}, true, nil
	}
	s := d.Data.(*side)
	o, ok, err = lookup(ctx, j.o.Dest.FS, s.handle, name)
	switch {
	case err != nil:
		return o, false, fmt.Errorf("destination: %w", err)
	case !ok:
		j.differ(d.Path(name), DiffMissing, "not in the destination")
	case there == nil:
		err = j.noteUnlisted(ctx, d, name)
	}
	return o, ok, err
}

// noteUnlisted notes a name that the destination has, and did not list. Either it has come since,
// or the destination takes it for another name.
func (j *verifyJob) noteUnlisted(ctx context.Context, d *delta.Dir, name string) error {
	s := d.Data.(*side)
	s.mu.Lock()
	s.unlisted = append(s.unlisted, name)
	full := len(s.unlisted) >= maxUnlisted || s.folds
	s.mu.Unlock()
	if full {
		return j.settleUnlisted(ctx, d)
	}
	return nil
}

// settleUnlisted lists the destination's directory again, and reports the names that it takes for
// others. Where it was seen to do so, that is not asked again.
func (j *verifyJob) settleUnlisted(ctx context.Context, d *delta.Dir) error {
	s := d.Data.(*side)
	s.mu.Lock()
	names, folds := s.unlisted, s.folds
	s.unlisted = nil
	s.mu.Unlock()
	if len(names) == 0 {
		return nil
	}
	if !folds {
		for e, err := range walk.List(ctx, j.o.Dest.FS, s.handle, 0) {
			if err != nil {
				return fmt.Errorf("list the destination: %w", err)
			}
			names = slices.DeleteFunc(names, func(n string) bool { return n == string(e.Name) })
		}
	}
	for _, name := range names {
		j.differ(d.Path(name), DiffMissing, "the destination takes its name for another one")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.folds = s.folds || len(names) > 0
	return nil
}

// Entry compares an object in the background.
func (j *verifyJob) Entry(ctx context.Context, d *delta.Dir, e, there *vfs.Entry) error {
	return j.begin(ctx, d.Dir, e, func(name string, own *vfs.Entry) error {
		p := pair{src: own, path: func() string { return d.Path(name) }, dir: d, name: name}
		j.progress.Working(p.path)
		var ok bool
		var err error
		if p.dst, ok, err = j.match(ctx, d, name, there); ok && err == nil {
			err = j.compare(ctx, &p)
		}
		j.fail(ctx, p.path(), err)
		if ok && err == nil && j.o.Each {
			j.progress.Report(progress.Event{Type: "done", Path: p.path()})
		}
		return nil
	})
}

// Extra reports what the destination has and the source has not.
func (j *verifyJob) Extra(ctx context.Context, d *delta.Dir, e *vfs.Entry) error {
	name := string(e.Name)
	_, wanted, err := j.wanted(ctx, d.Dir, Place{FS: j.o.Dest.FS, Handle: d.Data.(*side).handle}, e)
	switch {
	case errors.Is(err, vfs.ErrNoEnt): // it is no extra any more
	case err != nil:
		j.fail(ctx, d.Path(name), err)
	case wanted:
		j.differ(d.Path(name), DiffExtra, "not in the source")
	}
	return ctx.Err()
}

// Fault reports an item that the walk could not read.
func (j *verifyJob) Fault(ctx context.Context, d *delta.Dir, name string, err error) error {
	if errors.Is(err, walk.ErrVanished) {
		d.Data.(*side).missing.Store(true)
	}
	j.fault(ctx, d.Dir, name, err)
	return ctx.Err()
}

// FaultRight reports what could not be read of the destination's directory.
func (j *verifyJob) FaultRight(ctx context.Context, d *delta.Dir, _ string, err error) error {
	j.failMore(ctx, d.Path(""), fmt.Errorf("list the destination: %w", err))
	return ctx.Err()
}

// Leave looks whether the directory is still there, and as it was.
func (j *verifyJob) Leave(ctx context.Context, d *delta.Dir, _ error) error {
	s := d.Data.(*side)
	if s.seen != nil {
		s.seen.missing = s.missing.Load()
	} else if j.hasChanged(ctx, d.Dir) {
		j.changedMeanwhile(ctx, d.Path(""), s.missing.Load())
	}
	gone, err := j.whetherGone(ctx, d, s)
	if !gone && err == nil {
		err = j.settleUnlisted(ctx, d)
	}
	forget(j.o.Dest.FS, s.handle)
	if err != nil {
		j.progress.Add(progress.MoreErrors, 1)
	}
	j.failAt(ctx, d.Path(""), err, listedDir(d.Dir))
	j.progress.Add(progress.Dirs, 1)
	return ctx.Err()
}

// tellChanged tells of the directories of the source that have changed since their parents were
// listed.
func (j *verifyJob) tellChanged(ctx context.Context) error {
	changed, err := j.lookOver(ctx, j.seeing)
	for _, s := range changed {
		j.changedMeanwhile(ctx, s.path(), s.missing)
	}
	return err
}

// errDirChanged says that a directory may have more than what was compared.
var errDirChanged = errors.New("the directory changed while it was compared, and what came into it meanwhile may not have been: compare again")

// changedMeanwhile tells of a directory that has changed. That something in it has vanished, which
// is no failure, may be all.
func (j *verifyJob) changedMeanwhile(ctx context.Context, path string, vanished bool) {
	if vanished {
		j.noteChanged(path, errDirChanged.Error())
		return
	}
	j.dirsChanged.Add(1)
	j.failMore(ctx, path, errDirChanged)
}

// whetherGone reports whether d, of the source, is not there any more. It asks only if an
// entry of d has vanished.
func (j *verifyJob) whetherGone(ctx context.Context, d *delta.Dir, s *side) (bool, error) {
	if d.Parent == nil || !s.missing.Load() {
		return false, nil
	}
	gone, err := j.gone(ctx, d.Dir)
	if gone {
		j.dirs.add(d.Path(""), d.Handle, &d.Attr)
		d.Parent.Data.(*side).missing.Store(true)
		err = fmt.Errorf("the %v %w", d.Attr.Type, walk.ErrVanished)
	}
	return gone, err
}
