package job

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/vfs"
)

// local is a directory on disk.
func local(t testing.TB) *tree {
	t.Helper()
	f, err := localfs.New(t.TempDir(), localfs.Options{Volatile: true})
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skipf("no local file system here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := vfs.CloseFS(f); err != nil {
			t.Error(err)
		}
	})
	return newTree(t, f)
}

// remote is f, behind a server and a client.
func remote(t testing.TB, f vfs.FS) *tree {
	t.Helper()
	table, err := export.NewTable(export.Key{1}, export.Export{Path: "/", FS: f})
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
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, nfsserver.ErrClosed) {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := nfsbox.Dial(ctx, "nfs://"+l.Addr().String()+"/", nfsbox.WithCaller(vfs.Caller{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return newTree(t, c.FS())
}

// TestPlaces copies a tree from everywhere to everywhere, verifies it there, and
// does it again with a record: then nothing is copied, and all is counted as what it is.
func TestPlaces(t *testing.T) {
	places := map[string]func(t testing.TB) *tree{
		"memory":       func(t testing.TB) *tree { return mem(t, memfs.Options{Mode: 0o777}) },
		"disk":         local,
		"nfs":          func(t testing.TB) *tree { return remote(t, memfs.New(memfs.Options{Mode: 0o777})) },
		"nfs, on disk": func(t testing.TB) *tree { return remote(t, local(t).fs) },
	}
	for from, makeSrc := range places {
		for to, makeDst := range places {
			t.Run(from+" to "+to, func(t *testing.T) {
				src, dst := makeSrc(t), makeDst(t)
				few(src)
				sparse := src.file("sparse", 0o644, nil)
				src.write(sparse, 2<<20, pattern(10_000, 9))
				src.make("names/\xff\n", vfs.CreateHow{Type: vfs.TypeDir, Set: mode(0o750)})
				src.settle()
				dir := recordDir(t)
				var first Summary
				for i := range 2 {
					o, v := options(t, src, dst, "copy")
					o.Owner, o.Verify, o.Record = false, true, dir
					s, err := Copy(t.Context(), o)
					if s.ExitCode(err) != ExitDone || (s.Skipped > 0) != (i > 0) || s.Hardlinks != uint64(1-i) {
						t.Fatalf("%v, %+v\n%s", err, s, v)
					}
					if i > 0 && (s.Files+s.Dirs+s.Symlinks+s.Nodes > 0 || s.Skipped != first.Files || s.Unchanged != first.Dirs+first.Symlinks+first.Nodes+1) {
						t.Fatalf("done again: %+v, at first %+v", s, first)
					}
					first = s
					verified, err := Verify(t.Context(), VerifyOptions{
						Source: o.Source, Dest: Place{dst.fs, dst.at("copy")}, Pool: o.Pool, Now: o.Now, Progress: o.Progress,
					})
					if verified.ExitCode(err) != ExitDone || verified.Files != 8 {
						t.Errorf("%v, %+v\n%s", err, verified, v)
					}
				}
				if temps := dst.temps(); len(temps) > 0 {
					t.Errorf("left behind: %q", temps)
				}
			})
		}
	}
}

// TestPlaceTwice: a directory on disk and the same one served, with other handles and ids,
// are recognised as one.
func TestPlaceTwice(t *testing.T) {
	disk := local(t)
	disk.file("a/b/file", 0o644, nil)
	net := remote(t, disk.fs)
	for _, dst := range []*tree{disk, net} {
		o, _ := options(t, disk, dst, "copy")
		o.Source.Handle, o.Dest.Handle = disk.at("a"), dst.at("a/b")
		if _, err := Copy(t.Context(), o); !errors.Is(err, ErrIntoItself) {
			t.Errorf("error %v", err)
		}
	}
}
