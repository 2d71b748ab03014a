package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/sim/rpcfault"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/iofs"
	"github.com/nfsbox/nfsbox/xdr"
)

// mounted serves f and returns a client's tree of it.
func mounted(t testing.TB, f vfs.FS, args string) (*iofs.FS, *nfsbox.Client) {
	t.Helper()
	c := dial(t, "nfs://127.0.0.1:"+serve(t, export.Export{Path: "/", FS: f})+"/"+args)
	tree, err := iofs.Root(t.Context(), c.FS())
	if err != nil {
		t.Fatal(err)
	}
	return tree, c
}

// TestIofsTree builds a tree over the wire, and has testing/fstest look at it.
func TestIofsTree(t *testing.T) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			many := 1500 // pages
			if b.name == "localfs" {
				many = 100 // it waits for the disk
			}
			f, _ := mounted(t, b.make(t), "")
			want := growTree(t, f, many)
			if err := fstest.TestFS(f, want...); err != nil {
				t.Error(err)
			}
			if n := len(removeTree(t, f)); n != 0 {
				t.Errorf("%d entries left", n)
			}
		})
	}
}

// growTree makes files, odd names, links and a directory of several pages.
func growTree(t *testing.T, f *iofs.FS, many int) (names []string) {
	t.Helper()
	for i, err := range []error{
		f.MkdirAll("plan/deep/deeper", 0o755),
		f.WriteFile("plan/budget.csv", []byte("a,b\n1,2\n"), 0o644),
		f.WriteFile("plan/empty", nil, 0o644),
		f.WriteFile("plan/deep/long", bytes.Repeat([]byte("0123456789"), 100), 0o600), // TestFS reads it byte by byte
		f.Symlink("deep/long", "plan/link"),
		f.Symlink("plan/deep", "todir"),
		f.Mkdir("many", 0o755),
		f.Mkdir("odd", 0o755),
		f.Mkdir("odd/directory ‛FF", 0o755),
		f.WriteFile("odd/directory ‛FF/file", nil, 0o644),
	} {
		if err != nil {
			t.Fatal(i, err)
		}
	}
	for _, name := range []string{"latin‛E9", "‛80‛FF", "mark‛‛", "blank \t\n", "café", "...", strings.Repeat("n", 255)} {
		if err := f.WriteFile("odd/"+name, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
		names = append(names, "odd/"+name)
	}
	for i := range many {
		if err := f.Symlink("../plan/empty", fmt.Sprintf("many/a name of some length, so that pages fill: %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	return append(names, "plan/budget.csv", "plan/empty", "plan/deep/long", "plan/link", "plan/deep/deeper", "todir",
		"many/a name of some length, so that pages fill: 77", "odd/directory ‛FF/file")
}

// removeTree removes all there is, and returns what is left.
func removeTree(t *testing.T, f *iofs.FS) []fs.DirEntry {
	t.Helper()
	for e, err := range f.Entries(".") {
		if err != nil {
			t.Fatal(err)
		}
		if err := f.RemoveAll(e.Name()); err != nil {
			t.Error(err)
		}
	}
	left, err := f.ReadDir(".")
	if err != nil {
		t.Error(err)
	}
	return left
}

// procs counts the calls that do makes, by procedure.
func procs(c *nfsbox.Client, do func()) map[string]int {
	n := make(map[string]int)
	for _, p := range c.Stats().Procs {
		n[p.Name] -= int(p.Calls)
	}
	do()
	for _, p := range c.Stats().Procs {
		if n[p.Name] += int(p.Calls); n[p.Name] == 0 {
			delete(n, p.Name)
		}
	}
	return n
}

// TestIofsCalls counts what a program costs on the wire.
func TestIofsCalls(t *testing.T) {
	mem := memfs.New(memfs.Options{Mode: 0o777})
	const outer, inner, files = 6, 5, 4
	for i := range outer {
		for j := range inner {
			for k := range files {
				put(t, mem, fmt.Sprintf("%d/%d/%d", i, j, k), []byte("contents"))
			}
		}
	}
	f, c := mounted(t, mem, "")
	if _, err := f.ReadFile("0/0/0"); err != nil { // FSINFO is asked once
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	for _, step := range []struct {
		what string
		do   func()
		want map[string]int
	}{
		{"WalkDir", func() {
			must(fs.WalkDir(f, ".", func(_ string, d fs.DirEntry, err error) error {
				if err == nil {
					_, err = d.Info()
				}
				return err
			}))
		}, map[string]int{"GETATTR": 1, "READDIRPLUS": 1 + outer + outer*inner}},
		{"Stat in a directory that is known", func() { _, err := f.Stat("3/3/3"); must(err) }, map[string]int{"LOOKUP": 1}},
		{"ReadFile", func() { _, err := f.ReadFile("3/3/3"); must(err) }, map[string]int{"LOOKUP": 1, "READ": 1}},
		{"Open, Stat, ReadAt, Close", func() {
			file, err := f.OpenFile("3/3/2", os.O_RDONLY, 0)
			must(err)
			_, err = file.Stat()
			must(err)
			_, err = file.ReadAt(make([]byte, 3), 2)
			must(err)
			must(file.Close())
		}, map[string]int{"LOOKUP": 1, "READ": 1}},
		{"WriteFile", func() { must(f.WriteFile("3/3/new", []byte("x"), 0o600)) }, map[string]int{"CREATE": 1, "WRITE": 1}},
		{"a new file of 3 MiB", func() {
			file, err := f.Create("3/3/large")
			must(err)
			_, err = file.Write(make([]byte, 3<<20))
			must(err)
			must(file.Close())
		}, map[string]int{"CREATE": 1, "WRITE": 3, "COMMIT": 1}},
	} {
		if got := procs(c, step.do); fmt.Sprint(got) != fmt.Sprint(step.want) {
			t.Errorf("%s: %v, want %v", step.what, got, step.want)
		}
	}
}

// TestIofsCopy copies a file over the wire, on the same server and to another.
func TestIofsCopy(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 300_000)
	from, _ := mounted(t, memfs.New(memfs.Options{Mode: 0o777}), "")
	to, _ := mounted(t, memfs.New(memfs.Options{Mode: 0o777}), "")
	if err := from.WriteFile("file", data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dest := range []*iofs.FS{from, to} {
		r, err := from.OpenFile("file", os.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		w, err := dest.Create("copy")
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(w, r); n != int64(len(data)) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if err := errors.Join(w.Close(), r.Close()); err != nil {
			t.Error(err)
		}
		if got, err := dest.ReadFile("copy"); !bytes.Equal(got, data) || err != nil {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
}

// TestIofsRestart restarts the server between Write and Close: it forgets what it
// was sent, and gets it again.
func TestIofsRestart(t *testing.T) {
	mem := memfs.New(memfs.Options{Mode: 0o777})
	s := start(t, export.Export{Path: "/", FS: mem})
	f, err := iofs.Root(t.Context(), dial(t, "nfs://"+s.addr+"/").FS())
	if err != nil {
		t.Fatal(err)
	}
	data := bytes.Repeat([]byte("0123456789abcdef"), 200_000)
	file, err := f.Create("file")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write(data); err != nil {
		t.Fatal(err)
	}
	if info, err := file.Stat(); err != nil || info.Size() != int64(len(data)) { // which sends what was written
		t.Errorf("%v, %v", info, err)
	}
	s.end()
	mem.Restart()
	s.begin()
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	if got, err := f.ReadFile("file"); !bytes.Equal(got, data) || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestIofsCallers: each caller of As has its own rights and makes its own files.
func TestIofsCallers(t *testing.T) {
	f, _ := mounted(t, memfs.New(memfs.Options{Mode: 0o777}), "")
	ann, bob := f.As(&vfs.Caller{UID: 1001, GID: 100}), f.As(&vfs.Caller{UID: 1002, GID: 100})
	if err := errors.Join(ann.Mkdir("ann", 0o700), ann.WriteFile("ann/diary", []byte("dear"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := bob.ReadFile("ann/diary"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("bob reads: %v", err)
	}
	if _, err := bob.ReadDir("ann"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("bob lists: %v", err)
	}
	if err := bob.RemoveAll("ann"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("bob removes: %v", err)
	}
	if b, err := ann.ReadFile("ann/diary"); string(b) != "dear" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	info, err := f.Stat("ann/diary")
	if err != nil || info.Sys().(*vfs.Attr).UID != 1001 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestIofsReadOnly: over a client that changes nothing, nothing is changed.
func TestIofsReadOnly(t *testing.T) {
	mem := memfs.New(memfs.Options{Mode: 0o777})
	put(t, mem, "dir/file", []byte("kept"))
	f, _ := mounted(t, mem, "?readonly")
	_, created := f.Create("dir/file")
	for i, err := range []error{
		created,
		f.Mkdir("new", 0o700), f.MkdirAll("new/new", 0o700), f.Remove("dir/file"), f.RemoveAll("dir"), f.Rename("dir", "new"),
		f.Symlink("x", "new"), f.Link("dir/file", "new"), f.Chmod("dir", 0), f.Truncate("dir/file", 0), f.WriteFile("new", nil, 0o600),
	} {
		if !errors.Is(err, vfs.ErrROFS) {
			t.Errorf("step %d: %v", i, err)
		}
	}
	if b, err := f.ReadFile("dir/file"); string(b) != "kept" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if found, err := fs.Glob(f, "*/*"); !slices.Equal(found, []string{"dir/file"}) || err != nil {
		t.Errorf("%q, %v", found, err)
	}
}

// TestIofsExclusive loses the reply to an exclusive CREATE that was executed: the
// program has the file all the same, and no other gets it.
func TestIofsExclusive(t *testing.T) {
	r := overTCP(t, memfs.New(memfs.Options{Mode: 0o777}), 1, "")
	f, err := iofs.Root(t.Context(), r.fs)
	if err != nil {
		t.Fatal(err)
	}
	r.p.SetRules(rpcfault.Rule{
		Procs:  []*xdr.Proc{nfs3.NFSPROC3_CREATE},
		Budget: 1,
		Fault:  rpcfault.Fault{Kind: rpcfault.CutInReply, At: rpcfault.Anywhere},
	})
	const flag = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	file, err := f.OpenFile("lock", flag, 0o640)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := file.Stat(); err != nil || info.Mode() != 0o640 {
		t.Errorf("%v, %v", info, err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	if s := r.c.Stats(); s.Reconnects == 0 {
		t.Errorf("the reply was not lost: %+v", s)
	}
	if _, err := f.OpenFile("lock", flag, 0o640); !errors.Is(err, fs.ErrExist) {
		t.Errorf("the second: %v", err)
	}
}

// TestIofsCancelled ends the context of a file that has been written to: Close
// says that the bytes may be lost, and leaves nothing behind.
func TestIofsCancelled(t *testing.T) {
	f, _ := mounted(t, memfs.New(memfs.Options{Mode: 0o777}), "")
	ctx, cancel := context.WithCancel(t.Context())
	file, err := f.WithContext(ctx).Create("file")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("contents"); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := file.ReadAt(make([]byte, 1), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("ReadAt: %v", err)
	}
	if err := file.Close(); !errors.Is(err, context.Canceled) {
		t.Errorf("Close: %v", err)
	}
	if _, err := f.Stat("file"); err != nil {
		t.Errorf("the tree under the other context: %v", err)
	}
}
