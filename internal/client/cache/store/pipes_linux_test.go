package store

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

// TestPipes: a pipe in the place of a file is not waited for. The store goes on without it, or says what is wrong.
func TestPipes(t *testing.T) {
	o := Options{Dir: home(t)}
	s := start(t, o)
	fill(t, s, 1, bytesOf(1, MinGranule))
	stop(t, s)
	for _, name := range []string{statsName, indexName, oldName} {
		path := filepath.Join(s.dir, name)
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if st, _, err := Look(s.dir); err != nil || st.Entries != 1 {
		t.Errorf("looked at: %+v, %v", st, err)
	}
	if err := Entries(s.dir, true, func(f *Found) error { return f.Err }); err != nil {
		t.Error(err)
	}
	s = start(t, o)
	if n := s.Stats().Entries; n != 1 {
		t.Errorf("%d entries, want the one that is there", n)
	}
	stop(t, s)

	head := filepath.Join(s.dir, headName)
	if err := os.Remove(head); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(head, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(o); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a pipe as its head: %v", err)
	}
}

// TestLookedAtByOthers: what another user has made is not parsed.
func TestLookedAtByOthers(t *testing.T) {
	need.Root(t, "a directory is another user's")
	s := start(t, Options{Dir: home(t)})
	stop(t, s)
	if err := os.Chown(s.dir, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	err := Entries(s.dir, false, func(*Found) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "belongs to user 12345") {
		t.Errorf("another user's: %v", err)
	}
}
