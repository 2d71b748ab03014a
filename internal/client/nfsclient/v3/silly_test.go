package v3_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/client/nfsclient/v3"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/vfs"
)

// real is an FS whose server serves mem.
func real(t testing.TB, mem *memfs.FS) *v3.FS {
	t.Helper()
	table, err := export.NewTable(export.Key{9}, export.Export{Path: "/", FS: mem})
	if err != nil {
		t.Fatal(err)
	}
	root, _, err := table.Mount(t.Context(), nil, "/")
	if err != nil {
		t.Fatal(err)
	}
	srv, err := nfsserver.New(nfsserver.Options{Exports: table})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	rpc := oncrpc.NewClient(oncrpc.ClientOptions{Dial: func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", l.Addr().String())
	}})
	t.Cleanup(func() {
		err := errors.Join(rpc.Close(), srv.Close())
		if e := <-done; err != nil || !errors.Is(e, nfsserver.ErrClosed) {
			t.Errorf("%v, %v", err, e)
		}
		if n := rpc.Stats().Buffers; n != 0 {
			t.Errorf("%d replies were not released", n)
		}
	})
	fs, err := v3.New(rpc, root, v3.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return fs
}

// desk is a directory and what a test does in it.
type desk struct {
	*testing.T
	fs  *v3.FS
	dir vfs.Handle
}

func newDesk(t *testing.T, mem *memfs.FS) *desk {
	d := &desk{T: t, fs: real(t, mem)}
	var err error
	if d.dir, _, err = d.fs.Root(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d
}

// open creates name with its own name as content, and leaves it open.
func (d *desk) open(name string) vfs.File {
	d.Helper()
	f, _, err := d.fs.Open(d.Context(), vfs.At{Dir: d.dir, Name: name}, &vfs.OpenHow{
		Access: vfs.ShareRead | vfs.ShareWrite,
		Create: &vfs.CreateHow{Type: vfs.TypeReg},
	})
	if err != nil {
		d.Fatal(err)
	}
	if _, err := f.WriteAt(d.Context(), []byte(name), 0, vfs.FileSync, new(vfs.Written)); err != nil {
		d.Fatal(err)
	}
	return f
}

// reads fails the test unless f still holds want.
func (d *desk) reads(f vfs.File, want string) {
	d.Helper()
	buf := make([]byte, 99)
	n, eof, err := f.ReadAt(d.Context(), buf, 0, nil)
	if string(buf[:n]) != want || !eof || err != nil {
		d.Errorf("%q, eof %v, %v; want %q", buf[:n], eof, err, want)
	}
}

func (d *desk) close(f vfs.File) {
	d.Helper()
	// A context that has ended does not keep the hidden name from going.
	ctx, cancel := context.WithCancel(d.Context())
	cancel()
	if err := f.Close(ctx); err != nil {
		d.Error(err)
	}
}

func (d *desk) link(old, name string) {
	d.Helper()
	h, _, _, err := d.fs.Lookup(d.Context(), d.dir, old)
	if err == nil {
		_, _, err = d.fs.Link(d.Context(), h, d.dir, name)
	}
	if err != nil {
		d.Fatal(err)
	}
}

func (d *desk) remove(name string) {
	d.Helper()
	if _, err := d.fs.Remove(d.Context(), d.dir, name, false); err != nil {
		d.Fatal(err)
	}
}

func (d *desk) rename(from, to string) error {
	_, _, err := d.fs.Rename(d.Context(), d.dir, from, d.dir, to)
	return err
}

// names fails the test unless these are the names, hidden ones as ".nfs".
func (d *desk) names(want ...string) {
	d.Helper()
	var got []string
	for e, err := range d.fs.ReadDir(d.Context(), d.dir, vfs.Pos{}, 0, 0) {
		if err != nil {
			d.Fatal(err)
		}
		name := string(e.Name)
		if strings.HasPrefix(name, ".nfs") {
			name = ".nfs"
		}
		got = append(got, name)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		d.Errorf("names are %q, want %q", got, want)
	}
}

func TestSillyRemove(t *testing.T) {
	d := newDesk(t, memfs.New(memfs.Options{}))
	f := d.open("a")
	g, _, err := d.fs.As(&vfs.Caller{UID: 0}).Open(t.Context(), vfs.At{Dir: d.dir, Name: "a"}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		t.Fatal(err)
	}
	other := d.open("other")
	d.remove("a")
	d.names(".nfs", "other")
	d.reads(f, "a")
	d.close(f)
	d.names(".nfs", "other")
	d.reads(g, "a")
	d.close(g)
	d.names("other")
	d.close(other)
	d.remove("other")
	d.names()
}

// TestSillyLinks hides a file only when its last name goes.
func TestSillyLinks(t *testing.T) {
	d := newDesk(t, memfs.New(memfs.Options{}))
	f := d.open("a")
	d.link("a", "b")
	d.remove("a")
	d.names("b")
	d.remove("b")
	d.names(".nfs")
	d.reads(f, "a")
	d.close(f)
	d.names()
}

func TestSillyRename(t *testing.T) {
	d := newDesk(t, memfs.New(memfs.Options{}))
	a, b := d.open("a"), d.open("b")
	if err := d.rename("a", "b"); err != nil {
		t.Fatal(err)
	}
	d.names(".nfs", "b")
	d.reads(a, "a")
	d.reads(b, "b")
	d.close(b)
	d.names("b")

	// Two names of one object stay, and a file onto itself is nothing.
	d.link("b", "c")
	for _, to := range []string{"c", "b"} {
		if err := d.rename("b", to); err != nil {
			t.Error(err)
		}
	}
	d.names("b", "c")
	d.close(a)
	d.names("b", "c")
}

// TestSillyRenameFails leaves the target what it was.
func TestSillyRenameFails(t *testing.T) {
	for _, links := range []bool{true, false} {
		mem := memfs.New(memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
			if op == "link" && !links {
				return vfs.ErrNotSupp
			}
			return nil
		}})
		d := newDesk(t, mem)
		f := d.open("target")
		if _, _, _, err := d.fs.Create(t.Context(), d.dir, "dir", &vfs.CreateHow{Type: vfs.TypeDir}); err != nil {
			t.Fatal(err)
		}
		if err := d.rename("dir", "target"); !errors.Is(err, vfs.ErrNotDir) {
			t.Errorf("links %v: %v", links, err)
		}
		if _, _, _, err := d.fs.Lookup(t.Context(), d.dir, "target"); err != nil {
			t.Errorf("links %v: the target is gone: %v", links, err)
		}
		d.reads(f, "target")
		other := d.open("other")
		d.close(other)
		if err := d.rename("other", "target"); err != nil {
			t.Errorf("links %v: %v", links, err)
		}
		d.reads(f, "target")
		d.close(f)
		d.names("dir", "target")
	}
}

// TestSillyConcurrent takes both names of an open file at once, over and over.
func TestSillyConcurrent(t *testing.T) {
	d := newDesk(t, memfs.New(memfs.Options{}))
	for range 50 {
		f := d.open("a")
		d.link("a", "b")
		done := make(chan error)
		for _, name := range []string{"a", "b"} {
			go func() {
				_, err := d.fs.Remove(d.Context(), d.dir, name, false)
				done <- err
			}()
		}
		if err := errors.Join(<-done, <-done); err != nil {
			t.Fatal(err)
		}
		d.reads(f, "a")
		d.names(".nfs")
		d.close(f)
		d.names()
	}
}
