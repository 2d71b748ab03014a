package v3

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"github.com/nfsbox/nfsbox/vfs"
)

// openFiles are the files that this FS has open, by handle. The server does not know of them. To keep
// them readable when their last name is removed, they are renamed to a hidden name, as NFS clients have
// done since 1985.
type openFiles struct {
	mu    sync.Mutex
	m     map[vfs.Handle]*openFile
	names openNames // guarded by mu
}

// openFile is one file of the table. n counts its Files and the calls that are about to take a
// name from it.
type openFile struct {
	n int // guarded by openFiles.mu

	mu     sync.Mutex // held while a name is taken from the file
	hidden *hidden    // guarded by mu, until the last hold has ended
}

// hidden is the name that keeps a file alive. The view that made it removes it.
type hidden struct {
	fs    *FS
	dir   vfs.Handle
	name  string
	doubt bool // it is not known whether it was made
}

// keeps reports whether h has the hidden name, as far as is known.
func (d *hidden) keeps(ctx context.Context, h vfs.Handle) bool {
	if d.doubt {
		found, _, _, err := d.fs.Lookup(ctx, d.dir, d.name)
		d.doubt = err != nil || found != h
	}
	return !d.doubt
}

func (t *openFiles) add(h vfs.Handle) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.m[h]
	if e == nil {
		e = new(openFile)
		if t.m == nil {
			t.m = make(map[vfs.Handle]*openFile)
		}
		t.m[h] = e
	}
	e.n++
}

// hold returns the entry of h if h is open. The caller calls release.
func (t *openFiles) hold(h vfs.Handle) *openFile {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.m[h]
	if e != nil {
		e.n++
	}
	return e
}

// release undoes an add or a hold. The last one removes the hidden name.
func (t *openFiles) release(ctx context.Context, h vfs.Handle) error {
	t.mu.Lock()
	e := t.m[h]
	e.n--
	last := e.n == 0
	if last {
		delete(t.m, h)
	}
	t.mu.Unlock()
	if !last || e.hidden == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	_, err := e.hidden.fs.remove(ctx, e.hidden.dir, e.hidden.name, false)
	if err != nil && !errors.Is(err, vfs.ErrNoEnt) {
		return fmt.Errorf("a file that was removed while open is left behind as %s: %w", e.hidden.name, err)
	}
	return nil
}

// hideRemoved removes name from dir if it is an open file's, by hiding it. done is false if it
// is not, and a plain REMOVE suffices.
func (f *FS) hideRemoved(ctx context.Context, dir vfs.Handle, name string) (wcc vfs.WCC, done bool, err error) {
	if f.opt.Plain || !f.open.mayBe(f.names.folded(&dir, name)) {
		return wcc, false, nil
	}
	h, _, _, err := f.Lookup(ctx, dir, name)
	if err != nil {
		return wcc, true, err
	}
	e := f.open.hold(h)
	if e == nil {
		return wcc, false, nil
	}
	defer func() { err = errors.Join(err, f.open.release(ctx, h)) }()
	e.mu.Lock()
	defer e.mu.Unlock()
	if f.survives(ctx, e, h) {
		f.open.moved(f.names.folded(&dir, name))
		wcc, err = f.remove(ctx, dir, name, false)
		return wcc, true, err
	}
	wcc, err = f.hide(ctx, e, h, dir, name)
	return wcc, true, err
}

// survives reports whether the open file h has a name besides the one that it is about to lose. e.mu is
// held, so that two names are not removed at once, each because of the other.
func (f *FS) survives(ctx context.Context, e *openFile, h vfs.Handle) bool {
	if e.hidden != nil && e.hidden.keeps(ctx, h) {
		return true
	}
	a, err := f.GetAttr(ctx, h, vfs.MaskNlink)
	return err == nil && a.Nlink > 1
}

// hide renames the open file h. e.mu is held.
func (f *FS) hide(ctx context.Context, e *openFile, h, dir vfs.Handle, name string) (vfs.WCC, error) {
	hid := f.newHidden(dir)
	wcc, _, err := f.rename(ctx, &move{fromDir: dir, toDir: dir, fromName: name, toName: hid.name, object: f.names.object(&h)})
	e.keep(hid, err)
	return wcc, err
}

// keep records a hidden name, if it may exist: removing a missing name does no harm. err is the
// result of making it. e.mu is held.
func (e *openFile) keep(hid *hidden, err error) {
	hid.doubt = errors.Is(err, vfs.ErrUnknownOutcome)
	if err == nil || hid.doubt {
		e.hidden = hid
	}
}

func (f *FS) newHidden(dir vfs.Handle) *hidden {
	var r [8]byte
	f.opt.Rand(r[:])
	return &hidden{fs: f, dir: dir, name: ".nfs" + hex.EncodeToString(r[:])}
}

// move is a rename in progress.
type move struct {
	fromDir, toDir   vfs.Handle
	fromName, toName string
	object           uint64 // what the source was before, as nameMemory.object has it; 0: not known
}

// openTarget returns the open file that m would replace, held, or nil.
func (f *FS) openTarget(ctx context.Context, m *move) (*openFile, vfs.Handle) {
	if f.opt.Plain || m.fromDir == m.toDir && m.fromName == m.toName || !f.open.mayBe(f.names.folded(&m.toDir, m.toName)) {
		return nil, vfs.Handle{}
	}
	// RENAME reports what is wrong with either name.
	target, _, _, err := f.Lookup(ctx, m.toDir, m.toName)
	if err != nil {
		return nil, target
	}
	return f.open.hold(target), target
}

// keep gives the open file h, which m is about to replace, a hidden name: by a hard link, so that the
// target's name always exists, or by renaming where the server makes no links. In the second case undo
// restores the name. e.mu is held.
func (f *FS) keep(ctx context.Context, e *openFile, h vfs.Handle, m *move) (undo func() error, err error) {
	undo = func() error { return nil }
	source, attr, _, err := f.Lookup(ctx, m.fromDir, m.fromName)
	// RENAME does nothing for two names of one object, and refuses to replace a file by a
	// directory: the server says so, if the file still exists.
	if err != nil || source == h || attr.Type == vfs.TypeDir || f.survives(ctx, e, h) {
		return undo, err
	}
	hid := f.newHidden(m.toDir)
	_, _, err = f.Link(ctx, h, m.toDir, hid.name)
	e.keep(hid, err)
	if err == nil || hid.doubt {
		return undo, err
	}
	if _, ok := errors.AsType[*StatusError](err); !ok && !errors.Is(err, vfs.ErrNotSupp) {
		return undo, err
	}
	if _, err = f.hide(ctx, e, h, m.toDir, m.toName); err != nil {
		return undo, err
	}
	return func() error {
		_, _, err := f.rename(ctx, &move{fromDir: m.toDir, toDir: m.toDir, fromName: e.hidden.name, toName: m.toName})
		if err == nil {
			e.hidden = nil
		}
		return err
	}, nil
}

// renameOver renames over the open file h, and releases it.
func (f *FS) renameOver(ctx context.Context, e *openFile, h vfs.Handle, m *move) (from, to vfs.WCC, err error) {
	defer func() { err = errors.Join(err, f.open.release(ctx, h)) }()
	f.open.moved(f.names.folded(&m.toDir, m.toName))
	e.mu.Lock()
	defer e.mu.Unlock()
	undo, err := f.keep(ctx, e, h, m)
	if err != nil {
		return from, to, err
	}
	from, to, err = f.rename(ctx, m)
	if err != nil && !errors.Is(err, vfs.ErrUnknownOutcome) {
		err = errors.Join(err, undo())
	}
	return from, to, err
}
