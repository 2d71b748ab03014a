package vfstest

import (
	"context"
	"slices"
	"strings"

	"github.com/nfsbox/nfsbox/vfs"
)

const readWrite = vfs.ShareRead | vfs.ShareWrite

// open opens h until the test ends.
func (e *env) open(h vfs.Handle, access vfs.Share) vfs.File {
	e.Helper()
	f, _, err := e.fs.Open(e.ctx, vfs.At{H: h}, &vfs.OpenHow{Access: access})
	e.ok(err)
	e.closing(f)
	return f
}

func (e *env) closing(f vfs.File) {
	e.Cleanup(func() {
		if err := f.Close(context.Background()); err != nil {
			e.Errorf("close: %v", err)
		}
	})
}

// with opens h for the time of one call.
func (e *env) with(h vfs.Handle, access vfs.Share, do func(vfs.File)) {
	e.Helper()
	f, _, err := e.fs.Open(e.ctx, vfs.At{H: h}, &vfs.OpenHow{Access: access})
	e.ok(err)
	defer func() {
		if err := f.Close(context.Background()); err != nil {
			e.Errorf("close: %v", err)
		}
	}()
	do(f)
}

// write puts content at off, stable.
func (e *env) write(h vfs.Handle, content string, off uint64) {
	e.Helper()
	e.with(h, vfs.ShareWrite, func(f vfs.File) { e.writeTo(f, content, off) })
}

func (e *env) writeTo(f vfs.File, content string, off uint64) vfs.Written {
	e.Helper()
	var w vfs.Written
	n, err := vfs.WriteFull(e.ctx, f, []byte(content), off, vfs.FileSync, &w)
	if err != nil || n != len(content) {
		e.Fatalf("write of %d bytes at %d: %d, %v", len(content), off, n, err)
	}
	return w
}

// maxContent bounds what content reads of a file.
const maxContent = 8 << 20

func (e *env) content(h vfs.Handle) string {
	e.Helper()
	var s string
	e.with(h, vfs.ShareRead, func(f vfs.File) { s = e.contentOf(f) })
	return s
}

func (e *env) contentOf(f vfs.File) string {
	e.Helper()
	s, err := readAll(e.ctx, f)
	e.ok(err)
	return s
}

func readAll(ctx context.Context, f vfs.File) (string, error) {
	var all []byte
	p := make([]byte, 64<<10)
	for len(all) < maxContent {
		n, eof, err := vfs.ReadFull(ctx, f, p, uint64(len(all)))
		all = append(all, p[:n]...)
		if err != nil || eof {
			return string(all), err
		}
	}
	return string(all), nil
}

func (e *env) wantContent(h vfs.Handle, want string) {
	e.Helper()
	wantBytes(e, e.content(h), want)
}

// wantBytes ends the test unless both are equal, and says where they differ.
func wantBytes(e *env, got, want string) {
	e.Helper()
	if got == want {
		return
	}
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	e.Fatalf("%d bytes, want %d; the first difference is at %d: %.20q, want %.20q", len(got), len(want), i, got[i:], want[i:])
}

// pattern is n bytes without a short period, so that misplaced blocks show.
func pattern(n int) string {
	var b strings.Builder
	b.Grow(n)
	x := uint32(n)*2654435761 | 1
	for range n {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b.WriteByte(byte(x >> 8))
	}
	return b.String()
}

func zeros(n int) string { return strings.Repeat("\x00", n) }

func (e *env) list(dir vfs.Handle) []string {
	e.Helper()
	var all []string
	for entry, err := range e.fs.ReadDir(e.ctx, dir, vfs.Pos{}, 0, 0) {
		e.ok(err)
		all = append(all, string(entry.Name))
	}
	return all
}

// wantNames ends the test unless dir holds exactly those names.
func (e *env) wantNames(dir vfs.Handle, want ...string) {
	e.Helper()
	got := e.list(dir)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		e.Fatalf("the directory holds %.200q, want %.200q", got, want)
	}
}
