package jobs

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestScan: the numbers and the tables are those of the tree, of a file, and of what the rules leave.
func TestScan(t *testing.T) {
	src := made(t, 20)
	if err := os.Link(filepath.Join(src, "d", "1"), filepath.Join(src, "again")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(src, ".snapshot", "daily"), 0o755); err != nil {
		t.Fatal(err)
	}
	sum, err := Scan(t.Context(), src, ScanOptions{Top: 3, DirsAt: 1})
	if err != nil || sum.Files != 20 || sum.Dirs != 2 || sum.Hardlinks != 1 || sum.Entries != 23 || sum.LeftOut != 1 || sum.Bytes != 10*6+10*7 || sum.Elapsed <= 0 {
		t.Fatalf("%+v, %v", sum, err)
	}
	largest, ok := sum.Table("largest_files")
	if !ok || len(largest.Rows) != 3 || largest.BytesOf != "bytes" || largest.Rows[0].Bytes != 7 || filepath.Dir(largest.Rows[0].Path) != "d" {
		t.Errorf("%+v", largest)
	}
	dirs, ok := sum.Table("directories")
	if !ok || len(dirs.Rows) != 1 || dirs.Rows[0].Path != "d" || dirs.Rows[0].Count != 21 {
		t.Errorf("%+v", dirs)
	}
	if _, ok := sum.Table("none"); ok {
		t.Error("a table that there is not")
	}
	o := ScanOptions{Options: Options{Snapshots: true, Rules: []string{"+ 1", "- [0-9]*"}}}
	if sum, err = Scan(t.Context(), src, o); err != nil || sum.Files != 1 || sum.Dirs != 4 || sum.LeftOut != 19 {
		t.Errorf("by rules: %+v, %v", sum, err)
	}
	if _, ok := sum.Table("directories"); ok {
		t.Error("a table of directories, which nothing asked for")
	}
	if sum, err = Scan(t.Context(), filepath.Join(src, "d", "1"), ScanOptions{}); err != nil || sum.Files != 1 || sum.Entries != 1 {
		t.Errorf("a file: %+v, %v", sum, err)
	}
}

// TestScanErrors: what is wrong is an error of its kind, and the channel is closed.
func TestScanErrors(t *testing.T) {
	src := made(t, 1)
	for what, c := range map[string]struct {
		tree string
		o    ScanOptions
		want error
	}{
		"rows":           {src, ScanOptions{Top: 100_000}, ErrPlace},
		"levels":         {src, ScanOptions{DirsAt: -1}, ErrPlace},
		"parallel":       {src, ScanOptions{Options: Options{Parallel: 1000}}, ErrPlace},
		"a rule":         {src, ScanOptions{Options: Options{Rules: []string{"what"}}}, ErrPlace},
		"two rules":      {src, ScanOptions{Options: Options{Rules: []string{"- a\n- b"}}}, ErrPlace},
		"nothing there":  {src + "/none", ScanOptions{}, os.ErrNotExist},
		"nobody listens": {"nfs://127.0.0.1:1/x", ScanOptions{}, ErrUnreachable},
	} {
		events := make(chan Event, 16)
		c.o.Events = events
		if sum, err := Scan(t.Context(), c.tree, c.o); !errors.Is(err, c.want) || sum.Files != 0 {
			t.Errorf("%s: %+v, %v", what, sum, err)
		}
		for range events { //nolint:revive // it is closed
		}
	}
}

// TestScanIncomplete: what cannot be listed is told of, and the rest is counted.
func TestScanIncomplete(t *testing.T) {
	var closed atomic.Pointer[vfs.Handle]
	f := memfs.New(memfs.Options{Mode: 0o777, Fault: func(_ context.Context, op string, h vfs.Handle) error {
		if at := closed.Load(); op == "readdir" && at != nil && *at == h {
			return vfs.ErrIO
		}
		return nil
	}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- nfsserver.Serve(ctx, l, export.Export{Path: "/", FS: f}) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	url := "nfs://" + l.Addr().String() + "/"
	if _, err := Copy(t.Context(), made(t, 2), url+"tree", CopyOptions{NoOwner: true}); err != nil {
		t.Fatal(err)
	}
	root, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at, err := vfs.Resolve(t.Context(), f, root, "tree/d", false)
	if err != nil {
		t.Fatal(err)
	}
	closed.Store(&at.Handle)
	events := make(chan Event, 16)
	sum, err := Scan(t.Context(), url+"tree", ScanOptions{Options: Options{Events: events}})
	var failed []string
	for e := range events {
		if e.Type == Failed && e.Err != nil {
			failed = append(failed, e.Path)
		}
	}
	if !errors.Is(err, ErrIncomplete) || sum.Errors != 1 || sum.Dirs != 2 || !slices.Equal(failed, []string{"d"}) {
		t.Errorf("%+v, %v, %q", sum, err, failed)
	}
}

// TestDryRunAndRules: Copy and Sync say what they would do, of what the rules choose, and do the same then.
func TestDryRunAndRules(t *testing.T) {
	src := made(t, 5)
	if err := os.MkdirAll(filepath.Join(src, ".zfs"), 0o755); err != nil {
		t.Fatal(err)
	}
	dst := filepath.Join(t.TempDir(), "dst")
	record := filepath.Join(t.TempDir(), "record")
	for _, dry := range []bool{true, false} {
		events := make(chan Event, 100)
		o := CopyOptions{DryRun: dry, Record: record, Options: Options{Events: events, Rules: []string{"- 4"}}}
		sum, err := Copy(t.Context(), src, dst, o)
		if err != nil || sum.Files != 4 || sum.Dirs != 2 || sum.LeftOut != 2 {
			t.Errorf("%v: %+v, %v", dry, sum, err)
		}
		would := 0
		for e := range events {
			if e.Type == Would && e.Kind == "copy" {
				would++
			}
		}
		if (would == 6) != dry {
			t.Errorf("%v: %d things would be copied", dry, would)
		}
		for _, path := range []string{dst, record} {
			if _, err := os.Lstat(path); (err == nil) == dry {
				t.Errorf("%v: %s: %v", dry, path, err)
			}
		}
	}
	if sum, err := Verify(t.Context(), src, dst, VerifyOptions{Meta: true, Options: Options{Rules: []string{"- 4"}}}); err != nil || sum.Files != 4 || sum.Bytes != 0 || sum.LeftOut != 2 {
		t.Errorf("%+v, %v", sum, err)
	}
	if sum, err := Sync(t.Context(), src, dst, SyncOptions{CopyOptions: CopyOptions{DryRun: true}}); err != nil || sum.Files != 1 || sum.LeftOut != 1 {
		t.Errorf("%+v, %v", sum, err)
	}
}
