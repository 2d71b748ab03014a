package vfstest

import (
	"context"
	"errors"

	"github.com/nfsbox/nfsbox/vfs"
)

var cancelTests = []test{
	{"before-calls", func(e *env) {
		h, ctx := e.mkfile(e.dir, "file", ""), e.ended()
		_, err := e.fs.GetAttr(ctx, h, vfs.MaskV3)
		e.cancelled("getattr", err)
		_, _, err = e.fs.Access(ctx, h, vfs.AccessRead)
		e.cancelled("access", err)
		_, _, _, err = e.fs.Lookup(ctx, e.dir, "file")
		e.cancelled("lookup", err)
		_, _, err = e.fs.Readlink(ctx, h)
		e.cancelled("readlink", err)
		_, err = e.fs.Info(ctx, h, vfs.InfoSpace)
		e.cancelled("info", err)
		_, _, err = e.fs.Open(ctx, vfs.At{Dir: e.dir, Name: "file"}, &vfs.OpenHow{Access: vfs.ShareRead})
		e.cancelled("open", err)
		n := 0
		for _, err = range e.fs.ReadDir(ctx, e.dir, vfs.Pos{}, 0, 0) {
			if n++; err != nil {
				break
			}
		}
		if n != 1 {
			e.Errorf("readdir yields %d times", n)
		}
		e.cancelled("readdir", err)
	}},
	{"before-mutations", func(e *env) {
		h, ctx := e.mkfile(e.dir, "file", "content"), e.ended()
		_, err := e.fs.SetAttr(ctx, h, &vfs.SetAttr{Valid: vfs.MaskSize}, nil)
		e.cancelled("setattr", err)
		for _, typ := range []vfs.Type{vfs.TypeReg, vfs.TypeDir, vfs.TypeSymlink, vfs.TypeFIFO} {
			how := how(typ, 0o644)
			how.Target = "target"
			_, _, _, err = e.fs.Create(ctx, e.dir, "new", how)
			e.cancelled("create "+typ.String(), err)
		}
		_, _, err = e.fs.Open(ctx, vfs.At{Dir: e.dir, Name: "new"}, &vfs.OpenHow{Access: readWrite, Create: fileHow(0o644)})
		e.cancelled("open", err)
		_, _, err = e.fs.Link(ctx, h, e.dir, "new")
		e.cancelled("link", err)
		_, _, err = e.fs.Rename(ctx, e.dir, "file", e.dir, "new")
		e.cancelled("rename", err)
		_, err = e.fs.Remove(ctx, e.dir, "file", false)
		e.cancelled("remove", err)
		e.wantNames(e.dir, "file")
		e.wantContent(h, "content")
	}},
	{"before-reads", func(e *env) {
		// Cancels a read and looks at its buffer again after other calls over
		// the same connection.
		f := e.open(e.mkfile(e.dir, "file", pattern(100_000)), vfs.ShareRead)
		p := []byte(zeros(100_000))
		_, _, err := f.ReadAt(e.ended(), p, 0, nil)
		e.cancelled("read", err)
		wantBytes(e, e.contentOf(f), pattern(100_000))
		wantBytes(e, string(p), zeros(100_000))
	}},
	{"before-writes", func(e *env) {
		h := e.mkfile(e.dir, "file", "content")
		f, ctx := e.open(h, readWrite), e.ended()
		_, err := f.WriteAt(ctx, []byte("CONTENT"), 0, vfs.FileSync, new(vfs.Written))
		e.cancelled("write", err)
		_, err = f.Truncate(ctx, 0)
		e.cancelled("truncate", err)
		e.cancelled("commit", f.Commit(ctx, 0, 0, new(vfs.Written)))
		wantBytes(e, e.contentOf(f), "content")
	}},
	{"while-listing", func(e *env) {
		// Cancels in the middle. Entries that have come already may still be
		// listed. Then the error ends the listing, unless nothing was left to ask for.
		e.mkfiles(e.dir, 300)
		ctx, cancel := context.WithCancel(e.ctx)
		defer cancel()
		n := 0
		for _, err := range e.fs.ReadDir(ctx, e.dir, vfs.Pos{}, 0, 1024) {
			if err != nil {
				e.cancelled("readdir", err)
				return
			}
			n++
			cancel()
		}
		if n != 300 {
			e.Errorf("the listing ends after %d of 300 entries without an error", n)
		}
	}},
}

func (e *env) ended() context.Context {
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	return ctx
}

// cancelled reports an error that is not that of an ended context.
func (e *env) cancelled(what string, err error) {
	e.Helper()
	if !errors.Is(err, context.Canceled) {
		e.Errorf("%s: %v, want %v", what, err, context.Canceled)
	}
}
