package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// errReplaced says that a directory was not the same to the end. What stands under its
// name now has not been copied.
var errReplaced = errors.New("the directory was replaced while it was being copied")

// plainMode is the mode that a directory shall have, which takes a call to find out. It
// is asked for when the directory is entered: when it is left, it may be gone.
type plainMode struct {
	done chan struct{} // closed when the others are set
	mode uint32
	lost bool // the access control list
	err  error

	xattr bool // it has extended attributes
}

// ask begins to find out the mode of d.
func (j *copyJob) ask(ctx context.Context, d *walk.Dir) *plainMode {
	p := &plainMode{done: make(chan struct{}), mode: d.Attr.Mode & 0o7777}
	if !d.Attr.Has(vfs.MaskMode) {
		close(p.done)
		return p
	}
	src := transfer.Source{FS: j.o.Source.FS, Handle: d.Handle, Attr: d.Attr}
	j.flying.Go(func() {
		defer close(p.done)
		p.mode, p.lost, p.err = j.t.DirMode(ctx, &src)
		p.xattr = src.HasXattrs(ctx)
	})
	return p
}

// keepsOwn reports whether d is the copy's root and keeps its own attributes.
func (j *copyJob) keepsOwn(d *walk.Dir) bool {
	return d.Parent == nil && j.o.Name == "" && j.o.KeepDest
}

// open gives the directory that the copy becomes its owner and its mode at once: if the
// job is broken off, the next one meets a directory that others can use, and takes its
// mode for the user's own. What is in it is closed until it is complete. What fails here
// fails in Leave, too, which reports it.
func (j *copyJob) open(ctx context.Context, d *walk.Dir, s *dirState) {
	<-s.plain.done
	if s.plain.err != nil {
		return
	}
	want := d.Attr
	want.Valid &= vfs.MaskMode | vfs.MaskUID | vfs.MaskGID
	want.Mode = s.plain.mode | ownerMayAll
	after, _, err := transfer.SetAttrs(ctx, j.o.Dest.FS, s.handle, &want, &s.attr, j.t.Owners)
	if err == nil && after.Has(vfs.MaskV3) {
		s.attr = after
	}
}

// close notes that a directory below the copy's root is closed to others until it is
// finished: this run has made it so, or one before has.
func (j *copyJob) close(s *dirState) {
	const all = 0o777
	s.closed = s.created || s.attr.Has(vfs.MaskMode) && s.attr.Mode&all == ownerMayAll
	if s.closed {
		j.dirsClosed.Add(1)
	}
}

// opened notes that a directory is not closed any more, or is not there.
func (j *copyJob) opened(s *dirState) {
	if s.closed {
		j.dirsClosed.Add(-1)
	}
}

// cutsOff reports whether err, of an item, is one that ends the job if others fail as it did.
// Perhaps that is found out when the item's directory has been left. So the directory stays
// closed, as others do that the job has not finished, and the next run opens it.
func cutsOff(err error) bool {
	return errors.Is(err, vfs.ErrNoSpace) || errors.Is(err, vfs.ErrQuota) || errors.Is(err, vfs.ErrNoAnswer)
}

// leave gives the directory its attributes and counts it. It reports whether there is
// one: what has been made for a directory that is gone is removed, if it is empty. One
// that is closed and not finished keeps its mode.
func (j *copyJob) leave(ctx context.Context, d *walk.Dir, s *dirState, incomplete error) (made bool) {
	if j.keepsOwn(d) {
		j.progress.Add(progress.Dirs, 1)
		return true
	}
	<-s.plain.done
	gone, err := j.whetherGone(ctx, d, s, incomplete)
	if gone {
		s.up(d).missing.Store(true)
		if j.removeEmpty(ctx, d, s) {
			if !errors.Is(incomplete, walk.ErrVanished) {
				err = fmt.Errorf("the %v %w", d.Attr.Type, transfer.ErrVanished)
			}
			j.failAt(ctx, d.Path(""), err, listedDir(d))
			j.opened(s)
			return false
		}
	}
	if s.closed && s.unfinished.Load() {
		j.fail(ctx, d.Path(""), err)
		return true
	}
	if gone || s.plain.err == nil || errors.Is(err, errReplaced) {
		err = errors.Join(err, j.setDir(ctx, d, s))
	}
	j.fail(ctx, d.Path(""), err)
	if err == nil {
		j.opened(s)
		j.progress.Add(progress.Dirs, 1)
	}
	return true
}

// whetherGone reports whether d, of the source, is not there any more. An error is what
// has to be told of it.
func (j *copyJob) whetherGone(ctx context.Context, d *walk.Dir, s *dirState, incomplete error) (bool, error) {
	if errors.Is(incomplete, walk.ErrVanished) {
		return true, nil // that has been told
	}
	moved := errors.Is(s.plain.err, transfer.ErrVanished)
	if s.plain.err != nil && !moved {
		return false, s.plain.err
	}
	if !moved && !s.missing.Load() || d.Parent == nil {
		return false, s.plain.err
	}
	// Its handle leads nowhere any more, or that of something that was listed in it. Perhaps
	// it is another by now.
	gone, err := j.gone(ctx, d)
	if moved && !gone && err == nil { // it is back
		src := transfer.Source{FS: j.o.Source.FS, Handle: d.Handle, Attr: d.Attr}
		s.plain.mode, s.plain.lost, s.plain.err = j.t.DirMode(ctx, &src)
		err = s.plain.err
	}
	return gone, err
}

// setDir gives the directory its attributes.
func (j *copyJob) setDir(ctx context.Context, d *walk.Dir, s *dirState) error {
	want := d.Attr
	want.Mode = s.plain.mode
	if s.plain.err != nil {
		want.Mode &^= groupMayAll // what a list gave to the group itself, nobody knows any more
	}
	_, lost, err := transfer.SetAttrs(ctx, j.o.Dest.FS, s.handle, &want, &s.attr, j.t.Owners)
	lost.ACL, lost.Xattr = s.plain.lost, s.plain.xattr
	if s.plain.err != nil && d.Attr.Mode&groupMayAll != 0 {
		lost.Mode = true
		j.progress.Report(progress.Event{
			Type: "note", Path: d.Path(""), Message: "the directory was moved or removed while it was being copied; its copy has no rights for the group",
		})
	}
	j.lost(lost)
	return err
}

// up is what is known of the directory that d lies in; of the root, of itself.
func (s *dirState) up(d *walk.Dir) *dirState {
	if d.Parent == nil {
		return s
	}
	return d.Parent.Data.(*dirState)
}

// removeEmpty takes away what has been made for a directory that has vanished, if that
// was this run and nothing is in it. If it cannot be removed, it stays.
func (j *copyJob) removeEmpty(ctx context.Context, d *walk.Dir, s *dirState) bool {
	if !s.created || d.Parent == nil {
		return false
	}
	_, err := j.o.Dest.FS.Remove(ctx, d.Parent.Data.(*dirState).handle, d.Name, true)
	return err == nil
}
