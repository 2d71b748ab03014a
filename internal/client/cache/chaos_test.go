package cache_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/client/cache/store"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
)

// TestChaos: while another client changes files, the cache is restarted, damaged, put back to an older state, or copied while
// it is in use. Every open reads what the server has.
func TestChaos(t *testing.T) {
	seeds := uint64(4)
	if os.Getenv("NFSBOX_SOAK") != "" {
		seeds = 200
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { chaos(t, seed) })
	}
}

func chaos(t *testing.T, seed uint64) {
	const files = 5
	rnd := rand.New(rand.NewPCG(seed, 9))
	o := small
	o.Size = 24 * granule
	o.NoChecksum = seed%4 == 3 // then what is damaged is read: nothing is damaged here
	r := newRig(t, memfs.Options{}, o)
	now := make([][]byte, files)
	name := func(n int) string { return fmt.Sprintf("f%d", n) }
	change := func(n int) {
		now[n] = content(rnd.Uint64(), 1+rnd.IntN(4)*granule*2/3)
		r.put(name(n), now[n])
	}
	for n := range files {
		change(n)
	}
	before := ""
	for range 60 {
		n := rnd.IntN(files)
		switch rnd.IntN(9) {
		case 0, 1:
			change(n)
		case 2:
			r.restart()
		case 3:
			r.stop()
			if !o.NoChecksum {
				damage(t, rnd, entriesIn(t, r.dir))
			}
			r.start()
		case 4:
			before = t.TempDir()
			copyDir(t, r.dir, before)
		case 5:
			if before != "" {
				r.stop()
				r.ok(os.RemoveAll(r.dir))
				copyDir(t, before, r.dir)
				r.start()
			}
		default:
			r.want(name(n), now[n], 1+rnd.IntN(2*granule))
		}
	}
	for n := range files {
		r.want(name(n), now[n], granule)
	}
	if s := r.fs.Stats(); s.State != "on" || s.Bytes > o.Size {
		t.Errorf("%+v", s)
	}
}

// entriesIn are the files of all entries.
func entriesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(store.Path(dir, ""), "data", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// damage flips bits of an entry's file, cuts it, or exchanges it with another.
func damage(t *testing.T, rnd *rand.Rand, names []string) {
	t.Helper()
	if len(names) == 0 {
		return
	}
	name, other := names[rnd.IntN(len(names))], names[rnd.IntN(len(names))]
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	switch rnd.IntN(3) {
	case 0:
		for range 1 + rnd.IntN(4) {
			b[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8)
		}
	case 1:
		b = b[:rnd.IntN(len(b))]
	case 2:
		o, err := os.ReadFile(other)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(other, b, 0o600); err != nil {
			t.Fatal(err)
		}
		b = o
	}
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// copyDir copies a directory that may be in use: what goes meanwhile is left out.
func copyDir(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		dest := to + strings.TrimPrefix(name, from)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case d.IsDir():
			if err := os.MkdirAll(dest, 0o700); err != nil {
				return err
			}
			return chmod(dest)
		}
		b, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return errors.Join(err, os.WriteFile(dest, b, 0o600))
	})
	if err != nil {
		t.Fatal(err)
	}
}
