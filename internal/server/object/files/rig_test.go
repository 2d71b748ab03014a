package files

import (
	"context"
	"errors"
	"io"
	"net"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/testkit/leak"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestMain looks for goroutines of ours when all tests have cleaned up.
func TestMain(m *testing.M) { leak.Main(m) }

// rootOf is the handle of a file system's root.
func rootOf(t testing.TB, f vfs.FS) vfs.Handle {
	t.Helper()
	h, _, err := f.Root(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// open opens a store until the test ends.
func open(t testing.TB, f vfs.FS, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), f, rootOf(t, f), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if n := s.Left(); n > 0 {
			t.Errorf("%d temporaries could not be removed", n)
		}
	})
	return s
}

func put(t testing.TB, s object.Store, key, content string) object.Info {
	t.Helper()
	info, err := s.Put(t.Context(), key, strings.NewReader(content), object.PutOptions{Size: -1})
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func content(ctx context.Context, s object.Store, key string) (string, error) {
	r, _, err := s.Get(ctx, key, 0, -1)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(r)
	return string(b), errors.Join(err, r.Close())
}

// wantContent wants the object of key to be content.
func wantContent(t testing.TB, s object.Store, key, want string) {
	t.Helper()
	if got, err := content(t.Context(), s, key); err != nil || got != want {
		t.Errorf("%s has %d bytes, %.40q, not %d, %.40q: %v", key, len(got), got, len(want), want, err)
	}
}

// serve serves a file system on loopback until the test ends.
func serve(t testing.TB, f vfs.FS) (addr string) {
	t.Helper()
	table, err := export.NewTable(export.Key{1, 2, 3}, export.Export{Path: "/", FS: f})
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
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, nfsserver.ErrClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	return l.Addr().String()
}

// dial opens a URL until the test ends, as the superuser and over the network alone.
func dial(t testing.TB, url string, opts ...nfsbox.Option) *nfsbox.Client {
	t.Helper()
	opts = append([]nfsbox.Option{nfsbox.WithCaller(vfs.Caller{}), nfsbox.WithLocalIO(nfsbox.LocalIOOff)}, opts...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := nfsbox.Dial(ctx, url, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n := c.Stats().Dirty; n != 0 {
			t.Errorf("%d bytes are dirty", n)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// at finds what a path leads to.
func at(t testing.TB, f vfs.FS, p string) vfs.Handle {
	t.Helper()
	r, err := vfs.Resolve(t.Context(), f, rootOf(t, f), p, false)
	if err != nil {
		t.Fatal(err)
	}
	return r.Handle
}

// plant makes something at a path, in place of what was there.
func plant(t testing.TB, f vfs.FS, p string, how *vfs.CreateHow) {
	t.Helper()
	dir, name := path.Split(p)
	d := at(t, f, dir)
	if _, err := f.Remove(t.Context(), d, name, false); err != nil && !errors.Is(err, vfs.ErrNoEnt) {
		t.Fatal(err)
	}
	if _, _, _, err := f.Create(t.Context(), d, name, how); err != nil {
		t.Fatal(err)
	}
}

// overwrite changes bytes of a file behind the store's back.
func overwrite(t testing.TB, f vfs.FS, p string, off uint64, data string) {
	t.Helper()
	file, _, err := f.Open(t.Context(), vfs.At{H: at(t, f, p)}, &vfs.OpenHow{Access: vfs.ShareWrite})
	if err != nil {
		t.Fatal(err)
	}
	_, err = vfs.WriteFull(t.Context(), file, []byte(data), off, vfs.FileSync, new(vfs.Written))
	if err := errors.Join(err, file.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
}
