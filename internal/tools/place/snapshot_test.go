package place

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/tools/backup"
	"github.com/nfsbox/nfsbox/internal/tools/dirfs"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestDivide: where a store ends, and the name of a snapshot begins.
func TestDivide(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := errors.Join(os.Mkdir("s", 0o700), os.Mkdir("a::b", 0o700)); err != nil {
		t.Skipf("NOT TESTED: no such names can be made here: %v", err)
	}
	for arg, want := range map[string]string{
		"s::home":                     "s|home|",
		"./s/::home@id/a::b/c?d%":     "./s/|home@id|a::b/c?d%",
		"s::home/":                    "s|home|",
		"s::Home":                     "s|Home|",
		"a::b":                        "",
		"std::vector":                 "",
		"s::two words":                "",
		"s::":                         "",
		"::s":                         "",
		"s:home":                      "",
		"filer:/e::home/a b":          "filer:/e|home|a b",
		"nfs://[2001:db8::1]/e::home": "nfs://[2001:db8::1]/e|home|",
		"nfs://[2001:db8::1]/e":       "",
		"[fe80::1]:/e":                "",
		"nfs://h/e?uid=0::home/x?y":   "nfs://h/e?uid=0|home|x?y",
		"s3://b/p?endpoint=http://[::1]:9000&path-style=true::home/a/": "s3://b/p?endpoint=http://[::1]:9000&path-style=true|home|a/",
	} {
		store, name, path, ok := Divide(arg)
		if got := store + "|" + name + "|" + path; ok != (want != "") || ok && got != want {
			t.Errorf("%q is %q, %v; want %q", arg, got, ok, want)
		}
	}
	for arg, want := range map[string]string{
		"filer:/b c::home/a b%": "nfs://filer/b%20c::home/a b%", "s::home": "s::home", "a::b": "a::b",
	} {
		if got := Meant(arg); got != want {
			t.Errorf("%q means %q, want %q", arg, got, want)
		}
	}
	for arg, want := range map[string]bool{"nfs://h/e?uid=0::home/d/": true, "nfs://h/e?uid=0::home/d": false, "s::home/.": true} {
		if got := MeansDir(arg); got != want {
			t.Errorf("%q means a directory: %v", arg, got)
		}
	}
}

// calls counts what is read of a store.
type calls struct {
	object.Store
	gets atomic.Int64
}

func (c *calls) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, object.Info, error) {
	c.gets.Add(1)
	return c.Store.Get(ctx, key, off, n)
}

// kept is a store with snapshots of a directory, of which each has a name.
func kept(t *testing.T, dir string, names ...string) *Store {
	t.Helper()
	f, err := dirfs.New(dir, dirfs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = vfs.CloseFS(f) }) // nothing was written
	root, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := &Store{Store: object.NewMemory(object.MemoryOptions{}), Text: "store"}
	for i, name := range names {
		at := time.Unix(int64(1e9+i), 0)
		_, err := backup.Run(t.Context(), backup.Options{
			FS: f, Root: root, Store: s, Now: func() time.Time { return at }, Meta: snapshot.Meta{Name: name},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestSnapshotGets: one file among many is found and read with a few calls.
func TestSnapshotGets(t *testing.T) {
	dir := t.TempDir()
	const files, most = 300, 8
	for i := range files {
		name := filepath.Join(dir, fmt.Sprintf("d%d/e%d/%d", i%7, i%31, i))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(name), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	c := &calls{Store: kept(t, dir, "home")}
	p := &Place{Path: "d3/e8/101", Text: "store::home/d3/e8/101", store: &Store{Store: c, Text: "store"}}
	if err := p.openSnapshot(t.Context(), "home", func(text string) { t.Error(text) }); err != nil {
		t.Fatal(err)
	}
	r, err := p.Resolve(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	file, _, err := p.FS.Open(t.Context(), vfs.At{H: r.Handle}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4096)
	n, _, err := vfs.ReadFull(t.Context(), file, b, 0)
	if err = errors.Join(err, file.Close(t.Context())); err != nil || string(b[:n]) != filepath.Join(dir, p.Path) {
		t.Errorf("%q, %v", b[:n], err)
	}
	if got := c.gets.Load(); got > most {
		t.Errorf("%d calls read one file, want %d at most", got, most)
	}
	for path, want := range map[string]string{"": "home", "d3": "d3", "d3/e8/101": "101", "d3/..": "home"} {
		p.Path = path
		if got := p.Base(); got != want {
			t.Errorf("the base of %q is %q, want %q", path, got, want)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Stat(t.Context(), "a"); !errors.Is(err, object.ErrClosed) {
		t.Errorf("the place has left its store open: %v", err)
	}
}

// TestSnapshotNames: names of snapshots are listed without a root read, and an error says which there are.
func TestSnapshotNames(t *testing.T) {
	dir := t.TempDir()
	c := &calls{Store: kept(t, dir, "home", "home", "etc", "a1", "a2", "a3", "a4")}
	s := &Store{Store: c, Text: "store"}
	for begun, want := range map[string]string{"": "a1 a2 a3 a4 etc home", "h": "home", "home@": "home@20010909t014640.000z home@20010909t014641.000z", "x": "", "X": ""} {
		if got, err := s.Snapshots(t.Context(), begun); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %q, %v", begun, got, err)
		}
	}
	if n := c.gets.Load(); n > 0 {
		t.Errorf("%d roots were read", n)
	}
	for name, want := range map[string]string{
		"hoem": "did you mean home?", "other": "the store has a1, a2, a3, a4, etc and 1 more", "home@1999": "snapshots ls lists",
		"home@x": "at least the first 4", "home@2001": "home@20010909t014640.000z, home@20010909t014641.000z: give more", "No": "not a name",
	} {
		err := (&Place{store: s}).openSnapshot(t.Context(), name, nil)
		if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A root that has no name in it is damaged, and not a wrong argument.
	const key = "snapshots/home/20990909t014640.000z"
	line := `{"magic":"nfsbox snapshot","version":1,"snapshot":{"name":"No"}}`
	if _, err := c.Put(t.Context(), key, strings.NewReader(line+"\n"+object.SumOf([]byte(line)).String()+"\n"), object.PutOptions{Size: int64(len(line) + 66)}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"home", "home@20990909t014640.000z"} {
		err := (&Place{store: s}).openSnapshot(t.Context(), name, nil)
		if !errors.Is(err, snapshot.ErrDamaged) || errors.Is(err, ErrUsage) || !strings.HasPrefix(err.Error(), "store::"+name+": object "+key) {
			t.Errorf("%s: %v", name, err)
		}
	}
	err := (&Place{store: &Store{Store: object.NewMemory(object.MemoryOptions{})}}).openSnapshot(t.Context(), "home", nil)
	if err == nil || !strings.Contains(err.Error(), "the store has none") {
		t.Error(err)
	}
	if all := slices.Collect((&Place{snap: new(snapshot.Snapshot)}).Above(t.Context())); len(all) > 0 {
		t.Error(all)
	}
}
