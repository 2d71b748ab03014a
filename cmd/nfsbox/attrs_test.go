package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/glob"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestChangeTreeFails: each failure below a directory is told, however many there are, and what can
// be changed is.
func TestChangeTreeFails(t *testing.T) {
	const refused, files = 150, 200
	var on atomic.Bool
	var calls atomic.Int64
	f := memfs.New(memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
		if on.Load() && op == "setattr" && calls.Add(1) > 1 && calls.Load() <= refused+1 {
			return vfs.ErrPerm
		}
		return nil
	}})
	root, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		how := vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600}}
		if _, _, _, err := f.Create(t.Context(), root, fmt.Sprintf("f%03d", i), &how); err != nil {
			t.Fatal(err)
		}
	}
	on.Store(true)
	var stdout, stderr bytes.Buffer
	v, err := (&verbFlags{JSON: true}).begin(&env{ctx: t.Context(), stdout: &stdout, stderr: &stderr})
	if err != nil {
		t.Fatal(err)
	}
	open := func(context.Context, string, place.Options) (*place.Place, error) {
		return &place.Place{FS: f, Text: "dir/"}, nil
	}
	err = v.end(v.output.each(v.e, glob.Given([]string{"dir/"}), func(arg string) error {
		return onePlace(t.Context(), arg, v.po, open, func(p *place.Place) error {
			return v.changeTree(p, true, func(*vfs.Attr) vfs.SetAttr { return vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o640} })
		})
	}))
	if statusFor(err) != exitIncomplete {
		t.Errorf("status %d: %v", statusFor(err), err)
	}
	if n := strings.Count(stdout.String(), `"type":"error","path":"dir/f`); n != refused || int(calls.Load()) != files+1 {
		t.Errorf("%d failures of %d are told, after %d calls:\n%s", n, refused, calls.Load(), &stdout)
	}
	if want := fmt.Sprintf(`"errors":%d}`, refused) + "\n"; !strings.HasSuffix(stdout.String(), want) {
		t.Errorf("no %s in the end of\n%s", want, &stdout)
	}
	if err := errors.Join(vfs.CloseFS(f)); err != nil {
		t.Error(err)
	}
}
