//go:build linux

package posixsuite

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/expect"
)

// Twin does count operations by chance in a mounted directory, and in one of this host: each has the same result, and in
// the end the trees are the same. Both are empty. NFSBOX_SEED repeats a run.
func Twin(t *testing.T, mounted, local string, count int) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("NFSBOX_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		expect.OK(t, err)
		seed = n
	}
	t.Logf("NFSBOX_SEED=%d", seed)
	w := &twins{t: t, r: rand.New(rand.NewPCG(seed, 0)), dirs: [2]string{mounted, local}}
	t.Cleanup(w.shutAll)
	for n := range count {
		what, results := w.step()
		if results[0] != results[1] {
			t.Fatalf("step %d: %s: on the mount %s, in the directory %s", n, what, results[0], results[1])
		}
		if n%(count/4+1) == 0 {
			w.compare()
		}
	}
	w.compare()
}

// twins are the mount, and the directory that is to be like it.
type twins struct {
	t    *testing.T
	r    *rand.Rand
	dirs [2]string
	open [4][2]*os.File // the same file on both sides
}

const (
	twinNames = 5 // in each directory
	twinSize  = 200_000
)

// name is a path by chance, at most three deep.
func (w *twins) name() string {
	path := ""
	for range 1 + w.r.IntN(3) {
		path = filepath.Join(path, string(rune('a'+w.r.IntN(twinNames))))
	}
	return path
}

// both does something on both sides: first in the directory. A directory of the mount may have a hidden name for as long
// as the kernel has not told of the last close of what was removed.
func (w *twins) both(do func(side int, dir string) (string, error)) (results [2]string) {
	for _, side := range []int{1, 0} {
		for end := time.Now().Add(bound); ; time.Sleep(time.Millisecond) {
			text, err := do(side, w.dirs[side])
			results[side] = text + " " + told(err)
			if side == 1 || !errors.Is(err, syscall.ENOTEMPTY) || results[0] == results[1] || time.Now().After(end) {
				break
			}
		}
	}
	return results
}

// shutAll closes all files: what is open and removed has a hidden name, which keeps its directory.
func (w *twins) shutAll() {
	for i := range w.open {
		w.shut(i)
	}
}

// told is an error as a program sees it.
func told(err error) string {
	if err == nil {
		return "ok"
	}
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		return e.Error()
	}
	return err.Error()
}

// step is one operation.
func (w *twins) step() (what string, results [2]string) {
	a, b := w.name(), w.name()
	i, off, size := w.r.IntN(len(w.open)), w.r.Int64N(twinSize), 1+w.r.IntN(20_000)
	p := bytes.Repeat([]byte{byte(w.r.IntN(256))}, size)
	switch k := w.r.IntN(100); {
	case k < 12:
		flags := [...]int{os.O_RDWR, os.O_RDWR | os.O_CREATE, os.O_RDWR | os.O_CREATE | os.O_EXCL, os.O_RDWR | os.O_CREATE | os.O_TRUNC}[w.r.IntN(4)]
		w.shut(i)
		return fmt.Sprintf("open %s %x", a, flags), w.both(func(side int, dir string) (string, error) {
			f, err := os.OpenFile(filepath.Join(dir, a), flags, 0o666)
			if err == nil {
				w.open[i][side] = f
			}
			return "", err
		})
	case k < 32:
		return w.file(fmt.Sprintf("write %d at %d", size, off), i, func(f *os.File) (string, error) {
			n, err := f.WriteAt(p, off)
			return fmt.Sprint(n), err
		})
	case k < 50:
		return w.file(fmt.Sprintf("read %d at %d", size, off), i, func(f *os.File) (string, error) {
			got := make([]byte, size)
			n, err := f.ReadAt(got, off)
			return fmt.Sprintf("%d %x", n, sum(got[:n])), err
		})
	case k < 55:
		return w.file(fmt.Sprintf("truncate to %d", off), i, func(f *os.File) (string, error) { return "", f.Truncate(off) })
	case k < 58:
		return w.file("fsync", i, func(f *os.File) (string, error) { return "", f.Sync() })
	case k < 62:
		return w.file("stat of what is open", i, func(f *os.File) (string, error) {
			st, err := f.Stat()
			if err != nil {
				return "", err
			}
			return fmt.Sprint(st.Mode(), st.Size()), nil // what was removed has a hidden name, and so a link
		})
	case k < 68:
		return "mkdir " + a, w.both(func(_ int, dir string) (string, error) { return "", os.Mkdir(filepath.Join(dir, a), 0o777) })
	case k < 76:
		return "remove " + a, w.both(func(_ int, dir string) (string, error) {
			err := syscall.Unlink(filepath.Join(dir, a))
			if errors.Is(err, syscall.EPERM) { // which POSIX has for directories, too
				err = syscall.EISDIR
			}
			return "", err
		})
	case k < 77 && w.r.IntN(2) == 0:
		w.shutAll()
		// Else renames pile up trees that are hundreds of directories deep, and a comparison looks up each name of each path.
		return "rm -r " + a, w.both(func(_ int, dir string) (string, error) { return "", os.RemoveAll(filepath.Join(dir, a)) })
	case k < 79:
		w.shutAll()
		return "rmdir " + a, w.both(func(_ int, dir string) (string, error) { return "", syscall.Rmdir(filepath.Join(dir, a)) })
	case k < 86:
		w.shutAll()
		return "rename " + a + " " + b, w.rename(a, b)
	case k < 89:
		return "link " + a + " " + b, w.both(func(_ int, dir string) (string, error) {
			return "", syscall.Link(filepath.Join(dir, a), filepath.Join(dir, b))
		})
	case k < 91:
		return "symlink " + a, w.both(func(_ int, dir string) (string, error) { return "", syscall.Symlink("../"+b, filepath.Join(dir, a)) })
	case k < 94:
		return "chmod " + a, w.both(func(_ int, dir string) (string, error) {
			return "", os.Chmod(filepath.Join(dir, a), fs.FileMode(off)&0o77|0o700)
		})
	}
	return "stat " + a, w.both(func(_ int, dir string) (string, error) {
		st, err := os.Lstat(filepath.Join(dir, a))
		return look(st), err
	})
}

// rename leaves out what servers and disks judge in another order, though both refuse it.
func (w *twins) rename(a, b string) [2]string {
	return w.both(func(_ int, dir string) (string, error) {
		err := syscall.Rename(filepath.Join(dir, a), filepath.Join(dir, b))
		if err != nil && !errors.Is(err, syscall.ENOTEMPTY) {
			return "refused", nil
		}
		return "", err
	})
}

// file does something with an open file, if it is open.
func (w *twins) file(what string, i int, do func(*os.File) (string, error)) (string, [2]string) {
	return what, w.both(func(side int, _ string) (string, error) {
		if w.open[i][side] == nil {
			return "", nil
		}
		return do(w.open[i][side])
	})
}

// shut closes a file on both sides.
func (w *twins) shut(i int) {
	for side, f := range w.open[i] {
		if f != nil {
			expect.OK(w.t, f.Close())
		}
		w.open[i][side] = nil
	}
}

func sum(p []byte) (n uint32) {
	for _, c := range p {
		n = n*31 + uint32(c)
	}
	return n
}

// look is what is compared of an object.
func look(st os.FileInfo) string {
	if st == nil {
		return ""
	}
	sys := st.Sys().(*syscall.Stat_t)
	if st.IsDir() {
		return st.Mode().String()
	}
	return fmt.Sprint(st.Mode(), st.Size(), sys.Nlink)
}

// compare compares the whole trees.
func (w *twins) compare() {
	w.t.Helper()
	trees := w.both(func(_ int, dir string) (string, error) {
		var b bytes.Buffer
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			st, err := d.Info()
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(dir, path)
			if strings.HasPrefix(d.Name(), ".nfs") { // a hidden name, of what is open and removed
				return err
			}
			if rel != "." {
				fmt.Fprintln(&b, rel, look(st))
			}
			if !d.Type().IsRegular() {
				return err
			}
			p, err2 := os.ReadFile(path)
			fmt.Fprintln(&b, sum(p))
			return errors.Join(err, err2)
		})
		if err != nil {
			w.t.Logf("the walk of %s: %v", dir, err)
		}
		return b.String(), err
	})
	a, b := strings.Split(trees[0], "\n"), strings.Split(trees[1], "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			w.t.Fatalf("line %d of the trees, of %d and %d: on the mount %q, in the directory %q", i, len(a), len(b), a[i], b[i])
		}
	}
	if len(a) != len(b) {
		w.t.Fatalf("the trees have %d and %d lines", len(a), len(b))
	}
}
