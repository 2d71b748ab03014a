//go:build linux

package localfs

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// fortress is a tree that is served and one beside it that nobody may touch.
type fortress struct {
	dir, outside string
	before       string
}

func newFortress(t *testing.T) *fortress {
	t.Helper()
	base := inMemory(t)
	w := &fortress{dir: filepath.Join(base, "export"), outside: filepath.Join(base, "outside")}
	for _, d := range []string{"export/a/b", "export/park", "outside/a/b"} {
		if err := os.MkdirAll(filepath.Join(base, d), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(base, d, "file"), []byte(d), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"export/link": w.outside, "export/up": "..", "export/tofile": filepath.Join(w.outside, "a/b/file")} {
		if err := os.Symlink(target, filepath.Join(base, link)); err != nil {
			t.Fatal(err)
		}
	}
	w.before = w.look(t)
	return w
}

// look tells all about the outside.
func (w *fortress) look(t *testing.T) string {
	t.Helper()
	s := state(t, w.outside)
	for _, f := range []string{"a/b/file"} {
		b, err := os.ReadFile(filepath.Join(w.outside, f))
		if err != nil {
			t.Fatal(err)
		}
		var st unix.Stat_t
		if err := unix.Stat(filepath.Join(w.outside, f), &st); err != nil {
			t.Fatal(err)
		}
		s += fmt.Sprintf("%s: %s, %v", f, b, st.Mtim)
	}
	return s
}

// swaps are what a local program does, again and again, while others use the FS.
var swaps = map[string]func(dir string, i int) error{
	// A directory and a link that leads out take each other's names.
	"directory for link": func(dir string, _ int) error {
		return unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, "a"), unix.AT_FDCWD, filepath.Join(dir, "link"), unix.RENAME_EXCHANGE)
	},
	"file for link": func(dir string, _ int) error {
		return unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, "a/b/file"), unix.AT_FDCWD, filepath.Join(dir, "tofile"), unix.RENAME_EXCHANGE)
	},
	"directory moves down and up": func(dir string, i int) error {
		from, to := "a", "park/a"
		if i%2 == 1 {
			from, to = to, from
		}
		return os.Rename(filepath.Join(dir, from), filepath.Join(dir, to))
	},
	"directory moves out and in": func(dir string, i int) error {
		from, to := "a", "../outside/moved"
		if i%2 == 1 {
			from, to = to, from
		}
		return os.Rename(filepath.Join(dir, from), filepath.Join(dir, to))
	},
}

// TestSwaps lets a local program exchange names while the FS is used in all ways
// that there are, by path and by handles that were looked up before.
func TestSwaps(t *testing.T) {
	bothModes(t, func(t *testing.T, o Options) {
		for name, swap := range swaps {
			t.Run(name, func(t *testing.T) {
				w := newFortress(t)
				o := o.anew(t)
				o.MaxOpen = 16 // few are kept: what is used is opened anew
				f := open(t, w.dir, o)
				var over atomic.Bool
				var swapper, workers sync.WaitGroup
				swapper.Go(func() {
					for i := 0; !over.Load() || i%2 == 1; i++ {
						if err := swap(w.dir, i); err != nil {
							t.Error(err)
							return
						}
					}
				})
				for worker := range 2 {
					workers.Go(func() { attack(t, f, worker) })
				}
				workers.Wait()
				over.Store(true)
				swapper.Wait()
				if after := w.look(t); after != w.before {
					t.Errorf("outside was\n%s\nand is\n%s", w.before, after)
				}
			})
		}
	})
}

// attack uses what it can get hold of in every way. Anything may fail; what may
// not happen, the caller sees.
func attack(t *testing.T, f *FS, worker int) {
	ctx := t.Context()
	rnd := rand.New(rand.NewPCG(1, uint64(worker)))
	known := []vfs.Handle{f.root}
	names := []string{"a", "b", "file", "link", "up", "tofile", "park", "..", "outside", "new"}
	for range rounds {
		x := known[rnd.IntN(len(known))]
		name := names[rnd.IntN(len(names))]
		if y, a, _, err := f.Lookup(ctx, x, name); err == nil && len(known) < 64 {
			if name == "outside" {
				t.Errorf("the outside was found: %+v", a)
			}
			known = append(known, y)
		}
		_, _, _, _ = f.Create(ctx, x, "new", &vfs.CreateHow{Type: vfs.Type(1 + rnd.IntN(2))})
		_, _ = f.SetAttr(ctx, x, &vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: time.Unix(1, 0)}, nil)
		if x != f.root {
			_ = f.SetACL(ctx, x, vfs.ACL{Access: []vfs.ACLEntry{{Tag: vfs.ACLUserObj, Perm: 7}, {Tag: vfs.ACLGroupObj, Perm: 7}, {Tag: vfs.ACLOther, Perm: 7}}})
		}
		writeSome(ctx, f, x)
		_, _, _ = f.Link(ctx, x, known[rnd.IntN(len(known))], "linked")
		_, _, _ = f.Rename(ctx, x, "new", known[rnd.IntN(len(known))], "renamed")
		for _, n := range []string{"new", "linked", "renamed"} {
			_, _ = f.Remove(ctx, x, n, rnd.IntN(2) == 0)
		}
		for e, err := range f.ReadDir(ctx, x, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
			if err != nil {
				break
			}
			if string(e.Name) == "outside" {
				t.Error("the outside is listed")
			}
		}
	}
}

// writeSome overwrites and truncates x, if it is a file.
func writeSome(ctx context.Context, f *FS, x vfs.Handle) {
	file, _, err := f.Open(ctx, vfs.At{H: x}, &vfs.OpenHow{Access: vfs.ShareWrite})
	if err != nil {
		return
	}
	_, _ = file.WriteAt(ctx, []byte("attack"), 0, vfs.Unstable, new(vfs.Written))
	_, _ = file.Truncate(ctx, 3)
	_ = file.Close(ctx)
}

// TestLinksAreNotFollowed uses links that lead out for everything that takes a
// handle.
func TestLinksAreNotFollowed(t *testing.T) {
	bothModes(t, func(t *testing.T, o Options) {
		w := newFortress(t)
		f := open(t, w.dir, o)
		for _, name := range []string{"link", "up", "tofile"} {
			x, a, _, err := f.Lookup(t.Context(), f.root, name)
			if err != nil || a.Type != vfs.TypeSymlink {
				t.Fatalf("%s: %v, %v", name, a.Type, err)
			}
			for what, err := range map[string]error{
				"lookup": func() error { _, _, _, err := f.Lookup(t.Context(), x, "a"); return err }(),
				"create": func() error {
					_, _, _, err := f.Create(t.Context(), x, "new", &vfs.CreateHow{Type: vfs.TypeReg})
					return err
				}(),
				"remove":  func() error { _, err := f.Remove(t.Context(), x, "a", true); return err }(),
				"rename":  func() error { _, _, err := f.Rename(t.Context(), f.root, "park", x, "park"); return err }(),
				"size":    func() error { _, err := f.SetAttr(t.Context(), x, &vfs.SetAttr{Valid: vfs.MaskSize}, nil); return err }(),
				"mode":    chmod(t, f, x, 0o777),
				"open":    func() error { _, err := readAll(t.Context(), f, x); return err }(),
				"acl":     f.SetACL(t.Context(), x, vfs.ACL{Access: []vfs.ACLEntry{{Tag: 1, Perm: 7}, {Tag: 4, Perm: 7}, {Tag: 32, Perm: 7}}}),
				"lock":    f.Lock(t.Context(), x, &vfs.Lock{}),
				"listing": listErr(t.Context(), f, x),
			} {
				if err == nil {
					t.Errorf("%s of %s goes well", what, name)
				}
			}
			// These are the link's own, and go well.
			_, err = f.SetAttr(t.Context(), x, &vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: time.Unix(1, 0)}, nil)
			if err != nil {
				t.Error(err)
			}
			if _, _, err := f.Link(t.Context(), x, f.root, name+"2"); err != nil {
				t.Error(err)
			}
		}
		if after := w.look(t); after != w.before {
			t.Errorf("outside was\n%s\nand is\n%s", w.before, after)
		}
	})
}

func listErr(ctx context.Context, f *FS, x vfs.Handle) error {
	for _, err := range f.ReadDir(ctx, x, vfs.Pos{}, 0, 0) {
		return err
	}
	return nil
}

// TestDeepBelowWhatLeft moves a directory out of the tree: what lay deep below it
// is stale too, also where a descriptor is kept and where a listing is under way.
func TestDeepBelowWhatLeft(t *testing.T) {
	bothModes(t, func(t *testing.T, o Options) {
		w := newFortress(t)
		f := open(t, w.dir, o.anew(t))
		below := []vfs.Handle{f.root}
		const depth = 2 * maxUps
		for range depth {
			below = append(below, mkdir(t, f, below[len(below)-1], "d"))
		}
		for i := range 300 {
			mkfile(t, f, below[depth], fmt.Sprint("file", i), "")
		}
		for _, x := range below {
			if _, err := f.GetAttr(t.Context(), x, vfs.MaskV3); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Rename(filepath.Join(w.dir, "d", "d"), filepath.Join(w.outside, "d")); err != nil {
			t.Fatal(err)
		}
		for i, x := range below[2:] {
			_, err := f.GetAttr(t.Context(), x, vfs.MaskV3)
			if !errors.Is(err, vfs.ErrStale) {
				t.Fatalf("depth %d: %v", i+2, err)
			}
			for _, name := range []string{"d", "..", "file1"} {
				_, _, _, err := f.Lookup(t.Context(), x, name)
				wantErr(t, err, vfs.ErrStale)
			}
			wantErr(t, listErr(t.Context(), f, x), vfs.ErrStale)
			_, err = f.Remove(t.Context(), x, "d", true)
			wantErr(t, err, vfs.ErrStale)
			_, _, err = f.Rename(t.Context(), x, "d", f.root, "back")
			wantErr(t, err, vfs.ErrStale)
		}
		if err := os.Rename(filepath.Join(w.outside, "d"), filepath.Join(w.dir, "back")); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := f.Lookup(t.Context(), f.root, "back"); err != nil {
			t.Error(err)
		}
		if o.Handles == HandlesKernel {
			_, err := f.GetAttr(t.Context(), below[depth], vfs.MaskV3)
			if err != nil {
				t.Errorf("back again: %v", err)
			}
		}
	})
}

// TestLinkedFromOutside has a file that is inside and outside: it is served, and
// what happens to its other name changes nothing.
func TestLinkedFromOutside(t *testing.T) {
	bothModes(t, func(t *testing.T, o Options) {
		w := newFortress(t)
		if err := os.Link(filepath.Join(w.outside, "a/b/file"), filepath.Join(w.dir, "shared")); err != nil {
			t.Fatal(err)
		}
		f := open(t, w.dir, o)
		x, a, _, err := f.Lookup(t.Context(), f.root, "shared")
		if err != nil || a.Nlink != 2 {
			t.Fatalf("%+v, %v", a, err)
		}
		if got := content(t, f, x); got != "outside/a/b" {
			t.Errorf("content %q", got)
		}
		if err := os.Remove(filepath.Join(w.outside, "a/b/file")); err != nil {
			t.Fatal(err)
		}
		if got := content(t, f, x); got != "outside/a/b" {
			t.Errorf("content %q", got)
		}
		if _, err := f.Remove(t.Context(), f.root, "shared", false); err != nil {
			t.Fatal(err)
		}
		_, err = f.GetAttr(t.Context(), x, vfs.MaskV3)
		wantErr(t, err, vfs.ErrStale)
	})
}

// TestForeignDirectories makes the kernel's handles of directories outside, as no
// client could without the seal, and of such that are none.
func TestForeignDirectories(t *testing.T) {
	needRoot(t)
	w := newFortress(t)
	f, err := New(w.dir, Options{Handles: HandlesKernel})
	if err != nil {
		need.Missing(t, "root", err.Error())
	}
	t.Cleanup(func() { closeFS(t, f) })
	for _, p := range []string{w.outside, filepath.Join(w.outside, "a/b"), filepath.Dir(w.dir)} {
		fd := must[int](t)(linux.OpenPath(unix.AT_FDCWD, p, 0))
		var r linux.RawHandle
		_, err := r.NameToHandle(fd, &linux.EmptyName[0], unix.AT_EMPTY_PATH)
		if err := linux.Close(fd, err); err != nil {
			t.Fatal(err)
		}
		x := must[vfs.Handle](t)(packHandle(&r, 0))
		_, err = f.GetAttr(t.Context(), x, vfs.MaskV3)
		wantErr(t, err, vfs.ErrStale)
		for _, name := range []string{"a", "file", ".."} {
			_, _, _, err = f.Lookup(t.Context(), x, name)
			wantErr(t, err, vfs.ErrStale)
		}
		_, _, _, err = f.Create(t.Context(), x, "new", &vfs.CreateHow{Type: vfs.TypeDir})
		wantErr(t, err, vfs.ErrStale)
		wantErr(t, listErr(t.Context(), f, x), vfs.ErrStale)
		crossed := must[vfs.Handle](t)(packHandle(&r, 12345))
		_, err = f.GetAttr(t.Context(), crossed, vfs.MaskV3)
		wantErr(t, err, vfs.ErrStale)
	}
	if after := w.look(t); after != w.before {
		t.Errorf("outside was\n%s\nand is\n%s", w.before, after)
	}
}

// TestHandleStatuses tells handles that were never ours from those whose object
// is gone.
func TestHandleStatuses(t *testing.T) {
	bothModes(t, func(t *testing.T, o Options) {
		f := open(t, t.TempDir(), o)
		good := mkdir(t, f, f.root, "d")
		b := good.Bytes()
		with := func(i int, v byte) []byte { c := slices.Clone(b); c[i] = v; return c }
		cases := map[string]struct {
			b    []byte
			want vfs.Status
		}{
			"no version":    {with(0, 0), vfs.ErrBadHandle},
			"other version": {with(0, 3), vfs.ErrBadHandle},
			"only version":  {b[:1], vfs.ErrBadHandle},
			"too long":      {append(slices.Clone(b), make([]byte, 60)...), vfs.ErrBadHandle},
		}
		if o.Handles == HandlesKernel {
			cases["file system"] = struct {
				b    []byte
				want vfs.Status
			}{with(1, 2), vfs.ErrBadHandle}
			cases["key of nothing"] = struct {
				b    []byte
				want vfs.Status
			}{slices.Concat([]byte{handleKernel, 1}, make([]byte, 8), b[2:]), vfs.ErrBadHandle}
			cases["another generation"] = struct {
				b    []byte
				want vfs.Status
			}{with(len(b)-1, b[len(b)-1]^0x55), vfs.ErrStale}
		} else {
			cases["another map"] = struct {
				b    []byte
				want vfs.Status
			}{with(4, b[4]^1), vfs.ErrStale}
			cases["another serial"] = struct {
				b    []byte
				want vfs.Status
			}{with(len(b)-1, b[len(b)-1]^1), vfs.ErrStale}
			cases["a slot far away"] = struct {
				b    []byte
				want vfs.Status
			}{binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(bytes.Clone(b[:9]), 1<<31), 1), vfs.ErrStale}
		}
		for name, tc := range cases {
			x := must[vfs.Handle](t)(vfs.MakeHandle(tc.b))
			_, err := f.GetAttr(t.Context(), x, vfs.MaskV3)
			if got, _ := vfs.StatusOf(err); got != tc.want {
				t.Errorf("%s: %v, want %v", name, err, tc.want.Name())
			}
		}
	})
}

// TestACLIsSeenAtOnce changes the list of a file between two reads, as fast as it
// goes: no read is judged by the list before.
func TestACLIsSeenAtOnce(t *testing.T) {
	needRoot(t)
	f := open(t, t.TempDir(), mapOptions(t))
	x := mkfile(t, f, f.root, "x", "secret")
	b := f.As(bob())
	base := []vfs.ACLEntry{{Tag: vfs.ACLUserObj, Perm: 6}, {Tag: vfs.ACLGroupObj, Perm: 4}, {Tag: vfs.ACLOther, Perm: 0}}
	for i := range 200 {
		perm := uint32(i%2) * 4
		acl := vfs.ACL{Access: append(slices.Clone(base), vfs.ACLEntry{Tag: vfs.ACLUser, ID: bob().UID, Perm: perm})}
		if i%3 == 0 {
			acl.Access, perm = base, 0
		}
		if err := f.SetACL(t.Context(), x, acl); errors.Is(err, vfs.ErrNotSupp) {
			t.Skip(err)
		} else if err != nil {
			t.Fatal(err)
		}
		_, err := readAll(t.Context(), b, x)
		if (err == nil) != (perm != 0) {
			t.Fatalf("round %d: with the rights %o bob gets %v", i, perm, err)
		}
	}
}
