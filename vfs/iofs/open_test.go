package iofs_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/iofs"
)

// TestOpenFlags opens what is there and what is not with all sensible flags.
func TestOpenFlags(t *testing.T) {
	const (
		rd, wr, rw = os.O_RDONLY, os.O_WRONLY, os.O_RDWR
		create     = os.O_CREATE
	)
	for _, c := range []struct {
		name  string
		flag  int
		want  error
		after string // of the file, "-": it is not there
	}{
		{"old", rd, nil, "contents"},
		{"old", wr, nil, "contents"},
		{"old", rw | os.O_TRUNC, nil, ""},
		{"old", rw | create, nil, "contents"},
		{"old", wr | create | os.O_TRUNC, nil, ""},
		{"old", rw | create | os.O_EXCL, fs.ErrExist, "contents"},
		{"old", rw | os.O_EXCL, nil, "contents"},
		{"new", rd, fs.ErrNotExist, "-"},
		{"new", wr | os.O_TRUNC, fs.ErrNotExist, "-"},
		{"new", rd | create, nil, ""},
		{"new", rw | create | os.O_TRUNC, nil, ""},
		{"new", wr | create | os.O_EXCL, nil, ""},
		{"tonew", rd, fs.ErrNotExist, "-"},
		{"tonew", rw | create, nil, ""},
		{"tonew", rw | create | os.O_EXCL, fs.ErrExist, "-"},
		{"told", rd, nil, "contents"},
		{"told", rw | create, nil, "contents"},
		{"told", rw | create | os.O_TRUNC, nil, ""},
		{"told", rw | create | os.O_EXCL, fs.ErrExist, "contents"},
		{"deep/new", rw | create, nil, ""},
		{"deep/new", rw | create | os.O_EXCL, nil, ""},
		{"todeep/new", rw | create, nil, ""},
		{"none/new", rw | create, fs.ErrNotExist, "-"},
		{"old/new", rw | create, syscall.ENOTDIR, "-"},
		{"tonone", rw | create, fs.ErrNotExist, "-"},
		{"toslash", rw | create, fs.ErrNotExist, "-"},
		{"loop", rw | create, syscall.ELOOP, "-"},
		{"out", rw | create, fs.ErrPermission, "-"},
		{"deep", rd, syscall.EISDIR, "-"},
		{"deep", rw, syscall.EISDIR, "-"},
		{"deep", rw | create, syscall.EISDIR, "-"},
		{"todeep", rw | create, syscall.EISDIR, "-"},
		{"pipe", rd, fs.ErrInvalid, "-"},
		{"pipe", rw | create, fs.ErrInvalid, "-"},
		{".", rw | create, fs.ErrInvalid, "-"},
		{"old", rd | os.O_TRUNC, fs.ErrInvalid, "contents"},
		{"old", wr | rw, fs.ErrInvalid, "contents"},
		{"old", rd | 1<<30, fs.ErrInvalid, "contents"},
	} {
		m := newTree(t)
		m.file("old", "contents")
		m.dir("deep")
		m.link("tonew", "new")
		m.link("told", "old")
		m.link("todeep", "deep/")
		m.link("tonone", "none/new")
		m.link("toslash", "new/")
		m.link("loop", "loop")
		m.link("out", "../new")
		m.make("pipe", vfs.CreateHow{Type: vfs.TypeFIFO})
		f := m.io()
		file, err := f.OpenFile(c.name, c.flag, 0o640)
		if !errors.Is(err, c.want) {
			t.Errorf("%s with %#x: %v, want %v", c.name, c.flag, err, c.want)
		}
		if err == nil {
			if file.Name() != c.name {
				t.Errorf("%s is called %s", c.name, file.Name())
			}
			if err := file.Close(); err != nil {
				t.Errorf("%s with %#x: Close: %v", c.name, c.flag, err)
			}
		} else if pe := (*fs.PathError)(nil); !errors.As(err, &pe) || pe.Path != c.name || file != nil {
			t.Errorf("%s with %#x: %v, which names another path", c.name, c.flag, err)
		}
		if b, err := f.ReadFile(c.name); c.after != "-" && (string(b) != c.after || err != nil) {
			t.Errorf("%s after %#x: %q, %v; want %q", c.name, c.flag, b, err, c.after)
		}
		if n := m.fs.(*memfs.FS).OpenFiles(); n != 0 {
			t.Errorf("%s with %#x: %d files left open", c.name, c.flag, n)
		}
	}
}

// TestOpenMode: the mode is what was asked for, also of a file made exclusively.
func TestOpenMode(t *testing.T) {
	for _, flag := range []int{0, os.O_EXCL} {
		f := newTree(t).io()
		file, err := f.OpenFile("new", os.O_WRONLY|os.O_CREATE|flag, 0o751|fs.ModeSetgid|fs.ModeSticky)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write([]byte("x")); err != nil { // which takes set-gid away, and is one's right
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat("new")
		if err != nil || info.Mode()&^fs.ModeSetgid != 0o751|fs.ModeSticky {
			t.Errorf("with %#x: %v, %v", flag, info, err)
		}
	}
}

// refusing is a file system whose server has no exclusive CREATE, or no SETATTR.
type refusing struct {
	vfs.FS
	exclusive, setAttr bool
	set                vfs.SetAttr // the last
	asked              func()      // called by SetAttr
}

func (r *refusing) SetAttr(ctx context.Context, h vfs.Handle, set *vfs.SetAttr, guard *time.Time) (vfs.WCC, error) {
	r.set = *set
	if r.asked != nil {
		r.asked()
	}
	return r.FS.SetAttr(ctx, h, set, guard)
}

func (r *refusing) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	if r.exclusive && how.Create != nil && how.Create.Mode == vfs.CreateExclusive {
		return nil, vfs.Opened{}, vfs.ErrNotSupp
	}
	return r.FS.Open(ctx, at, how)
}

func (r *refusing) Fault(_ context.Context, op string, _ vfs.Handle) error {
	if r.setAttr && op == "setattr" {
		return vfs.ErrIO
	}
	return nil
}

func TestExclusiveRefused(t *testing.T) {
	const flag = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	r := &refusing{exclusive: true}
	mem := memfs.New(memfs.Options{Fault: r.Fault})
	r.FS = mem
	f, err := iofs.Root(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	file, err := f.OpenFile("new", flag, 0o640)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := file.Stat(); err != nil || info.Mode() != 0o640 {
		t.Errorf("%v, %v", info, err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	if _, err := f.OpenFile("new", flag, 0o640); !errors.Is(err, fs.ErrExist) {
		t.Errorf("the second: %v", err)
	}

	// A file whose mode cannot be set is not left behind.
	r.exclusive, r.setAttr = false, true
	if _, err := f.OpenFile("other", flag, 0o640); !errors.Is(err, vfs.ErrIO) {
		t.Errorf("without SETATTR: %v", err)
	}
	// An exclusive CREATE may leave anything in them.
	if !r.set.AtimeNow || !r.set.MtimeNow || r.set.Valid != vfs.MaskMode|vfs.MaskAtime|vfs.MaskMtime {
		t.Errorf("what was to be set: %+v", r.set)
	}
	if _, err := f.Lstat("other"); !errors.Is(err, fs.ErrNotExist) || mem.OpenFiles() != 0 {
		t.Errorf("left behind: %v, %d open", err, mem.OpenFiles())
	}

	// Nor if the reason is that the caller's time is over.
	ctx, cancel := context.WithCancel(t.Context())
	r.asked = cancel
	if _, err := f.WithContext(ctx).OpenFile("late", flag, 0o640); err == nil {
		t.Error("a file with a context that has ended")
	}
	if _, err := f.Lstat("late"); !errors.Is(err, fs.ErrNotExist) || mem.OpenFiles() != 0 {
		t.Errorf("left behind: %v, %d open", err, mem.OpenFiles())
	}
}

// TestLinkDepth: the bound of links is vfs.MaxSymlinks, on the way and at its end.
func TestLinkDepth(t *testing.T) {
	m := newTree(t)
	m.dir("end")
	m.file("end/file", "")
	last := "end"
	for range vfs.MaxSymlinks + 1 {
		m.link("l"+last, last)
		last = "l" + last
	}
	f := m.io()
	within := strings.TrimPrefix(last, "l")
	if _, err := f.Stat(within + "/file"); err != nil {
		t.Errorf("%d links: %v", vfs.MaxSymlinks, err)
	}
	for _, name := range []string{last, last + "/file"} {
		if _, err := f.Stat(name); !errors.Is(err, syscall.ELOOP) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if info, err := f.Lstat(last); err != nil || info.Mode().Type() != fs.ModeSymlink {
		t.Errorf("Lstat: %v, %v", info, err)
	}
}
