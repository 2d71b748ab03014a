package dir

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/server/object/layout"
	"github.com/nfsbox/nfsbox/internal/server/object/objecttest"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

// fresh opens a new store, and when the test is over wants it to have let go of
// everything, and a Check of it to find nothing.
func fresh(t *testing.T, o Options) *Store {
	t.Helper()
	o.Create = true
	return reopen(t, memory(t), o)
}

func reopen(t *testing.T, path string, o Options) *Store {
	t.Helper()
	fds, goroutines := openFDs(t), runtime.NumGoroutine()
	s, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n := s.Snapshot().OpenReaders; n != 0 {
			t.Errorf("%d readers are open", n)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if n := openFDs(t); n > fds {
			t.Errorf("%d descriptors are open, %d were before", n, fds)
		}
		// One that has said its last word may not quite be gone.
		n := runtime.NumGoroutine()
		for end := time.Now().Add(5 * time.Second); n > goroutines && time.Now().Before(end); n = runtime.NumGoroutine() {
			runtime.Gosched()
		}
		if n > goroutines {
			t.Errorf("%d goroutines run, %d did before", n, goroutines)
		}
	})
	return s
}

func openFDs(t testing.TB) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// sound wants a Check to find nothing, and no temporary names.
func sound(t *testing.T, s *Store, path string) Checked {
	t.Helper()
	c, err := s.Check(context.Background(), func(f Finding) { t.Errorf("%s (%s): %v", f.Path, f.Key, f.Err) })
	if err != nil {
		t.Error(err)
	}
	if left := temps(t, path); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	return c
}

// temps lists the temporary names in a store.
func temps(t *testing.T, path string) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"", "*", "*/*", "*/*/*"} {
		list, err := filepath.Glob(filepath.Join(path, pattern, layout.TempMark+"*"))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, list...)
	}
	return found
}

// named is the kernel without O_TMPFILE.
type named struct{ Sys }

// variants are the stores that pass the suite.
var variants = []struct {
	name string
	o    Options
}{
	{"default", Options{}},
	{"named", Options{Sys: named{osSys{}}}},
	{"narrow", Options{NoSync: true, Fanout: 1, Gate: make(places, 1)}},
}

// memory is a new directory in memory if there is such a file system: thousands of
// files are made and removed in it.
func memory(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "nfsbox-object-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestSuite(t *testing.T) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			if need.Race && v.name == "named" {
				t.Skip("NOT TESTED with the race detector: what goes on at once is the same as by default")
			}
			o := v.o
			paths := make(map[object.Store]string)
			open := func(t *testing.T, path string) object.Store {
				s := reopen(t, path, o)
				paths[s] = path
				t.Cleanup(func() { clean(t, path, o) })
				return s
			}
			o.Create = true
			objecttest.Run(t, objecttest.Config{
				New: func(t *testing.T) object.Store { return open(t, memory(t)) },
				Reopen: func(t *testing.T, s object.Store) object.Store {
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					return open(t, paths[s])
				},
				Corrupt: func(t *testing.T, s object.Store, key string) { flip(t, s.(*Store), paths[s], key, 0) },
			})
		})
	}
}

// TestOnDisk is a little of it all on the disk that temporary directories are on.
func TestOnDisk(t *testing.T) {
	path := t.TempDir()
	s := reopen(t, path, Options{Create: true})
	const writers, each = 8, 10
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				key := fmt.Sprintf("%d/%x", w%2, 17*w+i)
				for _, text := range []string{"first", key} {
					if _, err := s.Put(t.Context(), key, strings.NewReader(text), object.PutOptions{Size: -1}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%+v", s.Snapshot())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, path, Options{})
	n := 0
	for info, err := range object.All(t.Context(), s, "") {
		if err != nil {
			t.Fatal(err)
		}
		if got := content(t, s, info.Key); got != info.Key {
			t.Errorf("%s is %q", info.Key, got)
		}
		n++
	}
	if c := sound(t, s, path); c.Objects != n || n != writers*each {
		t.Errorf("%d objects are listed, and %d are sound", n, c.Objects)
	}
}

// clean looks at what a test of the suite has left, unless it was one that damages.
func clean(t *testing.T, path string, o Options) {
	s, err := Open(path, Options{ReadOnly: true, Sys: o.Sys})
	if err != nil {
		t.Errorf("opening the store anew: %v", err)
		return
	}
	sound(t, s, path)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// file is the path of an object's file.
func (s *Store) file(root, key string) string {
	folder, name := s.layout.Split(key)
	return filepath.Join(root, folder, name)
}

// flip changes a bit of the file of key, off bytes from its beginning, or from its
// end if that is negative.
func flip(t *testing.T, s *Store, root, key string, off int64) {
	t.Helper()
	f, err := os.OpenFile(s.file(root, key), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if off < 0 {
		off += st.Size()
	}
	var b [1]byte
	if _, err := f.ReadAt(b[:], off); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1
	if _, err := f.WriteAt(b[:], off); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
