package mounter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/object/dir"
	"github.com/nfsbox/nfsbox/internal/testkit/expect"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/internal/tools/backup"
	"github.com/nfsbox/nfsbox/internal/tools/dirfs"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/vfs"
)

// kept makes "store" with a snapshot of "tree" called home, in a directory that becomes the current one.
func kept(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	expect.OK(t, os.MkdirAll("tree/d/e", 0o755))
	expect.OK(t, os.WriteFile("tree/d/a", []byte("alpha\n"), 0o640))
	expect.OK(t, os.Link("tree/d/a", "tree/d/b"))
	expect.OK(t, os.Symlink("../a", "tree/d/e/up"))
	expect.OK(t, os.WriteFile("tree/holes", []byte("begin"), 0o600))
	expect.OK(t, os.Truncate("tree/holes", 1<<20))
	if err := unix.Setxattr("tree/d/a", "user.k", []byte("v"), 0); err != nil {
		t.Logf("NOT TESTED: extended attributes: %v", err)
	}
	tree, err := dirfs.New("tree", dirfs.Options{})
	expect.OK(t, err)
	root, _, err := tree.Root(t.Context())
	expect.OK(t, err)
	expect.OK(t, os.Mkdir("store", 0o700))
	s, err := dir.Open("store", dir.Options{Create: true, NoSync: true})
	expect.OK(t, err)
	_, err = backup.Run(t.Context(), backup.Options{FS: tree, Root: root, Store: s, Now: time.Now, Meta: snapshot.Meta{Name: "home"}})
	expect.OK(t, errors.Join(err, s.Close(), vfs.CloseFS(tree)))
}

// mounted mounts SPEC at "at", and unmounts it when do has ended.
func mounted(t *testing.T, spec string, do func(at *Mounted)) {
	t.Helper()
	m, err := Parse(spec)
	expect.OK(t, err)
	expect.OK(t, os.MkdirAll("at", 0o755))
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan *Mounted, 1), make(chan error, 1)
	o := Options{Mount: m, Dir: "at", Rand: func([]byte) {}, Note: func(text string) { t.Log(text) }}
	o.Ready = func(at *Mounted) error {
		ready <- at
		return nil
	}
	var left sync.WaitGroup
	defer left.Wait() // also if do has ended the test
	defer cancel()
	left.Go(func() {
		r, err := Run(ctx, o)
		if err == nil && r.Lost() {
			err = errors.New(strings.Join(r.Problems, "; "))
		}
		ended <- err
	})
	select {
	case at := <-ready:
		do(at)
		cancel()
		err = <-ended
	case err = <-ended:
	}
	expect.OK(t, err)
}

// shape is what a program finds out about a tree, one line an object.
func shape(t *testing.T, dir string) (lines []string) {
	t.Helper()
	expect.OK(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err := errors.Join(err, unix.Lstat(path, &st)); err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path) // both are below it
		link, _ := os.Readlink(path)       // "" if it is none
		value := make([]byte, 64)
		n, _ := unix.Lgetxattr(path, "user.k", value) // likewise
		line := []any{name, st.Ino, st.Nlink, st.Mode, st.Uid, st.Gid, st.Mtim, link, string(value[:max(n, 0)])}
		if st.Mode&unix.S_IFMT == unix.S_IFREG {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line = append(line, st.Size, string(content))
		}
		lines = append(lines, fmt.Sprint(line...))
		return nil
	}))
	return lines
}

// TestSnapshot: a mounted snapshot is the tree to programs: names, inode numbers, links, attributes, contents, holes.
func TestSnapshot(t *testing.T) {
	need.Fuse(t)
	kept(t)
	mounted(t, "store::home", func(at *Mounted) {
		if want, got := shape(t, "tree"), shape(t, "at"); !slices.Equal(got, want) {
			t.Errorf("the mount has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if !strings.HasPrefix(at.Snapshot, "home@") || at.Source != "store::home" || at.Posix || at.Flock {
			t.Errorf("mounted: %+v", at)
		}
		expect.Errno(t, os.WriteFile("at/new", nil, 0o600), syscall.EROFS)
		f, err := os.Open("at/holes")
		expect.OK(t, err)
		defer func() { expect.OK(t, f.Close()) }()
		own, err := os.Open("tree/holes")
		expect.OK(t, err)
		defer func() { expect.OK(t, own.Close()) }()
		for _, whence := range []int{unix.SEEK_HOLE, unix.SEEK_DATA} {
			got, err := unix.Seek(int(f.Fd()), 5, whence)
			want, err2 := unix.Seek(int(own.Fd()), 5, whence)
			if got != want || !errors.Is(err, err2) {
				t.Errorf("lseek(5, %d): %d, %v; want %d, %v", whence, got, err, want, err2)
			}
		}
		var st unix.Statfs_t
		expect.OK(t, unix.Statfs("at", &st))
		if st.Blocks != 1<<20/4096 || st.Bfree != 0 || st.Files != 7 || st.Ffree != 0 {
			t.Errorf("df: %+v", st)
		}
	})
}

// TestSnapshotPath: PATH is the root of the mount. What the store cannot give is EIO, and it ends all the same.
func TestSnapshotPath(t *testing.T) {
	need.Fuse(t)
	kept(t)
	mounted(t, "./store/::home/d", func(*Mounted) {
		expect.OK(t, os.RemoveAll("store/sha256"))
		_, err := os.ReadFile("at/a")
		expect.Errno(t, err, syscall.EIO)
	})
	if _, err := os.Lstat("at/a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is mounted: %v", err)
	}
}

// TestSnapshotRefused: what is no directory of a snapshot is not mounted.
func TestSnapshotRefused(t *testing.T) {
	kept(t)
	expect.OK(t, os.Mkdir("at", 0o755))
	for spec, want := range map[string]string{
		"store::home/d/a": "not a directory", "store::home/none": "no such file", "store::hom": "did you mean home?", "tree::home": "no .nfsbox-store",
	} {
		m, err := Parse(spec)
		expect.OK(t, err)
		_, err = Run(t.Context(), Options{Mount: m, Dir: "at", Note: func(text string) { t.Error(text) }})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", spec, err, want)
		}
	}
	if _, err := Parse("store::home", "rw"); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("rw: %v", err)
	}
	if _, err := Parse("none::home"); err == nil || !strings.Contains(err.Error(), "STORE::NAME") {
		t.Errorf("no store: %v", err)
	}
}

// TestElse: of a server the path of that very name is tried first, then the snapshot.
func TestElse(t *testing.T) {
	m, err := Parse("filer:/e f::home/a b", "retry=0,fsc,ro")
	if err != nil || m.URL != "nfs://filer/e%20f::home/a%20b?fsc&readonly&hard" || m.Else == nil ||
		m.Else.URL != "nfs://filer/e%20f?readonly&hard::home/a b" || m.Else.Refused != nil || !m.Else.Snapshot {
		t.Fatalf("%+v, %v", m, err)
	}
	m, err = Parse("filer:/e::home", "rw")
	if err != nil || m.Else == nil || m.Else.Refused == nil {
		t.Fatalf("%+v, %v", m, err)
	}
	if _, err := (&Options{Mount: m.Else}).try(t.Context()); !errors.Is(err, place.ErrUsage) || !errors.Is(err, m.Else.Refused) {
		t.Error(err)
	}
}

// TestInUsePasses: a snapshot of a store that a prune has for itself is tried again.
func TestInUsePasses(t *testing.T) {
	at := filepath.Join(t.TempDir(), "store")
	alone, err := place.OpenStore(t.Context(), at, place.StoreOptions{Write: true, Alone: true})
	expect.OK(t, err)
	_, err = place.OpenStore(t.Context(), at, place.StoreOptions{})
	if !passing(err) {
		t.Error(err)
	}
	expect.OK(t, alone.Close())
}
