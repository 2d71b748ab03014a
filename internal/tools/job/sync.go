package job

import (
	"context"
	"fmt"
	"sync"

	"github.com/nfsbox/nfsbox/internal/tools/hands"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/vfs"
)

// SyncOptions say how a copy makes the destination what the source is.
type SyncOptions struct {
	// Checksum has the contents compared of files that have the same size, whatever their times.
	// Without it, files with the same size and time count as the same.
	Checksum bool
	// Compare has the contents compared of files that count as the same by size and time. One that differs is copied. What was
	// compared counts as verified.
	Compare bool
	// ACLs has access control lists and extended attributes compared of what is not copied. Without
	// it, they are asked for only where modes differ.
	ACLs bool
	// OwnLists and OwnXattrs have access control lists, and extended attributes, stay that the destination has and the source does
	// not, of what is not copied: it may not show all that there are. They have a meaning with ACLs alone.
	OwnLists, OwnXattrs bool
	// Wary has the contents compared of files that are the same by size and time, and are to get another owner or group: whose they are may
	// have given them both. One that differs, or has other names than the source has, is made anew.
	Wary bool
	// Existing says what happens to what the destination has already under a name of the source.
	Existing Existing
	// Delete, if not nil, has deleted what the source does not have, when all is copied. Then also
	// a directory gives way to what is none, and the reverse.
	Delete *DeleteOptions
}

// Existing says what a sync does with an object that the destination has. A directory is never replaced, and
// never followed if it is a symbolic link: without SyncOptions.Delete, what has another type than the
// directory fails.
type Existing int

const (
	// Update replaces what differs, and sets attributes again.
	Update Existing = iota
	// Keep leaves it as it is, whatever it is like: it counts as unchanged. So do directories, but for those
	// that an earlier run of the job, with the same record, has made and not finished.
	Keep
	// Replace makes files anew, but for those that the record has.
	Replace
)

// A sync joins directories that the destination has with those of the source (package delta). What is
// the same by what both listings say is passed over: nothing is asked for it. Before a name is made
// that the listing of the destination does not have, it is looked up: the destination may take it for
// another one, which was passed over.

// errDirInTheWay says that a directory has the name of what is none.
var errDirInTheWay = fmt.Errorf("a directory has the name in the destination, and is not replaced; move or remove it: %w", vfs.ErrIsDir)

// beforeMade makes ready to make name in a directory. there is what the directory has listed under it.
func (j *copyJob) beforeMade(ctx context.Context, s *dirState, name string, there *vfs.Entry) error {
	if j.o.Sync == nil || !s.joined {
		return nil
	}
	if there != nil && there.Attr.Type == vfs.TypeDir {
		if j.mayDelete() {
			return errLater
		}
		return errDirInTheWay
	}
	j.touch(ctx, s)
	if there == nil {
		return j.spare(ctx, s, name)
	}
	return nil
}

// keepsAll reports whether what the destination has stays as it is.
func (j *copyJob) keepsAll() bool { return j.o.Sync != nil && j.o.Sync.Existing == Keep }

// keepsDir reports whether a directory stays as it is. One that an earlier run has made, and not finished, is closed;
// whether it has made the copy's root, nobody knows, and so that is finished.
func (j *copyJob) keepsDir(s *dirState) bool {
	return j.keepsAll() && !s.created && !(j.goesOn() && (s.closed || s.dir != nil && s.dir.Parent == nil))
}

// touch notes that something in a directory is to be changed, and lets us do so: its mode may forbid
// it. If we may not change that, the items in it fail and say so.
func (j *copyJob) touch(ctx context.Context, s *dirState) {
	s.opening.Do(func() {
		s.touched.Store(true)
		if j.o.Sync == nil || !s.joined || j.keepsDir(s) || !s.attr.Has(vfs.MaskMode) || s.attr.Mode&ownerMayAll == ownerMayAll {
			return
		}
		set := vfs.SetAttr{Valid: vfs.MaskMode, Mode: s.attr.Mode | ownerMayAll}
		_, _ = j.o.Dest.FS.SetAttr(ctx, s.handle, &set, nil) // what is made in it fails then
	})
}

// needsNothing counts an object that is as it should be.
func (j *copyJob) needsNothing(a *vfs.Attr) {
	j.sameAs.Add(1)
	j.progress.Add(progress.Skipped, 1)
	if a.Type == vfs.TypeReg {
		j.progress.Add(progress.FoundBytes, -a.Size)
		j.progress.Add(progress.SkippedBytes, a.Size)
	}
}

// unchanged reports whether the destination has the object as it is, and counts it then. Owner, mode
// and what else belongs to it are set again if they differ.
func (j *copyJob) unchanged(ctx context.Context, s *dirState, src *transfer.Source, dst *transfer.Target, there *vfs.Entry) (copied object, same bool, err error) {
	if copied, err = j.known(ctx, dst.Dir, dst.Name, there); err != nil {
		return object{}, false, err
	}
	same, timely, err := j.alikeThere(ctx, s.where(), src, &copied)
	if j.keepsAll() && err == nil {
		if !same {
			copied = object{} // no further name is linked to it
		}
		j.needsNothing(&src.Attr)
		return copied, true, nil
	}
	if !same || err != nil {
		return object{}, false, err
	}
	if _, err := j.setAgain(ctx, s.path(src.Name), src, &copied, !timely); err != nil {
		return object{}, false, err
	}
	j.needsNothing(&src.Attr)
	return copied, true, nil
}

// alikeThere reports whether the destination has the object, but for attributes that can be set again,
// and whether it has its time.
func (j *copyJob) alikeThere(ctx context.Context, at *hands.Dir, src *transfer.Source, there *object) (same, timely bool, err error) {
	a, b := &src.Attr, &there.attr
	timely = j.times.same(a.Mtime, b.Mtime)
	switch {
	case a.Type != b.Type, b.Nlink > 1 && a.Nlink < 2 && a.Type != vfs.TypeReg:
	case a.Type == vfs.TypeReg && j.o.Sync.Existing == Replace:
	case a.Type == vfs.TypeReg:
		same, err = j.sameFile(ctx, at, src, there, timely)
	case a.Type == vfs.TypeSymlink:
		same, err = j.sameTarget(ctx, src, there)
	default:
		same = a.Rdev == b.Rdev || a.Type != vfs.TypeBlock && a.Type != vfs.TypeChar
	}
	// What differs in itself is no copy of another: it must not be taken for one, whichever name is met first.
	return same && err == nil && !j.kept.another(a, b), timely, err
}

// sameFile reports whether the destination has a file as it is. Contents are compared where that was asked for, and where times tell
// nothing: all those that the destination does not have become the same one there.
func (j *copyJob) sameFile(ctx context.Context, at *hands.Dir, src *transfer.Source, there *object, timely bool) (same bool, err error) {
	a, b, o := &src.Attr, &there.attr, j.o.Sync
	if a.Size != b.Size || !timely && !o.Checksum {
		return false, nil
	}
	var is standing
	if !j.keepsAll() { // else it gets nothing
		is, err = j.standing(ctx, src, there)
	}
	switch {
	case err != nil || is == unfit:
		return false, err
	case is == stands && !o.Checksum && !o.Compare && j.times.equal(a.Mtime, b.Mtime):
		return true, nil
	}
	if same, err = j.sameContents(ctx, at, src, there); err != nil || is == stands && !o.Compare {
		return same, err
	}
	if !same {
		j.otherBytes(pathIn(at, src.Name))
	} else if o.Compare {
		j.progress.Add(progress.Verified, 1)
	}
	return same, nil
}

// sameContents compares two files of one size. If the destination's cannot be read, it is not the
// same.
func (j *copyJob) sameContents(ctx context.Context, at *hands.Dir, src *transfer.Source, copied *object) (bool, error) {
	t := transfer.Options{Pool: j.t.Pool, Chunk: j.t.Chunk, Budget: j.t.Budget, Throttle: j.t.Throttle}
	cmp, err := j.hands.Compare(ctx, at, *src, transfer.Source{FS: j.o.Dest.FS, Handle: copied.handle, Attr: copied.attr}, src.Attr.Size, &t)
	if err != nil {
		return false, ctx.Err() // copying it meets the same error, or none
	}
	return !cmp.Differ, nil
}

// sameTarget compares two symbolic links. What cannot be read is not the same: making the link meets
// the same error, or none.
func (j *copyJob) sameTarget(ctx context.Context, src *transfer.Source, copied *object) (bool, error) {
	var targets [2]string
	var errs [2]error
	var both sync.WaitGroup
	both.Go(func() { targets[0], _, errs[0] = src.FS.Readlink(ctx, src.Handle) })
	both.Go(func() { targets[1], _, errs[1] = j.o.Dest.FS.Readlink(ctx, copied.handle) })
	both.Wait()
	return errs[0] == nil && errs[1] == nil && targets[0] == targets[1], ctx.Err()
}

// setAgain gives an object of the destination the owner, mode, lists and extended attributes of its
// source where they differ, and its times if times is set. It reports whether any was set.
func (j *copyJob) setAgain(ctx context.Context, path string, src *transfer.Source, copied *object, times bool) (set bool, err error) {
	set, lost, err := j.keepAttrs(ctx, src, copied)
	if err == nil && times {
		want := src.Attr
		want.Valid &= vfs.MaskAtime | vfs.MaskMtime
		var unset transfer.Lost
		_, unset, err = transfer.SetAttrs(ctx, j.o.Dest.FS, copied.handle, &want, &copied.attr, nil)
		lost.Times, set = unset.Times, true
	}
	if err != nil {
		return set, err
	}
	j.lost(lost, path)
	if !set {
		return false, nil
	}
	j.attrsSet.Add(1)
	if src.Attr.Type == vfs.TypeDir {
		return true, nil // it is synced when it is left
	}
	j.tell(path)
	return true, j.syncLater(ctx, copied.handle)
}

// keepAttrs is setAgain without the times.
func (j *copyJob) keepAttrs(ctx context.Context, src *transfer.Source, copied *object) (set bool, lost transfer.Lost, err error) {
	want := src.Attr
	want.Valid &= vfs.MaskType | vfs.MaskMode | vfs.MaskUID | vfs.MaskGID
	want.Mode &= 0o7777
	switch {
	case want.Type == vfs.TypeSymlink:
		set, lost, err = j.keepLink(ctx, copied, &want)
	case j.o.Sync.ACLs:
		set, lost, err = j.keepLists(ctx, src, copied, &want)
	default:
		return j.keepMode(ctx, src, copied, &want)
	}
	if err != nil || !j.o.Sync.ACLs {
		return set, lost, err
	}
	marked, err := j.keepXattrs(ctx, src, copied, &lost)
	return set || marked, lost, err
}

// keepLink gives a symbolic link its owner: it has no mode that could be set.
func (j *copyJob) keepLink(ctx context.Context, copied *object, want *vfs.Attr) (set bool, lost transfer.Lost, err error) {
	if want.Valid &^= vfs.MaskMode; !j.o.Owner || want.UID == copied.attr.UID && want.GID == copied.attr.GID {
		return false, lost, nil
	}
	_, lost, err = transfer.SetAttrs(ctx, j.o.Dest.FS, copied.handle, want, &copied.attr, j.t.Owners)
	return err == nil && !lost.Owner, lost, err
}

// keepMode gives an object owner and mode. Its lists are asked for only if its mode differs.
func (j *copyJob) keepMode(ctx context.Context, src *transfer.Source, copied *object, want *vfs.Attr) (set bool, lost transfer.Lost, err error) {
	lists := transfer.Lists{Mode: want.Mode}
	if copied.attr.Mode&0o7777 != want.Mode {
		if lists, err = j.t.Lists(ctx, src, &src.Attr); err != nil {
			return false, lost, err
		}
	}
	return j.t.KeepAll(ctx, j.o.Dest.FS, copied.handle, want, &copied.attr, &lists)
}

// keepLists is keepMode with access control lists, which are compared.
func (j *copyJob) keepLists(ctx context.Context, src *transfer.Source, copied *object, want *vfs.Attr) (set bool, lost transfer.Lost, err error) {
	dst := transfer.Source{FS: j.o.Dest.FS, Handle: copied.handle, Attr: copied.attr}
	in, out, same, err := j.t.CompareLists(ctx, src, &dst)
	switch {
	case err != nil:
		return false, lost, err
	case same || in.Some() || j.o.Sync.OwnLists:
		set, lost, err = j.t.KeepAll(ctx, j.o.Dest.FS, copied.handle, want, &copied.attr, &in)
	default: // it has one, and shall have none
		_, lost, err = j.t.SetAll(ctx, j.o.Dest.FS, copied.handle, want, &copied.attr, &in, out.Some())
		set = true
	}
	return set, lost, err
}

// keepXattrs gives an object the extended attributes of the source, where they differ, and removes those
// that the source does not have.
func (j *copyJob) keepXattrs(ctx context.Context, src *transfer.Source, copied *object, lost *transfer.Lost) (set bool, err error) {
	dst := &transfer.Source{FS: j.o.Dest.FS, Handle: copied.handle, Attr: copied.attr}
	names, more, err := transfer.DifferingXattrs(ctx, src, dst)
	if err != nil || len(names)+len(more) == 0 {
		return false, err
	}
	owned := j.o.Owner && !lost.Owner || src.Attr.UID == dst.Attr.UID && src.Attr.GID == dst.Attr.GID
	if set, lost.Xattr, err = src.KeepXattrs(ctx, dst.FS, dst.Handle, owned); err != nil {
		return set, err
	}
	to, ok := vfs.As[vfs.Xattrer](dst.FS)
	if !ok || j.o.Sync.OwnXattrs {
		return set, nil
	}
	for _, name := range more {
		if err := to.RemoveXattr(ctx, dst.Handle, name); err != nil {
			lost.Xattr = true
			continue
		}
		set = true
	}
	return set, nil
}

// differs reports whether owner, mode, lists or extended attributes of an object would be set.
func (j *copyJob) differs(ctx context.Context, src *transfer.Source, there *object) (bool, error) {
	a, b := &src.Attr, &there.attr
	if j.o.Owner && (a.UID != b.UID || a.GID != b.GID) {
		return true, nil
	}
	if j.o.Sync.ACLs {
		dst := transfer.Source{FS: j.o.Dest.FS, Handle: there.handle, Attr: there.attr}
		in, _, same, err := j.t.CompareLists(ctx, src, &dst)
		if err != nil || !same && (in.Some() || !j.o.Sync.OwnLists) {
			return true, err
		}
		names, more, err := transfer.DifferingXattrs(ctx, src, &dst)
		if err != nil || len(names) > 0 || len(more) > 0 && !j.o.Sync.OwnXattrs {
			return true, err
		}
	}
	if a.Type == vfs.TypeSymlink || a.Mode&0o7777 == b.Mode&0o7777 {
		return false, nil
	}
	lists, err := j.t.Lists(ctx, src, a)
	return lists.Mode != b.Mode&0o7777, err
}
