package place

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// TestOpenStoreDir: a store in a directory is made when it is written to, and never by looking.
func TestOpenStoreDir(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "store")
	for _, o := range []StoreOptions{{}, {Write: true, Existing: true}} {
		if _, err := OpenStore(t.Context(), at, o); !errors.Is(err, ErrNoStore) || !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "no such directory") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for i, fresh := range []bool{true, false} {
		s, err := OpenStore(t.Context(), at, StoreOptions{Write: true, Existing: !fresh})
		if err != nil {
			t.Fatal(err)
		}
		if s.Fresh != fresh || s.Text != at {
			t.Errorf("time %d: fresh is %v of %s", i, s.Fresh, s.Text)
		}
		if _, err := s.Put(t.Context(), "a", strings.NewReader("b"), object.PutOptions{Size: 1}); err != nil {
			t.Error(err)
		}
		if _, err := OpenStore(t.Context(), at, StoreOptions{Write: true}); errors.Is(err, ErrUnreachable) || !errors.Is(err, object.ErrBusy) || !strings.Contains(err.Error(), "is in use: it is open for writing by") {
			t.Errorf("a second writer: %v", err)
		}
		r, err := OpenStore(t.Context(), at, StoreOptions{}) // beside the writer
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Put(t.Context(), "a", strings.NewReader("b"), object.PutOptions{Size: 1}); err == nil {
			t.Error("a reader has written")
		}
		if err := errors.Join(r.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestNoStoreDir: what is no store is said to be none, and stays as it is.
func TestNoStoreDir(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "empty"), 0o700), os.WriteFile(filepath.Join(dir, "file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for arg, want := range map[string]string{
		"":                              "empty argument",
		filepath.Join(dir, "file"):      "no directory",
		filepath.Join(dir, "file/x"):    "not a directory",
		filepath.Join(dir, "no/such/x"): "no directory " + filepath.Join(dir, "no/such"),
		dir:                             "not empty",
		"ftp://h/x":                     "ftp://",
	} {
		_, err := OpenStore(t.Context(), arg, StoreOptions{Write: true})
		if !errors.Is(err, ErrUsage) && !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", arg, err, want)
		}
	}
	if _, err := OpenStore(t.Context(), filepath.Join(dir, "empty"), StoreOptions{}); !errors.Is(err, ErrNoStore) || errors.Is(err, ErrUsage) {
		t.Error(err)
	}
	if all, err := filepath.Glob(filepath.Join(dir, "*", "*")); err != nil || len(all) > 0 {
		t.Errorf("there is %v, %v", all, err)
	}
}

// TestReadingWaits: what reads a store of this host waits for what has that for itself, and says for whom.
func TestReadingWaits(t *testing.T) {
	at := filepath.Join(t.TempDir(), "store")
	synctest.Test(t, func(t *testing.T) {
		alone, err := OpenStore(t.Context(), at, StoreOptions{Write: true, Alone: true})
		if err != nil {
			t.Fatal(err)
		}
		r := newReader(time.Minute)
		if _, err := OpenStore(t.Context(), at, StoreOptions{Reading: &r.Reading}); !InUse(err) || errors.Is(err, ErrUnreachable) {
			t.Errorf("after a minute: %v", err)
		}
		const waits = "waiting: it waits until this has ended: the store "
		r.told(t, waits)
		note := r.Note
		r.Note = func(kind, text string) {
			note(kind, text)
			if err := alone.Close(); err != nil {
				t.Error(err)
			}
		}
		s, err := OpenStore(t.Context(), at, StoreOptions{Reading: &r.Reading})
		if err != nil {
			t.Fatal(err)
		}
		r.told(t, waits, waits)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
