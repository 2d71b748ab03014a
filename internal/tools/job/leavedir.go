package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/internal/tools/delta"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// errReplaced says that a directory was replaced while it was copied. The contents of the
// new one have not been copied.
var errReplaced = errors.New("the directory was replaced while it was being copied")

// dirLists are the access control lists that a directory's copy shall have. Finding them out may
// take a call, which begins when the directory is entered: when it is left, it may be gone.
type dirLists struct {
	done chan struct{} // closed when the other fields are set
	transfer.Lists
	err error

	xattr bool // it has extended attributes

	later bool // they are asked for when it is known that they are needed
}

// ask starts finding out the lists of d, in the background.
func (j *copyJob) ask(ctx context.Context, d *delta.Dir) *dirLists {
	p := &dirLists{done: make(chan struct{}), Lists: transfer.Lists{Mode: d.Attr.Mode & 0o7777}}
	p.later = j.o.Sync != nil && d.Data.(*dirState).joined
	if !d.Attr.Has(vfs.MaskMode) || p.later {
		close(p.done)
		return p
	}
	j.askNow(ctx, d, p)
	return p
}

func (j *copyJob) askNow(ctx context.Context, d *delta.Dir, p *dirLists) {
	src := transfer.Source{FS: j.o.Source.FS, Handle: d.Handle, Attr: d.Attr}
	j.flying.Go(func() {
		defer close(p.done)
		p.Lists, p.err = j.t.DirLists(ctx, &src)
		p.xattr = src.HasXattrs(ctx)
	})
}

// keepsOwn reports whether d is the copy's root and keeps its own attributes.
func (j *copyJob) keepsOwn(d *delta.Dir) bool {
	return d.Parent == nil && j.o.Name == "" && j.o.KeepDest
}

// open gives the directory that the copy becomes its owner and mode at once. If the job is
// broken off, others can use the directory, and the next run takes its mode for the user's
// own. Directories in it stay closed until they are complete. An error here occurs again in
// Leave, which reports it.
func (j *copyJob) open(ctx context.Context, d *delta.Dir, s *dirState) {
	<-s.lists.done
	if s.lists.err != nil || s.listed() {
		return // a mode would open a list that it has from the directory above
	}
	want := d.Attr
	want.Valid &= vfs.MaskMode | vfs.MaskUID | vfs.MaskGID
	want.Mode = s.lists.Mode | ownerMayAll
	after, _, err := transfer.SetAttrs(ctx, j.o.Dest.FS, s.handle, &want, &s.attr, j.t.Owners)
	if err == nil && after.Has(vfs.MaskV3) {
		s.attr = after
	}
}

// close counts a directory below the copy's root as closed to others until it is finished,
// if this run or an earlier one has made it so.
func (j *copyJob) close(s *dirState) {
	const all = 0o777
	s.closed = s.created || s.attr.Has(vfs.MaskMode) && s.attr.Mode&all == ownerMayAll
	if s.closed {
		j.dirsClosed.Add(1)
	}
}

// opened notes that a directory is not closed any more, or was removed.
func (j *copyJob) opened(s *dirState) {
	if s.closed {
		j.dirsClosed.Add(-1)
	}
}

// cutsOff reports whether err, of an item, ends the job if others fail as it did. The job may
// find that out only after it has left the item's directory. So the directory stays closed,
// like others that are not finished, and the next run opens it.
func cutsOff(err error) bool {
	return errors.Is(err, vfs.ErrNoSpace) || errors.Is(err, vfs.ErrQuota) || errors.Is(err, vfs.ErrNoAnswer)
}

// leave gives the directory its attributes and counts it. The copy of a directory that is
// gone is removed, if it is empty; made is false then. A closed directory that is not
// finished keeps its mode.
func (j *copyJob) leave(ctx context.Context, d *delta.Dir, s *dirState, incomplete error) (made bool) {
	if j.keepsOwn(d) || j.keepsDir(s) {
		j.opened(s)
		j.countDir(s)
		return true
	}
	<-s.lists.done
	gone, err := j.whetherGone(ctx, d, s, incomplete)
	if gone {
		if incomplete != nil || s.missing.Load() { // else all of it was copied before
			j.dirs.add(d.Path(""), d.Handle, &d.Attr)
		}
		s.up(d).missing.Store(true)
		if j.removeEmpty(ctx, d, s) {
			if errors.Is(incomplete, walk.ErrVanished) {
				j.progress.Add(progress.MoreErrors, ^uint64(0)) // it is counted nowhere else
			} else {
				err = fmt.Errorf("the %v %w", d.Attr.Type, transfer.ErrVanished)
			}
			j.failAt(ctx, d.Path(""), err, listedDir(d.Dir))
			j.opened(s)
			return false
		}
	}
	if s.closed && s.unfinished.Load() {
		j.fail(ctx, d.Path(""), err)
		return true
	}
	if gone || s.lists.err == nil || errors.Is(err, errReplaced) {
		err = errors.Join(err, j.setDir(ctx, d, s))
	}
	j.fail(ctx, d.Path(""), err)
	if err == nil {
		j.opened(s)
		j.countDir(s)
	}
	return true
}

// countDir counts a directory that is done, once. What was there is no new one, whatever came into it.
func (j *copyJob) countDir(s *dirState) {
	switch {
	case s.was != nil:
	case s.joined:
		j.needsNothing(&vfs.Attr{Type: vfs.TypeDir})
	default:
		j.progress.Add(progress.Dirs, 1)
	}
}

// whetherGone reports whether d, of the source, is not there any more. The error is to be
// reported for d.
func (j *copyJob) whetherGone(ctx context.Context, d *delta.Dir, s *dirState, incomplete error) (bool, error) {
	if errors.Is(incomplete, walk.ErrVanished) {
		return true, nil // the walk has reported it
	}
	moved := errors.Is(s.lists.err, transfer.ErrVanished)
	if s.lists.err != nil && !moved {
		return false, s.lists.err
	}
	if !moved && !s.missing.Load() || d.Parent == nil {
		return false, s.lists.err
	}
	// Its handle, or that of an entry, is stale. Look whether its name leads to
	// another directory by now.
	gone, err := j.gone(ctx, d.Dir)
	if moved && !gone && err == nil { // it is back
		src := transfer.Source{FS: j.o.Source.FS, Handle: d.Handle, Attr: d.Attr}
		s.lists.Lists, s.lists.err = j.t.DirLists(ctx, &src)
		err = s.lists.err
	}
	return gone, err
}

// setDir gives the directory its attributes. Of one that a sync has not touched it sets what differs.
func (j *copyJob) setDir(ctx context.Context, d *delta.Dir, s *dirState) error {
	if s.lists.later {
		if !s.touched.Load() {
			return j.setDirAgain(ctx, d, s)
		}
		s.lists = &dirLists{done: make(chan struct{})}
		j.askNow(ctx, d, s.lists)
		<-s.lists.done
		if s.lists.err != nil && !errors.Is(s.lists.err, transfer.ErrVanished) {
			return s.lists.err
		}
	}
	src := transfer.Source{FS: j.o.Source.FS, Handle: d.Handle, Attr: d.Attr}
	differed := false
	if j.o.Sync != nil && s.joined && s.was == nil { // by what it had before this run opened and filled it
		var err error
		if differed, err = j.differs(ctx, &src, &object{handle: s.handle, attr: s.attr}); err != nil {
			return err
		}
		differed = differed || !j.times.same(d.Attr.Mtime, s.attr.Mtime)
	}
	lists, unmarked := s.lists.Lists, false
	if s.lists.err != nil {
		lists.Mode &^= groupMayAll // the mode may be a list's: the group's own rights are not known
	}
	if s.lists.xattr { // before the mode, which may forbid it
		var err error
		if _, unmarked, err = src.KeepXattrs(ctx, j.o.Dest.FS, s.handle, false); err != nil {
			return err
		}
	}
	_, lost, err := j.t.SetAll(ctx, j.o.Dest.FS, s.handle, &d.Attr, &s.attr, &lists, s.listed())
	lost.Xattr = unmarked
	if s.lists.err != nil && d.Attr.Mode&groupMayAll != 0 {
		lost.Mode = true
		j.progress.Report(progress.Event{
			Type: "note", Path: d.Path(""), Message: "the directory was moved or removed while it was being copied; its copy has no rights for the group",
		})
	}
	if s.was == nil { // else it was counted
		j.lost(lost, d.Path(""))
	}
	if err == nil && differed {
		j.attrsSet.Add(1)
	}
	return err
}

// setDirAgain gives a directory in which nothing was changed its attributes where they differ.
func (j *copyJob) setDirAgain(ctx context.Context, d *delta.Dir, s *dirState) error {
	src := transfer.Source{FS: j.o.Source.FS, Handle: d.Handle, Attr: d.Attr}
	dst := object{handle: s.handle, attr: s.attr}
	set, err := j.setAgain(ctx, d.Path(""), &src, &dst, !j.times.same(d.Attr.Mtime, s.attr.Mtime))
	s.asIs = err == nil && !set
	return err
}

// up is the state of d's parent, or s itself if d is the root.
func (s *dirState) up(d *delta.Dir) *dirState {
	if d.Parent == nil {
		return s
	}
	return d.Parent.Data.(*dirState)
}

// removeEmpty removes the copy of a directory that has vanished, if this run made it and it
// is empty. It reports whether it did.
func (j *copyJob) removeEmpty(ctx context.Context, d *delta.Dir, s *dirState) bool {
	if !s.created || d.Parent == nil {
		return false
	}
	_, err := j.o.Dest.FS.Remove(ctx, d.Parent.Data.(*dirState).handle, d.Name, true)
	return err == nil
}
