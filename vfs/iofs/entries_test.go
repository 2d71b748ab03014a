package iofs_test

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"syscall"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/iofs"
)

var (
	_ encoding.TextMarshaler   = iofs.Pos{}
	_ encoding.TextUnmarshaler = (*iofs.Pos)(nil)
)

// many is a tree with n files in the directory "many", and their names.
func many(tb testing.TB, opt memfs.Options, n int) (*tree, []string) {
	m := &tree{tb, memfs.New(opt)}
	m.dir("many")
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%06d", i)
		m.make("many/"+names[i], vfs.CreateHow{Type: vfs.TypeReg})
	}
	return m, names
}

// TestEntries stops a listing, stores where it stands, and goes on.
func TestEntries(t *testing.T) {
	m, want := many(t, memfs.Options{}, 3000)
	var got []string
	token := ""
	for range 100 {
		var pos iofs.Pos
		if err := pos.UnmarshalText([]byte(token)); err != nil {
			t.Fatal(err)
		}
		n := 0
		for e, err := range m.io().EntriesFrom("many", pos) {
			if err != nil {
				t.Fatal(err)
			}
			info, err := e.Info()
			if err != nil || info.Name() != e.Name() || e.IsDir() || e.Type() != 0 || info.Mode() != 0o755 {
				t.Fatalf("%v, %v", e, err)
			}
			got, token = append(got, e.Name()), e.Next().String()
			if n++; n == 400 {
				break
			}
		}
		if n == 0 {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d entries, want %d", len(got), len(want))
	}
}

func TestEntriesErrors(t *testing.T) {
	fail := 0
	m, _ := many(t, memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
		if op == "readdir" && fail > 0 {
			if fail--; fail == 0 {
				return vfs.ErrIO
			}
		}
		return nil
	}}, 1000)
	f := m.io()
	for _, c := range []struct {
		name string
		fail int
		pos  string
		some bool
		want error
	}{
		{"nowhere", 0, "", false, fs.ErrNotExist},
		{"many/000001", 0, "", false, syscall.ENOTDIR},
		{"many", 1, "", false, vfs.ErrIO},
		{"many", 3, "", true, vfs.ErrIO},
		{"many", 0, "00000000000000ff-0000000000000001", false, vfs.ErrBadCookie},
	} {
		var pos iofs.Pos
		if err := pos.UnmarshalText([]byte(c.pos)); err != nil {
			t.Fatal(err)
		}
		fail = c.fail
		n := 0
		var last error
		for _, err := range f.EntriesFrom(c.name, pos) {
			if last != nil {
				t.Errorf("%s: goes on after an error", c.name)
			}
			if last = err; err == nil {
				n++
			}
		}
		var pe *fs.PathError
		if !errors.Is(last, c.want) || !errors.As(last, &pe) || pe.Path != c.name || (n > 0) != c.some {
			t.Errorf("%s: %v after %d entries, want %v", c.name, last, n, c.want)
		}
	}
}

func TestPos(t *testing.T) {
	for _, text := range []string{
		"x", "0", "00000000000000ff_0000000000000001", "00000000000000ff-000000000000000g", "00000000000000FF-0000000000000001",
		"0000000000000000-0000000000000000", "00000000000000ff-00000000000000010",
	} {
		var p iofs.Pos
		if err := p.UnmarshalText([]byte(text)); !errors.Is(err, fs.ErrInvalid) || p != (iofs.Pos{}) {
			t.Errorf("%q: %v, %v", text, p, err)
		}
	}
}

func FuzzPos(f *testing.F) {
	f.Add("")
	f.Add("00000000000000ff-0123456789abcdef")
	f.Fuzz(func(t *testing.T, text string) {
		var p iofs.Pos
		if p.UnmarshalText([]byte(text)) == nil && p.String() != text {
			t.Errorf("%q became %q", text, p)
		}
	})
}

// TestReadDirPages reads a large directory a few entries at a time, and counts
// what that costs.
func TestReadDirPages(t *testing.T) {
	pages := 0
	m, want := many(t, memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
		if op == "readdir" {
			pages++
		}
		return nil
	}}, 5000)
	file, err := m.io().Open("many")
	if err != nil {
		t.Fatal(err)
	}
	d := file.(fs.ReadDirFile)
	var got []string
	for {
		entries, err := d.ReadDir(3)
		for _, e := range entries {
			got = append(got, e.Name())
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || len(entries) == 0 {
			t.Fatal(entries, err)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d entries, want %d", len(got), len(want))
	}
	if pages > 60 { // memfs has at most 128 entries in one
		t.Errorf("%d pages for %d entries", pages, len(want))
	}
	if rest, err := d.ReadDir(-1); len(rest) != 0 || err != nil {
		t.Errorf("behind the end: %v, %v", rest, err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := d.ReadDir(1); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestReadDirAfterError goes on where the error came.
func TestReadDirAfterError(t *testing.T) {
	pages := 0
	m, want := many(t, memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
		if op != "readdir" {
			return nil
		}
		if pages++; pages == 3 {
			return vfs.ErrIO
		}
		return nil
	}}, 1000)
	file, err := m.io().Open("many")
	if err != nil {
		t.Fatal(err)
	}
	d := file.(fs.ReadDirFile)
	first, err := d.ReadDir(-1)
	if !errors.Is(err, vfs.ErrIO) || len(first) == 0 {
		t.Fatalf("%d entries, %v", len(first), err)
	}
	rest, err := d.ReadDir(-1)
	if err != nil || len(first)+len(rest) != len(want) || rest[len(rest)-1].Name() != want[len(want)-1] {
		t.Errorf("%d and %d entries, %v", len(first), len(rest), err)
	}
}
