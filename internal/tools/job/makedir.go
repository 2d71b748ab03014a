package job

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// makeDir makes the directory name in parent, or takes the existing one, unless this run
// made that for another name. there is what the destination has listed under the name.
func (j *copyJob) makeDir(ctx context.Context, parent *dirState, name string, there *vfs.Entry) (*dirState, error) {
	if j.o.Sync != nil && there != nil {
		return j.listedDir(ctx, parent, name, there)
	}
	if err := j.beforeMade(ctx, parent, name, there); err != nil {
		return nil, err
	}
	end, err := j.beginName(ctx, parent, name)
	if err != nil {
		return nil, err
	}
	var state *dirState
	if there != nil {
		state, err = j.listedDir(ctx, parent, name, there)
	} else {
		state, err = j.takeDir(ctx, parent, name)
	}
	end(err == nil)
	return state, err
}

// takeDir makes a directory, or takes the existing one.
func (j *copyJob) takeDir(ctx context.Context, parent *dirState, name string) (*dirState, error) {
	f := j.o.Dest.FS
	how := vfs.CreateHow{Type: vfs.TypeDir, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o700}}
	h, attr, _, err := f.Create(ctx, parent.handle, name, &how)
	if err == nil {
		state := &dirState{handle: h, attr: attr, key: j.dirKey(parent, name), created: true, made: parent.made.madeIn(), listed: parent.listed}
		return state, nil
	}
	if !errors.Is(err, vfs.ErrExist) {
		return nil, fmt.Errorf("make the directory: %w", err)
	}
	there, err := j.lookupThere(ctx, parent.handle, name)
	if err != nil {
		return nil, err
	}
	return j.oldDir(ctx, parent, name, there)
}

// listedDir takes a directory that the destination has listed.
func (j *copyJob) listedDir(ctx context.Context, parent *dirState, name string, there *vfs.Entry) (*dirState, error) {
	o, err := j.known(ctx, parent.handle, name, there)
	if err != nil {
		return nil, err
	}
	return j.oldDir(ctx, parent, name, o)
}

// oldDir takes a directory that was there before. Any other type, a link to a directory too, is an
// error.
func (j *copyJob) oldDir(ctx context.Context, parent *dirState, name string, o object) (*dirState, error) {
	if o.attr.Type != vfs.TypeDir && j.mayDelete() && parent.joined {
		return nil, errLater
	}
	if o.attr.Type != vfs.TypeDir {
		return nil, inTheDirsWay(o.attr.Type)
	}
	state := &dirState{handle: o.handle, attr: o.attr, key: j.dirKey(parent, name), made: new(Made)}
	state.listed = sync.OnceValue(func() bool { return j.t.Listed(ctx, j.o.Dest.FS, o.handle, &o.attr) })
	if j.o.Sync != nil && j.mayList(ctx, &o) {
		return state, j.sweep(ctx, state.handle) // touch opens it, if need be
	}
	return state, j.reopen(ctx, state)
}

// mayList reports whether a directory of the destination can be listed as it is: root may list one whose mode forbids it.
func (j *copyJob) mayList(ctx context.Context, o *object) bool {
	if o.attr.Has(vfs.MaskMode) && o.attr.Mode&ownerMayList == ownerMayList {
		return true
	}
	const list = vfs.AccessRead | vfs.AccessLookup
	may, _, err := j.o.Dest.FS.Access(ctx, o.handle, list)
	return err == nil && may&list == list
}

// inTheDirsWay says that what is no directory has the name of one.
func inTheDirsWay(t vfs.Type) error {
	return &inTheWay{t}
}

// inTheWay is the error of a directory whose name something else has in the destination. It Is vfs.ErrNotDir, which as a part
// of the text would seem to be about the directory.
type inTheWay struct{ t vfs.Type }

func (e *inTheWay) Error() string {
	return fmt.Sprintf("a %v is in the way of the directory in the destination, and is not replaced; move or remove it", e.t)
}

func (e *inTheWay) Unwrap() error { return vfs.ErrNotDir }

// dirKey is the key of a directory in the record, if there is one.
func (j *copyJob) dirKey(parent *dirState, name string) pathKey {
	if j.record == nil {
		return pathKey{}
	}
	return parent.key.child(name)
}

// lookupThere finds what has a name in the destination.
func (j *copyJob) lookupThere(ctx context.Context, dir vfs.Handle, name string) (o object, err error) {
	f := j.o.Dest.FS
	if o.handle, o.attr, _, err = f.Lookup(ctx, dir, name); err != nil {
		return o, fmt.Errorf("lookup in the destination: %w", err)
	}
	if !o.attr.Has(vfs.MaskV3) {
		if o.attr, err = f.GetAttr(ctx, o.handle, vfs.MaskV3); err != nil {
			return o, fmt.Errorf("getattr in the destination: %w", err)
		}
	}
	return o, nil
}

// known is what the destination has listed under a name. What the listing has left out is asked for.
func (j *copyJob) known(ctx context.Context, dir vfs.Handle, name string, there *vfs.Entry) (object, error) {
	if !there.Handle.IsZero() && there.Attr.Has(vfs.MaskV3) {
		return object{handle: there.Handle, attr: there.Attr}, nil
	}
	return j.lookupThere(ctx, dir, name)
}

// reopen lets us use an existing directory: an earlier run may have given it its final
// mode. If we may not change the mode, the items in it fail and say so.
func (j *copyJob) reopen(ctx context.Context, s *dirState) error {
	if s.attr.Has(vfs.MaskMode) && s.attr.Mode&ownerMayAll != ownerMayAll && !j.keepsDir(s) {
		set := vfs.SetAttr{Valid: vfs.MaskMode, Mode: s.attr.Mode | ownerMayAll}
		if _, err := j.o.Dest.FS.SetAttr(ctx, s.handle, &set, nil); err != nil && !errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("open the directory: %w", err)
		}
		s.touched.Store(true)
	}
	return j.sweep(ctx, s.handle)
}

// sweep removes temporaries that an earlier run of this job left in a directory, but for those of files
// that are copied in part. The
// record's lock, or the caller, ensures that no other run is active.
func (j *copyJob) sweep(ctx context.Context, dir vfs.Handle) error {
	if !j.o.Sweep && (j.record == nil || !j.record.resumed) {
		return nil
	}
	return j.sweepNow(ctx, dir)
}

// sweepAfter removes what workers have left in a directory that is done. One that was not heard of any more may have
// made temporaries after its batch went to another, or after this run began, and be killed then. If it is still
// there, what it writes comes to nothing: all files of the directory are done, or have failed.
func (j *copyJob) sweepAfter(ctx context.Context, s *dirState) error {
	if j.t.Tag == "" || !s.handed.Load() && (j.hands.AtOnce() == 0 || j.record == nil || !j.record.resumed) {
		return nil
	}
	return j.sweepNow(ctx, s.handle)
}

// sweepNow removes temporaries of this job, of all runs.
func (j *copyJob) sweepNow(ctx context.Context, dir vfs.Handle) error {
	for e, err := range walk.List(ctx, j.o.Dest.FS, dir, 0) {
		if err != nil {
			return fmt.Errorf("look for temporaries: %w", err)
		}
		name := string(e.Name)
		if !isOurTemp(name, j.t.Tag) || j.parts.spares(name) {
			continue
		}
		if _, err := j.o.Dest.FS.Remove(ctx, dir, name, false); err != nil && !errors.Is(err, vfs.ErrNoEnt) {
			return fmt.Errorf("remove the temporary %s: %w", name, err)
		}
	}
	return nil
}
