package vfstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/nfsbox/nfsbox/vfs"
)

// powersSyncer: a change is stable when the call returns, or the stack is a Syncer and
// the change is stable when Sync has returned. Data is stable after Commit in any case.
func powersSyncer(e *env) {
	h, f := e.dirty("committed", "content")
	var w vfs.Written
	e.ok(f.Commit(e.ctx, 0, 0, &w))
	s, ok := vfs.As[vfs.Syncer](e.fs)
	if e.below == nil {
		if !ok {
			e.Skip("every change is stable by itself, as far as can be seen from above")
		}
		e.ok(s.Sync(e.ctx, h))
		e.ok(s.Sync(e.ctx, e.dir))
		return
	}
	if _, data := e.below.owes(e.under("committed")); data {
		e.Error("what was written is not stable behind Commit")
	}
	for what, change := range map[string]func() (vfs.Handle, string){
		"create": func() (vfs.Handle, string) { return e.mkdir(e.dir, "a"), "a" },
		"setattr": func() (vfs.Handle, string) {
			e.set(h, vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600})
			return h, "committed"
		},
		"link": func() (vfs.Handle, string) {
			e.link(h, e.dir, "link")
			return h, "link"
		},
	} {
		h, name := change()
		e.syncs(s, what, h, name)
	}
	if !ok {
		return
	}
	h, _ = e.dirty("synced", "content")
	e.syncs(s, "write", h, "synced")
	if _, data := e.below.owes(e.under("synced")); data || e.contentBelow("synced") != "content" {
		e.Error("what was written is not stable behind Sync")
	}
}

// syncs ends the test unless a change of h, called name in the test's directory, is
// stable, after Sync if the stack is a Syncer.
func (e *env) syncs(s vfs.Syncer, what string, h vfs.Handle, name string) {
	e.Helper()
	at, dir := e.under(name), e.under()
	owes := func() bool {
		object, _ := e.below.owes(at)
		names, _ := e.below.owes(dir)
		return object || names
	}
	switch owed := owes(); {
	case s == nil && owed:
		e.Fatalf("%s: it is not stable when it returns, and there is no power to make it so", what)
	case s == nil:
		return
	case !owed:
		e.Fatalf("%s: a Syncer of what is stable by itself", what)
	}
	e.ok(s.Sync(e.ctx, h))
	e.ok(s.Sync(e.ctx, e.dir))
	if owes() {
		e.Fatalf("%s: it is not stable behind Sync", what)
	}
}

// wantHost ends the test unless a file of this host holds that.
func (e *env) wantHost(host *os.File, want string) {
	e.Helper()
	p := make([]byte, len(want)+1)
	if n, _ := host.ReadAt(p, 0); string(p[:n]) != want {
		e.Fatalf("the descriptor reads %q, want %q", p[:n], want)
	}
}

// powersAppender: pieces that are appended at the same time are all there, and none is
// torn.
func powersAppender(e *env) {
	const pieces, size = 20, 1000
	h := e.mkfile(e.dir, "file", "begins")
	power[vfs.Appender](e, e.open(h, vfs.ShareWrite))
	views := []vfs.FS{e.fs, e.fs.As(nil)}
	e.together(func(worker int) (err error) {
		f, _, err := views[worker%2].Open(e.ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareWrite})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close(context.Background())) }()
		a, ok := vfs.As[vfs.Appender](f)
		if !ok {
			return errors.New("another File of the object has not the power")
		}
		p := bytes.Repeat([]byte{'a' + byte(worker)}, size)
		for range pieces {
			if _, n, err := a.Append(e.ctx, p, vfs.Unstable, new(vfs.Written)); err != nil || n != size {
				return fmt.Errorf("%d bytes: %w", n, err)
			}
		}
		return nil
	})
	got := e.content(h)
	if len(got) != len("begins")+workers*pieces*size || got[:6] != "begins" {
		e.Fatalf("%d bytes, which begin with %.6q", len(got), got)
	}
	for at := len("begins"); at < len(got); at += size {
		if piece := got[at : at+size]; piece != strings.Repeat(piece[:1], size) {
			e.Fatalf("what was appended at %d is in pieces", at)
		}
	}
}
