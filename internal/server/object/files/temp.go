package files

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/vfs"
)

// temp is a new object that has a temporary name.
type temp struct {
	s    *Store
	in   *folder
	name string // "": it has none any more
	h    vfs.Handle
	attr vfs.Attr
	f    vfs.File // nil: it is closed

	verf    vfs.Verifier
	written bool // something was written unstably, under verf
}

// lasting returns a context that ends lookPatience after ctx.
func lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	long, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(lookPatience, cancel) })
	return long, func() { stop(); cancel() }
}

// newTemp makes a temp in the directory where it will stay.
func (s *Store) newTemp(ctx context.Context, f *folder) (*temp, error) {
	how := vfs.OpenHow{Access: vfs.ShareWrite, Create: &vfs.CreateHow{
		Type: vfs.TypeReg, Mode: vfs.CreateGuarded, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600}}}
	var err error
	for range maxTries {
		t := &temp{s: s, in: f, name: s.tempName()}
		var o vfs.Opened
		t.f, o, err = s.fs.Open(ctx, vfs.At{Dir: f.h, Name: t.name}, &how)
		if err == nil {
			t.h, t.attr = o.H, o.Attr
			return t, nil
		}
		// Whether this is the file of a call whose answer was lost is not worth knowing.
		if !unsure(err) && !errors.Is(err, vfs.ErrExist) {
			break
		}
		t.f = nil
		t.discard(ctx)
	}
	return nil, fail("create", err)
}

// write writes p at off: so that it is stable, if that is all of a small object.
func (t *temp) write(ctx context.Context, p []byte, off int64) error {
	how := vfs.Unstable
	if off == 0 && len(p) < chunk {
		how = vfs.FileSync
	}
	var w vfs.Written
	if _, err := vfs.WriteFull(ctx, t.f, p, uint64(off), how, &w); err != nil {
		return fail("write", err)
	}
	if w.Committed == vfs.FileSync {
		return nil
	}
	if t.written && w.Verf != t.verf {
		return errLost
	}
	t.written, t.verf = true, w.Verf
	return nil
}

// errLost is what becomes of a Put whose bytes the server has forgotten.
var errLost = fmt.Errorf("%w: the server was restarted and has lost what was written; put it again", object.ErrBusy)

// finish makes what was written stable, and closes the file.
func (t *temp) finish(ctx context.Context) error {
	if t.written {
		var w vfs.Written
		if err := t.f.Commit(ctx, 0, 0, &w); err != nil {
			return fail("commit", err)
		}
		if w.Verf != t.verf {
			return errLost
		}
	}
	f := t.f
	t.f = nil
	return fail("close", f.Close(context.WithoutCancel(ctx)))
}

// discard closes t, if it is open, and removes its temporary name, if it still has one. What cannot
// be removed stays until a sweep.
func (t *temp) discard(ctx context.Context) {
	ctx, cancel := lasting(ctx)
	defer cancel()
	if t.f != nil {
		_ = t.f.Close(ctx) // its bytes are nobody's
		t.f = nil
	}
	if t.name == "" {
		return
	}
	if _, err := t.s.fs.Remove(ctx, t.in.h, t.name, false); err != nil && !errors.Is(err, vfs.ErrNoEnt) {
		t.s.left.Add(1)
	}
	t.name = ""
}
