package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestLsReadsLinksTogether: the links of a directory cost the round trips of a few, not of
// each.
func TestLsReadsLinksTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const trip, links = 40 * time.Millisecond, 300
		var far atomic.Bool
		f := memfs.New(memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
			if far.Load() && op == "readlink" {
				time.Sleep(trip)
			}
			return nil
		}})
		root, _, err := f.Root(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range links {
			how := vfs.CreateHow{Type: vfs.TypeSymlink, Target: fmt.Sprintf("to-%d", i)}
			if _, _, _, err := f.Create(t.Context(), root, fmt.Sprintf("l%03d", i), &how); err != nil {
				t.Fatal(err)
			}
		}
		far.Store(true)
		var out bytes.Buffer
		l := &lister{cmd: &lsCmd{Long: true}, out: newOutput(&env{stdout: &out, stderr: &out}, false), fs: f, ctx: t.Context()}
		start := time.Now()
		if err := l.directory("dir", root); err != nil {
			t.Fatal(err)
		}
		if err := l.out.w.Flush(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < trip || took > trip*(links/linksAtOnce+1) {
			t.Errorf("%d links took %v", links, took)
		}
		if n := strings.Count(out.String(), " -> to-"); n != links {
			t.Errorf("%d targets are shown", n)
		}
	})
}

// TestLsTargetBytes: a target that is not UTF-8 keeps its bytes in JSON.
func TestLsTargetBytes(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems refuse such targets")
	}
	dir := t.TempDir()
	if err := os.Symlink("\xff\xfe", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	status, out, stderr := command(t, "ls", "--json", dir)
	line, _, _ := strings.Cut(out, "\n")
	var r row
	if err := json.Unmarshal([]byte(line), &r); err != nil || status != exitOK || r.TargetBytes != "//4=" {
		t.Errorf("status %d, %v, %q: %s%s", status, err, r.TargetBytes, out, stderr)
	}
}

// liar lists names that no file can have.
type liar struct {
	vfs.FS
	names []string
}

func (f *liar) ReadDir(context.Context, vfs.Handle, vfs.Pos, vfs.Mask, uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		for _, name := range f.names {
			if !yield(&vfs.Entry{Name: []byte(name)}, nil) {
				return
			}
		}
	}
}

// TestLsRefusesNames: names in a listing that lead elsewhere, or are none, are not shown,
// but have failed, as they have with -R.
func TestLsRefusesNames(t *testing.T) {
	f := memfs.New(memfs.Options{})
	root, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bad := []string{"a/b", "../../../tmp/x", "/tmp/x", "", "..", "n\x00l", strings.Repeat("x", 300)}
	for _, long := range []bool{false, true} {
		var out, told bytes.Buffer
		l := &lister{cmd: &lsCmd{Long: long}, out: newOutput(&env{stdout: &out, stderr: &told}, false), fs: &liar{f, bad}, ctx: t.Context()}
		if err := l.directory("dir", root); err != nil {
			t.Fatal(err)
		}
		if err := l.out.w.Flush(); err != nil {
			t.Fatal(err)
		}
		if out.Len() > 0 || l.out.errors != uint64(len(bad)) {
			t.Errorf("long %v: %d errors; shown: %q\n%s", long, l.out.errors, out.String(), told.String())
		}
	}
}

// TestLsAsksOnce: where a listing has names alone, as that of a server without READDIRPLUS,
// a name costs one LOOKUP, which brings the attributes.
func TestLsAsksOnce(t *testing.T) {
	var asked atomic.Int64
	f := memfs.New(memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
		if op == "getattr" {
			asked.Add(1)
		}
		return nil
	}})
	root, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := f.Create(t.Context(), root, "dir", &vfs.CreateHow{Type: vfs.TypeDir}); err != nil {
		t.Fatal(err)
	}
	asked.Store(0)
	var out bytes.Buffer
	l := &lister{cmd: &lsCmd{Long: true}, out: newOutput(&env{stdout: &out, stderr: &out}, false), fs: &liar{f, []string{"dir"}}, ctx: t.Context()}
	if err := errors.Join(l.directory("dir", root), l.out.w.Flush()); err != nil {
		t.Fatal(err)
	}
	if n := asked.Load(); n != 0 || !strings.Contains(out.String(), "\ndrwx") {
		t.Errorf("%d GETATTRs; shown: %s", n, out.String())
	}
}
