package job

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// maxListed is how many entries of a directory of the destination are kept for matching,
// about 500 bytes each. At the bound each name of the source is looked up instead, and the
// destination's entries are counted afterwards.
const maxListed = 1024

// side is what stands for a directory of the source in the destination.
type side struct {
	handle vfs.Handle

	mu     sync.Mutex
	listed map[string]object // entries not matched yet; nil if there are too many
	names  uint64            // names of the source that were found

	missing atomic.Bool // an entry of the source's directory has vanished

	seen *seenDir // nil if there was no place for it
}

// Enter finds the directory in the destination, and lists it if it is small.
func (j *verifyJob) Enter(ctx context.Context, d *walk.Dir) error {
	j.found(&d.Attr)
	j.mistrustReplaced(ctx, d)
	e := vfs.Entry{Handle: d.Handle, Attr: d.Attr}
	p := pair{src: &e, path: func() string { return d.Path("") }}
	ok := true
	var err error
	if d.Parent == nil {
		p.dst = object{handle: j.o.Dest.Handle, attr: j.dstAttr}
	} else {
		p.dst, ok, err = j.match(ctx, d.Parent, d.Name)
	}
	s := &side{handle: p.dst.handle}
	if d.Parent == nil {
		s.seen = j.seeing.add(nil, "", &d.Attr)
	} else if up := d.Parent.Data.(*side).seen; up != nil {
		s.seen = j.seeing.add(up, d.Name, &d.Attr)
	}
	if err == nil && ok {
		if err = j.compare(ctx, &p); err == nil && p.dst.attr.Type == vfs.TypeDir {
			err = j.list(ctx, s)
		}
	}
	if err != nil {
		j.fail(ctx, p.path(), err)
	}
	if cerr := ctx.Err(); cerr != nil {
		return cerr
	}
	if err != nil || !ok || p.dst.attr.Type != vfs.TypeDir {
		return walk.ErrSkipDir
	}
	d.Data = s
	return nil
}

// list keeps the entries of the destination's directory, up to maxListed.
func (j *verifyJob) list(ctx context.Context, s *side) error {
	s.listed = make(map[string]object)
	for e, err := range j.o.Dest.FS.ReadDir(ctx, s.handle, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
		if err != nil {
			return fmt.Errorf("list the destination: %w", err)
		}
		if len(s.listed) >= maxListed {
			s.listed = nil
			return nil
		}
		s.listed[string(e.Name)] = object{handle: e.Handle, attr: e.Attr}
	}
	return nil
}

// match finds the counterpart of an entry of d in the destination, and reports the entry as
// missing if there is none.
func (j *verifyJob) match(ctx context.Context, d *walk.Dir, name string) (o object, ok bool, err error) {
	s := d.Data.(*side)
	s.mu.Lock()
	small := s.listed != nil
	o, ok = s.listed[name]
	delete(s.listed, name)
	s.mu.Unlock()
	if ok && (o.handle.IsZero() || !o.attr.Has(vfs.MaskV3)) || !small {
		if o, ok, err = lookup(ctx, j.o.Dest.FS, s.handle, name); err != nil {
			return o, false, fmt.Errorf("destination: %w", err)
		}
	}
	if !ok {
		j.differ(d.Path(name), DiffMissing, "not in the destination")
		return o, false, nil
	}
	s.mu.Lock()
	s.names++
	s.mu.Unlock()
	return o, true, nil
}

// Entry compares an object in the background.
func (j *verifyJob) Entry(ctx context.Context, d *walk.Dir, e *vfs.Entry) error {
	return j.begin(ctx, d, e, func(name string, own *vfs.Entry) error {
		p := pair{src: own, path: func() string { return d.Path(name) }}
		var ok bool
		var err error
		j.progress.Working(p.path)
		if p.dst, ok, err = j.match(ctx, d, name); ok {
			err = j.compare(ctx, &p)
		}
		j.fail(ctx, p.path(), err)
		if ok && err == nil && j.o.Each {
			j.progress.Report(progress.Event{Type: "done", Path: p.path()})
		}
		return nil
	})
}

// Fault reports an item that the walk could not read.
func (j *verifyJob) Fault(ctx context.Context, d *walk.Dir, name string, err error) error {
	if errors.Is(err, walk.ErrVanished) {
		d.Data.(*side).missing.Store(true)
	}
	j.fault(ctx, d, name, err)
	return ctx.Err()
}

// Leave reports what the destination has and the source has not.
func (j *verifyJob) Leave(ctx context.Context, d *walk.Dir, _ error) error {
	s := d.Data.(*side)
	if s.seen != nil {
		s.seen.missing = s.missing.Load()
	} else if j.hasChanged(ctx, d) {
		j.changedMeanwhile(ctx, d.Path(""), s.missing.Load())
	}
	gone, err := j.whetherGone(ctx, d, s)
	switch {
	case gone || err != nil: // the source's names are not known
	case s.listed != nil:
		for name := range s.listed {
			err = errors.Join(err, j.checkExtra(ctx, d, name))
		}
	default:
		err = j.count(ctx, d, s)
	}
	forget(j.o.Dest.FS, s.handle)
	if err != nil {
		j.progress.Add(progress.MoreErrors, 1)
	}
	j.failAt(ctx, d.Path(""), err, listedDir(d))
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
func (j *verifyJob) whetherGone(ctx context.Context, d *walk.Dir, s *side) (bool, error) {
	if d.Parent == nil || !s.missing.Load() {
		return false, nil
	}
	gone, err := j.gone(ctx, d)
	if gone {
		j.dirs.add(d.Path(""), d.Handle, &d.Attr)
		d.Parent.Data.(*side).missing.Store(true)
		err = fmt.Errorf("the %v %w", d.Attr.Type, walk.ErrVanished)
	}
	return gone, err
}

// count counts the entries of a large directory of the destination. All names of the source
// that were found are among them. If there are more, it looks each one up in the source.
func (j *verifyJob) count(ctx context.Context, d *walk.Dir, s *side) error {
	var entries uint64
	for _, err := range walk.List(ctx, j.o.Dest.FS, s.handle, 0) {
		if err != nil {
			return fmt.Errorf("list the destination: %w", err)
		}
		entries++
	}
	switch {
	case entries == s.names:
		return nil
	case entries < s.names:
		// The destination takes some names for one, such as upper and lower case.
		j.differ(d.Path(""), DiffMissing, "%d names of the source are but %d in the destination", s.names, entries)
		return nil
	}
	for e, err := range walk.List(ctx, j.o.Dest.FS, s.handle, 0) {
		if err != nil {
			return fmt.Errorf("list the destination: %w", err)
		}
		if err := j.checkExtra(ctx, d, string(e.Name)); err != nil {
			return err
		}
	}
	return nil
}

// checkExtra reports name, of the destination, if the source does not have it.
func (j *verifyJob) checkExtra(ctx context.Context, d *walk.Dir, name string) error {
	if err := vfs.CheckName(name); err != nil {
		return fmt.Errorf("name in the destination's listing: %w", err)
	}
	_, ok, err := lookup(ctx, j.o.Source.FS, d.Handle, name)
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	if !ok {
		j.differ(d.Path(name), DiffExtra, "not in the source")
	}
	return nil
}
