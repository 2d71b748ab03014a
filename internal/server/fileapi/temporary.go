package fileapi

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/vfs"
)

// tempPrefix begins the names of temporaries. After it come the random number of the
// server's run, in 16 hexadecimal digits, a hyphen, and another one of the temporary's own:
// who may write to the directory otherwise, by NFS say, could take the next names, and so
// keep others from storing files there. Such names are the server's: no request may use
// one, and no listing shows one.
const tempPrefix = ".nfsbox-upload-"

// temporaries makes temporaries for uploads, and removes those of uploads that failed.
type temporaries struct {
	own    vfs.FS // the program's own view: a caller's may have lost the right
	run    string
	rand   func([]byte)
	ledger *ledger // nil: none is kept
	left   atomic.Uint64
	report func(error)
}

// temporary is a file that has not yet got its name.
type temporary struct {
	t    *temporaries
	view *export.View
	dir  vfs.Handle
	name string
	h    vfs.Handle
	file vfs.File // nil: closed
	done bool     // it has its name, or was removed
}

// newTemporaries sweeps the temporaries of former runs and begins a run of its own.
func newTemporaries(ctx context.Context, o *Options) (*temporaries, error) {
	t := &temporaries{own: o.Table.As(nil), rand: o.Rand, report: o.Report}
	t.run = t.random()
	if o.Ledger == "" {
		return t, nil
	}
	var err error
	t.ledger, err = openLedger(ctx, o.Ledger, t)
	return t, err
}

func (t *temporaries) close() error {
	if t.ledger == nil {
		return nil
	}
	return t.ledger.close()
}

// random is a random number, in 16 hexadecimal digits.
func (t *temporaries) random() string {
	var b [8]byte
	t.rand(b[:])
	return hex.EncodeToString(b[:])
}

// reserved reports whether a name is one that only the server may use.
func reserved(name string) bool { return strings.HasPrefix(name, tempPrefix) }

// create makes a temporary in dir, for a file of that mode. The caller must call discard in
// the end, even after rename. With sync, the bytes are made stable once, by a commit, and
// the name by the rename.
func (t *temporaries) create(ctx context.Context, view *export.View, dir vfs.Handle, mode uint32, sync bool) (*temporary, error) {
	if t.ledger != nil {
		if err := t.ledger.enter(dir); err != nil {
			return nil, err
		}
	}
	how := vfs.OpenHow{Access: vfs.ShareWrite, NoCommit: !sync, Create: &vfs.CreateHow{
		Type: vfs.TypeReg, Mode: vfs.CreateGuarded, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: mode},
	}}
	unstable := view.Unstable() // the temporary's name need not be stable
	tmp := &temporary{t: t, view: view, dir: dir}
	if !sync {
		tmp.view = unstable
	}
	var err error
	for range maxTries {
		tmp.name = tempPrefix + t.run + "-" + t.random()
		var o vfs.Opened
		tmp.file, o, err = unstable.Open(ctx, vfs.At{Dir: dir, Name: tmp.name}, &how)
		if tmp.h = o.H; !errors.Is(err, vfs.ErrExist) {
			break
		}
	}
	if err != nil {
		// The file may have been made, if a later step failed.
		tmp.file, tmp.done = nil, !mayExist(err)
		return nil, errors.Join(err, tmp.discard(ctx))
	}
	return tmp, nil
}

// mayExist reports whether a create that failed with err may have made the file. It is
// false for errors that a file system returns before it begins.
func mayExist(err error) bool {
	status, ok := vfs.StatusOf(err)
	if !ok || errors.Is(err, vfs.ErrUnknownOutcome) {
		return true
	}
	switch status {
	case vfs.ErrPerm, vfs.ErrNoEnt, vfs.ErrAccess, vfs.ErrExist, vfs.ErrNotDir, vfs.ErrInval, vfs.ErrROFS,
		vfs.ErrNameTooLong, vfs.ErrStale, vfs.ErrBadHandle:
		return false
	}
	return true
}

// restore gives a temporary its mode again when its bytes are there: to write them has taken the
// set-ID bits away. A caller that may not have them is told so. Its file would otherwise be
// another one than it has asked for.
func (tmp *temporary) restore(ctx context.Context, mode uint32) error {
	set := vfs.SetAttr{Valid: vfs.MaskMode, Mode: mode}
	if _, err := tmp.view.SetAttr(ctx, tmp.h, &set, nil); err != nil {
		return err
	}
	attr, err := tmp.view.GetAttr(ctx, tmp.h, vfs.MaskMode)
	if err == nil && attr.Mode&setID != mode&setID {
		err = refuse(connect.CodePermissionDenied, "this caller's files get no set-user-ID, or no set-group-ID of that group: ask for a mode without")
	}
	return err
}

// rename closes the file and gives it its name. It replaces anything but a directory. It
// returns the file's handle.
func (tmp *temporary) rename(ctx context.Context, name string) (vfs.Handle, error) {
	if err := tmp.close(ctx); err != nil {
		return tmp.h, err
	}
	if _, _, err := tmp.view.Rename(ctx, tmp.dir, tmp.name, tmp.dir, name); err != nil {
		return tmp.h, err
	}
	tmp.done = true
	return tmp.h, nil
}

// link closes the file and gives it a name that nothing may have: else it is vfs.ErrExist.
// If the temporary name cannot be removed now, discard tries again.
func (tmp *temporary) link(ctx context.Context, name string) error {
	if err := tmp.close(ctx); err != nil {
		return err
	}
	if _, _, err := tmp.view.Link(ctx, tmp.h, tmp.dir, name); err != nil {
		return err
	}
	_, err := tmp.t.own.Remove(ctx, tmp.dir, tmp.name, false)
	tmp.done = err == nil
	return nil
}

func (tmp *temporary) close(ctx context.Context) error {
	f := tmp.file
	tmp.file = nil
	if f == nil {
		return nil
	}
	return f.Close(context.WithoutCancel(ctx))
}

// discard removes a temporary that has not got its name, even if ctx has ended. After
// rename it does nothing. An error says that the temporary is left behind.
func (tmp *temporary) discard(ctx context.Context) error {
	if tmp.done {
		tmp.leave()
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	err := tmp.close(ctx)
	if _, removed := tmp.t.own.Remove(ctx, tmp.dir, tmp.name, false); unlessGone(removed) != nil {
		// The directory stays in the ledger, and the next start tries again.
		tmp.t.left.Add(1)
		err = errors.Join(err, fmt.Errorf("the temporary %s is left behind: %w", tmp.name, removed))
		tmp.t.report(fmt.Errorf("file API: %w", err))
		return err
	}
	tmp.done = true
	tmp.leave()
	return err
}

// unlessGone is err, or nil if err says that there is nothing to remove: the name, its
// directory or the export is gone.
func unlessGone(err error) error {
	if errors.Is(err, vfs.ErrNoEnt) || errors.Is(err, vfs.ErrStale) || errors.Is(err, vfs.ErrBadHandle) {
		return nil
	}
	return err
}

func (tmp *temporary) leave() {
	if tmp.t.ledger != nil {
		tmp.t.ledger.leave(tmp.dir)
	}
}
