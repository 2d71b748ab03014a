package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/iofs"
)

// locking is the tree of a new client of s.
func locking(t *testing.T, s *server, opts ...nfsbox.Option) (*nfsbox.Client, *iofs.FS) {
	t.Helper()
	c := dial(t, "nfs://"+s.addr+"/", opts...)
	tree, err := c.Tree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c, tree
}

func openFile(t *testing.T, tree *iofs.FS, name string) *iofs.File {
	t.Helper()
	f, err := tree.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// count adds one to the number in a file, under a lock.
func count(f *iofs.File) error {
	if err := f.Lock(); err != nil {
		return err
	}
	var text [16]byte
	n, err := f.ReadAt(text[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	have, err := strconv.Atoi("0" + string(text[:n]))
	if err != nil {
		return err
	}
	if _, err := f.WriteAt([]byte(strconv.Itoa(have+1)), 0); err != nil {
		return err
	}
	return f.Unlock()
}

// TestLockedCount: clients that count in one file under a lock lose nothing, through all that they keep of
// it.
func TestLockedCount(t *testing.T) {
	const clients, rounds = 3, 40
	s := start(t, export.Export{Path: "/", FS: memfs.New(memfs.Options{Mode: 0o777})})
	var wg sync.WaitGroup
	var files []*iofs.File
	for range clients {
		_, tree := locking(t, s)
		files = append(files, openFile(t, tree, "count"), openFile(t, tree, "count"))
	}
	for i, f := range files {
		wg.Go(func() {
			for range rounds {
				if err := count(f); err != nil {
					t.Errorf("client %d: %v", i/2, err)
					return
				}
			}
		})
	}
	wg.Wait()
	want := fmt.Sprint(len(files) * rounds)
	var text [16]byte
	if n, err := files[0].ReadAt(text[:], 0); !errors.Is(err, io.EOF) || string(text[:n]) != want {
		t.Errorf("counted to %s, %v, want %s", text[:n], err, want)
	}
	for _, f := range files {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := s.srv.Stats().Locks.Locks; n != 0 {
		t.Errorf("%d locks are left at the server", n)
	}
}

// TestLocksOverRestart: a lock is had back in the grace of our server.
func TestLocksOverRestart(t *testing.T) {
	s := &server{t: t, addr: "127.0.0.1:0"}
	s.export(export.Export{Path: "/", FS: memfs.New(memfs.Options{Mode: 0o777})})
	s.opt.Grace, s.opt.LockStateDir = time.Hour, t.TempDir()
	s.begin()
	t.Cleanup(s.end)
	c, tree := locking(t, s)
	f, other := openFile(t, tree, "file"), openFile(t, tree, "other")
	if err := f.Lock(); err != nil {
		t.Fatal(err)
	}
	s.end()
	s.begin()
	if n := s.srv.Stats().Locks.Locks; n != 0 {
		t.Fatalf("%d locks behind the restart", n)
	}
	// A new lock finds the connection broken, and waits for the end of the grace.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	waits := make(chan error, 1)
	root, _, err := c.FS().Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h, _, _, err := c.FS().Lookup(t.Context(), root, "other")
	if err != nil {
		t.Fatal(err)
	}
	go func() { waits <- vfs.LockerOf(c.FS()).Lock(ctx, h, &vfs.Lock{Exclusive: true}) }()
	for s.srv.Stats().Locks.Locks == 0 && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	if st := s.srv.Stats().Locks; st.Locks != 1 || !st.Grace {
		t.Errorf("the server has %+v", st)
	}
	cancel()
	if err := <-waits; !errors.Is(err, context.Canceled) {
		t.Errorf("a new lock in the grace: %v", err)
	}
	for _, f := range []*iofs.File{f, other} {
		if err := f.Unlock(); err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if st := c.Stats().Locks; st.Reclaimed == 0 || st.Lost != 0 || st.Locks != 0 {
		t.Errorf("%+v", st)
	}
}

// TestLocksAtGivenPorts: ports of NFS and MOUNT are enough to find the lock manager of a server that has one port.
func TestLocksAtGivenPorts(t *testing.T) {
	_, port, err := net.SplitHostPort(start(t, export.Export{Path: "/", FS: memfs.New(memfs.Options{Mode: 0o777})}).addr)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := dial(t, "nfs://127.0.0.1/?nfsport="+port+"&mountport="+port).Tree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f := openFile(t, tree, "file")
	if err := errors.Join(f.Lock(), f.Close()); err != nil {
		t.Error(err)
	}
}

// TestNoLockManager: a server without one harms nothing but locks.
func TestNoLockManager(t *testing.T) {
	s := &server{t: t, addr: "127.0.0.1:0"}
	s.export(export.Export{Path: "/", FS: memfs.New(memfs.Options{Mode: 0o777})})
	s.opt.Locks = false
	s.begin()
	t.Cleanup(s.end)
	_, tree := locking(t, s)
	f := openFile(t, tree, "file")
	if err := f.Lock(); !errors.Is(err, syscall.ENOLCK) || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%v, want ENOLCK", err)
	}
	if _, err := f.WriteAt([]byte("text"), 0); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
