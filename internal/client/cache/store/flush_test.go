package store

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// flush removes entries, of which some have to be there.
func flush(t *testing.T, s *Store, want int, ids ...uint64) {
	t.Helper()
	if n, err := s.Flush(ids...); n != want || err != nil {
		t.Errorf("flushed %d, %v; want %d", n, err, want)
	}
}

// TestStrays: entries that the index lacks go with a flush, or when they are named, or when the store is culled. Nothing else goes:
// no file of another name, nothing else by an entry's name, no entry in use, and nothing beside the store.
func TestStrays(t *testing.T) {
	o := Options{Dir: home(t)}
	s := start(t, o)
	data := bytesOf(1, 100)
	for n := range 4 {
		fill(t, s, n, data)
	}
	of := func(n int) string { return s.file(key(n).id()) }
	put := func(names ...string) {
		t.Helper()
		for _, name := range names {
			if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, data, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	there := func(name string) bool {
		_, err := os.Lstat(name)
		return err == nil
	}
	others := []string{
		filepath.Join(o.Dir, "mine"), filepath.Join(o.Dir, dataDir, "00", hex14(1)), filepath.Join(s.dir, "mine"), filepath.Join(s.dir, hex14(1)),
		filepath.Join(s.dir, dataDir, "mine"), filepath.Join(s.dir, dataDir, "zz", hex14(1)), of(1) + ".bak",
		filepath.Join(filepath.Dir(of(1)), "0123456789ABCD"), filepath.Join(filepath.Dir(of(1)), hex14(7), "in a directory"),
	}
	put(others...)
	link := s.file(8)
	if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o700), os.Symlink(others[0], link)); err != nil {
		t.Fatal(err)
	}
	strays := []string{s.file(10), s.file(11), s.file(1 << 60)}
	gone := func(what string, want int, n int, err error) {
		t.Helper()
		if n != want || err != nil {
			t.Errorf("%s: %d, %v; want %d", what, n, err, want)
		}
		if slices.ContainsFunc(strays, there) {
			t.Errorf("%s: entries stay that the index lacks", what)
		}
	}
	put(strays...)
	n, err := s.Cull()
	gone("cull", 3, n, err)
	if st := s.Stats(); st.Entries != 4 {
		t.Errorf("cull leaves %d entries of 4", st.Entries)
	}
	put(strays...)
	n, err = s.Flush(10, 11, 1<<60)
	gone("flush of these", 3, n, err)
	put(strays...)
	e := s.Open(key(0), version(0, len(data)), "label")
	n, err = s.Flush()
	gone("flush", 6, n, err)
	if !there(of(0)) || !e.Has(0) {
		t.Error("an entry in use has gone")
	}
	e.Release()
	for _, name := range append(others, link) {
		if !there(name) {
			t.Errorf("%s has gone", name)
		}
	}
	if st, _, err := Look(s.dir); err != nil || st.Entries != 1 {
		t.Errorf("%d entries, %v", st.Entries, err)
	}
}
