package dir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/server/object/layout"
)

// TestOpen opens what is, and what is not, a store.
func TestOpen(t *testing.T) {
	write := func(name, content string) func(string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600) }
	}
	for _, c := range []struct {
		name    string
		prepare func(dir string) error
		o       Options
		want    string // in the error; "": none
	}{
		{"empty", nil, Options{}, "there is no .nfsbox-store"},
		{"new", nil, Options{Create: true}, ""},
		{"new, narrow", nil, Options{Create: true, Fanout: 1}, ""},
		{"after a try that was killed", write(layout.TempMark+"x", "nfsbox"), Options{Create: true}, ""},
		{"not empty", write("precious", ""), Options{Create: true}, `not empty, and no object store: there is "precious"`},
		{"missing", os.Remove, Options{Create: true}, "no such file"},
		{"a file", func(d string) error { return errors.Join(os.Remove(d), os.WriteFile(d, nil, 0o600)) }, Options{Create: true}, "not a directory"},
		{"of version 2", write(layout.MarkerName, "nfsbox object store\nversion 2\nfanout 2\n"), Options{}, "does not know"},
		{"of fan-out 9", write(layout.MarkerName, "nfsbox object store\nversion 1\nfanout 9\n"), Options{}, "damaged"},
		{"of something else", write(layout.MarkerName, "something else"), Options{Create: true}, "not that of an object store"},
		{"a link as marker", func(d string) error { return os.Symlink("/etc/passwd", filepath.Join(d, layout.MarkerName)) }, Options{}, "symbolic links"},
		{"fan-out", nil, Options{Create: true, Fanout: layout.MaxFanout + 1}, "fan-out"},
		{"size", nil, Options{Create: true, MaxSize: -1}, "at most -1"},
		{"read-only", nil, Options{Create: true, ReadOnly: true}, "read-only"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, before := t.TempDir(), openFDs(t)
			if c.prepare != nil {
				if err := c.prepare(dir); err != nil {
					t.Fatal(err)
				}
			}
			s, err := Open(dir, c.o)
			if err == nil {
				err = s.Close()
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if n := openFDs(t); n != before {
				t.Errorf("%d descriptors are open, %d were before", n, before)
			}
		})
	}
}

// TestLock opens one store several times.
func TestLock(t *testing.T) {
	path := memory(t)
	s := reopen(t, path, Options{Create: true, Fanout: 1, Holder: layout.Holder{Host: "db1", PID: 17, Command: "nfsbox backup"}})
	put(t, s, "key", "x")
	if _, err := Open(path, Options{}); !errors.Is(err, object.ErrBusy) || !strings.Contains(err.Error(), "by nfsbox backup, process 17 on host db1, since 20") {
		t.Errorf("open for the second time: %v", err)
	}
	if err := os.WriteFile(filepath.Join(path, layout.HolderName), []byte("evil\x1b[31m"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, Options{}); !errors.Is(err, object.ErrBusy) || !strings.Contains(err.Error(), "by another process") {
		t.Errorf("open, and who has it is not said: %v", err)
	}
	r := reopen(t, path, Options{ReadOnly: true})
	if got := content(t, r, "key"); got != "x" {
		t.Errorf("read beside the writer: %q", got)
	}
	_, err := r.Put(t.Context(), "key", strings.NewReader("y"), object.PutOptions{Size: 1})
	if !errors.Is(err, unix.EROFS) || !errors.Is(r.Delete(t.Context(), "key"), unix.EROFS) {
		t.Errorf("written to a store that is open for reading: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(path, layout.HolderName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the writer, its name: %v", err)
	}
	s = reopen(t, path, Options{Fanout: 2}) // what it was made with counts
	if got := content(t, s, "key"); got != "x" {
		t.Errorf("%q", got)
	}
}

// TestCreateAtOnce makes one store from many sides: one has it, and the others
// find it busy.
func TestCreateAtOnce(t *testing.T) {
	path := memory(t)
	var wg sync.WaitGroup
	var got atomic.Int64
	stores := make(chan *Store, 20)
	for range cap(stores) {
		wg.Go(func() {
			s, err := Open(path, Options{Create: true})
			if err == nil {
				got.Add(1)
				stores <- s
			} else if !errors.Is(err, object.ErrBusy) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got.Load() != 1 {
		t.Fatalf("%d have it", got.Load())
	}
	s := <-stores
	put(t, s, "key", "x")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestManyFolders uses more directories than are kept open, and has more beside
// each other than are listed at a time.
func TestManyFolders(t *testing.T) {
	path := memory(t)
	s := reopen(t, path, Options{Create: true, NoSync: true})
	var keys []string
	for i := range maxFolders + 200 {
		key := fmt.Sprintf("%03x/key", i)
		put(t, s, key, key)
		keys = append(keys, key)
	}
	if n := s.Snapshot().Folders; n > maxFolders {
		t.Errorf("%d directories are open", n)
	}
	var listed []string
	for info, err := range object.All(t.Context(), s, "") {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, info.Key)
	}
	if !slices.Equal(listed, keys) {
		t.Errorf("%d are listed of %d, or in another order", len(listed), len(keys))
	}
	if c := sound(t, s, path); c.Objects != len(keys) {
		t.Errorf("%+v", c)
	}
}

// TestMaxSize stores as much as is allowed, and no more.
func TestMaxSize(t *testing.T) {
	path := memory(t)
	s := reopen(t, path, Options{Create: true, MaxSize: 100_000})
	for size, want := range map[int]error{100_000: nil, 100_001: object.ErrTooLarge, 1 << 20: object.ErrTooLarge} {
		for _, announced := range []int64{-1, int64(size)} {
			_, err := s.Put(t.Context(), "key", bytes.NewReader(make([]byte, size)), object.PutOptions{Size: announced})
			if !errors.Is(err, want) {
				t.Errorf("%d bytes, announced as %d: %v", size, announced, err)
			}
		}
	}
	sound(t, s, path)
}

// countingGate counts places, and is full when told so.
type countingGate struct {
	inside atomic.Int64
	taken  [Sync + 1]atomic.Int64
	full   atomic.Bool
}

func (g *countingGate) Enter(_ context.Context, c Class) error {
	if g.full.Load() {
		return errors.New("the gate is full")
	}
	g.inside.Add(1)
	g.taken[c].Add(1)
	return nil
}

func (g *countingGate) Leave(Class) { g.inside.Add(-1) }

// gatedReader wants that no place is held while it is read.
type gatedReader struct {
	*bytes.Reader
	t *testing.T
	g *countingGate
}

func (r gatedReader) Read(p []byte) (int, error) {
	if n := r.g.inside.Load(); n != 0 {
		r.t.Errorf("%d places are held while a reader is waited for", n)
	}
	return r.Reader.Read(p)
}

// placedSys wants every call to be made with exactly one place held.
type placedSys struct {
	t *testing.T
	g *countingGate
	faultySys
}

func (s *placedSys) fault(op string) {
	if n := s.g.inside.Load(); n != 1 {
		s.t.Errorf("%s is called with %d places held", op, n)
	}
}

func (s *placedSys) Tmpfile(d int, m uint32) (int, error) {
	s.fault("tmpfile")
	return s.osSys.Tmpfile(d, m)
}
func (s *placedSys) Linkat(f, d int, n string) error {
	s.fault("linkat")
	return s.osSys.Linkat(f, d, n)
}
func (s *placedSys) Mkdirat(d int, n string, m uint32) error {
	s.fault("mkdirat")
	return s.osSys.Mkdirat(d, n, m)
}
func (s *placedSys) Unlinkat(d int, n string, f int) error {
	s.fault("unlinkat")
	return s.osSys.Unlinkat(d, n, f)
}
func (s *placedSys) Renameat(f int, a string, d int, b string) error {
	s.fault("renameat")
	return s.osSys.Renameat(f, a, d, b)
}
func (s *placedSys) Pwrite(fd int, p []byte, off int64) (int, error) {
	s.fault("pwrite")
	return s.osSys.Pwrite(fd, p, off)
}
func (s *placedSys) Fdatasync(fd int) error { s.fault("fdatasync"); return s.osSys.Fdatasync(fd) }
func (s *placedSys) Fsync(fd int) error     { s.fault("fsync"); return s.osSys.Fsync(fd) }

// TestGate looks at which calls have a place, and what becomes of those that get
// none.
func TestGate(t *testing.T) {
	path, g := memory(t), &countingGate{}
	made := reopen(t, path, Options{Create: true})
	if err := made.Close(); err != nil {
		t.Fatal(err)
	}
	sys := &placedSys{t: t, g: g}
	s := openPlaced(t, path, sys, g)
	large := make([]byte, 3*chunk)
	for range 2 {
		if _, err := s.Put(t.Context(), "a/key", gatedReader{bytes.NewReader(large), t, g}, object.PutOptions{Size: -1}); err != nil {
			t.Fatal(err)
		}
	}
	if got := content(t, s, "a/key"); got != string(large) {
		t.Errorf("%d bytes", len(got))
	}
	if err := s.Delete(t.Context(), "a/key"); err != nil {
		t.Error(err)
	}
	for c := range g.taken {
		if g.taken[c].Load() == 0 {
			t.Errorf("nothing of class %d was done", c)
		}
	}
	put(t, s, "key", "x")
	g.full.Store(true)
	_, err := s.Put(t.Context(), "key", strings.NewReader("y"), object.PutOptions{Size: 1})
	_, statErr := s.Stat(t.Context(), "key")
	_, listErr := s.List(t.Context(), "", "", 0)
	for _, err := range []error{err, statErr, listErr, s.Delete(t.Context(), "key")} {
		if !errors.Is(err, object.ErrBusy) {
			t.Errorf("at a full gate: %v", err)
		}
	}
	g.full.Store(false)
	if got := content(t, s, "key"); got != "x" || g.inside.Load() != 0 {
		t.Errorf("it is %q; %d places are held", got, g.inside.Load())
	}
}

// openPlaced opens a store with what it does while it opens out of the count.
func openPlaced(t *testing.T, path string, sys Sys, g *countingGate) *Store {
	g.inside.Store(1)
	s := reopen(t, path, Options{Sys: sys, Gate: g})
	g.inside.Store(0)
	return s
}

// TestBusySync has the gate full when the name is made and its sync is due. The
// outcome is unknown until a call looks, which then makes it stable.
func TestBusySync(t *testing.T) {
	g := &countingGate{}
	sys := &fillingSys{g: g}
	s := fresh(t, Options{Sys: sys, Gate: g})
	put(t, s, "key", "old")
	sys.fill.Store(true)
	_, err := s.Put(t.Context(), "key", strings.NewReader("new"), object.PutOptions{Size: 3})
	if !errors.Is(err, object.ErrUnknownOutcome) || !errors.Is(err, object.ErrBusy) {
		t.Errorf("%v", err)
	}
	sys.fill.Store(false)
	g.full.Store(false)
	before := s.Snapshot().Syncs
	if got := content(t, s, "key"); got != "new" || s.Snapshot().Syncs != before+1 {
		t.Errorf("it is %q after %d syncs", got, s.Snapshot().Syncs-before)
	}
	if got := content(t, s, "key"); got != "new" || s.Snapshot().Syncs != before+1 {
		t.Errorf("it is %q after %d syncs", got, s.Snapshot().Syncs-before)
	}
}

// fillingSys fills the gate with a rename.
type fillingSys struct {
	osSys
	g    *countingGate
	fill atomic.Bool
}

func (s *fillingSys) Renameat(f int, a string, d int, b string) error {
	s.g.full.Store(s.fill.Load())
	return s.osSys.Renameat(f, a, d, b)
}

// TestAlone wants readers kept apart from a process that removes what they may be reading.
func TestAlone(t *testing.T) {
	path := t.TempDir()
	open := func(o Options) (*Store, error) { return Open(path, o) }
	shut := func(s *Store) {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	w, err := open(Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	r, err := open(Options{ReadOnly: true})
	if err != nil {
		t.Fatal("beside a writer:", err)
	}
	shut(w)
	began := time.Now()
	_, err = open(Options{Alone: true})
	held, ok := errors.AsType[*layout.HeldError](err)
	if !ok || !errors.Is(err, object.ErrBusy) || !held.Reading || held.Holder != layout.Self() || held.More != 0 ||
		held.Since.After(began) || began.Sub(held.Since) > time.Hour {
		t.Errorf("beside a reader: %v: %+v", err, held)
	}
	second, err := open(Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(Options{Alone: true}); !strings.Contains(err.Error(), "it is being read by "+layout.Self().String()+", since 20") || !strings.HasSuffix(err.Error(), ", and 1 more") {
		t.Error("beside two readers:", err)
	}
	shut(second)
	shut(r)
	alone, err := open(Options{Alone: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(Options{ReadOnly: true}); !errors.Is(err, object.ErrBusy) {
		t.Error("a reader is let in:", err)
	}
	shut(alone)
	if r, err = open(Options{ReadOnly: true}); err != nil {
		t.Fatal(err)
	}
	shut(r)
}
