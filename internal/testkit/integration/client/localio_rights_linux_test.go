package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// The owners of the files of the matrix.
const ownerID, groupID = 1000, 1001

// matrixCallers ask for them.
var matrixCallers = []struct {
	name string
	vfs.Caller
}{
	{"root", vfs.Caller{}},
	{"owner", vfs.Caller{UID: ownerID, GID: groupID}},
	{"group", vfs.Caller{UID: 2000, GID: groupID}},
	{"another group", vfs.Caller{UID: 2000, GID: 2000, Groups: []uint32{7, groupID}}},
	{"other", vfs.Caller{UID: 3000, GID: 3000}},
}

// matrixModes are those of the files.
var matrixModes = []uint32{0, 0o400, 0o600, 0o640, 0o620, 0o604, 0o666, 0o711, 0o4755, 0o2777}

// matrixUses are what is done with a file. Each returns what has come of it, in words.
var matrixUses = []struct {
	name string
	do   func(ctx context.Context, fs vfs.FS, at vfs.At) string
}{
	{"open", func(ctx context.Context, fs vfs.FS, at vfs.At) string {
		return using(ctx, fs, at, vfs.ShareRead|vfs.ShareWrite, false, func(vfs.File) string { return "" })
	}},
	{"read", func(ctx context.Context, fs vfs.FS, at vfs.At) string {
		return using(ctx, fs, at, vfs.ShareRead, false, func(f vfs.File) string { return readAll(ctx, f) })
	}},
	{"write", func(ctx context.Context, fs vfs.FS, at vfs.At) string {
		return using(ctx, fs, at, vfs.ShareWrite, false, func(f vfs.File) string {
			return writeSome(ctx, f, vfs.FileSync) + writeSome(ctx, f, vfs.Unstable) + fmt.Sprint(status(f.Commit(ctx, 0, 0, new(vfs.Written))))
		})
	}},
	{"read and write", func(ctx context.Context, fs vfs.FS, at vfs.At) string {
		return using(ctx, fs, at, vfs.ShareRead|vfs.ShareWrite, false, func(f vfs.File) string {
			return writeSome(ctx, f, vfs.Unstable) + readAll(ctx, f)
		})
	}},
	{"truncate by open", func(ctx context.Context, fs vfs.FS, at vfs.At) string {
		return using(ctx, fs, at, vfs.ShareWrite, true, func(f vfs.File) string { return writeSome(ctx, f, vfs.DataSync) })
	}},
	{"truncate", func(ctx context.Context, fs vfs.FS, at vfs.At) string {
		return using(ctx, fs, at, vfs.ShareRead, false, func(f vfs.File) string {
			before := readAll(ctx, f)
			h, _, _, err := fs.Lookup(ctx, at.Dir, at.Name)
			if err == nil {
				_, err = fs.SetAttr(ctx, h, &vfs.SetAttr{Valid: vfs.MaskSize, Size: 3}, nil)
			}
			return fmt.Sprint(before, status(err), readAll(ctx, f))
		})
	}},
}

// using opens a file, uses it and closes it.
func using(ctx context.Context, fs vfs.FS, at vfs.At, access vfs.Share, trunc bool, use func(vfs.File) string) string {
	f, _, err := fs.Open(ctx, at, &vfs.OpenHow{Access: access, Trunc: trunc})
	if err != nil {
		return fmt.Sprintf("open: %v", status(err))
	}
	did := use(f)
	return fmt.Sprintf("%s; close: %v", did, status(f.Close(ctx)))
}

func readAll(ctx context.Context, f vfs.File) string {
	var a vfs.Attr
	p := make([]byte, 100)
	n, eof, err := f.ReadAt(ctx, p, 0, &a)
	return fmt.Sprintf("read %q, eof %t, size %d, mode %o, %v; ", p[:n], eof, a.Size, a.Mode, status(err))
}

func writeSome(ctx context.Context, f vfs.File, how vfs.Stability) string {
	var w vfs.Written
	n, err := f.WriteAt(ctx, []byte("written"), 2, how, &w)
	said := ""
	if err == nil {
		said = fmt.Sprintf(", committed %d, size %d", min(w.Committed, how), w.WCC.After.Size)
	}
	return fmt.Sprintf("wrote %d%s, %v; ", n, said, status(err))
}

// TestLocalIOMatrix does the same to files of every mode, as everybody and by every
// rule, past the network and over it: with the same outcome, to the error, the bytes
// on the disk and the set-uid bits.
func TestLocalIOMatrix(t *testing.T) {
	need.Root(t, "the callers are others than this process")
	for _, squash := range []export.Squash{export.SquashNone, export.SquashRoot, export.SquashAll} {
		for _, ro := range []bool{false, true} {
			t.Run(fmt.Sprintf("squash %v, read-only %t", squash, ro), func(t *testing.T) {
				t.Parallel() // it waits for the disk
				n := newNeighbour(t, localfs.HandlesKernel, export.Rule{Squash: squash, ReadOnly: ro})
				local := n.local(t)
				var ways [2]vfs.FS
				for i, c := range []*nfsbox.Client{local, n.dial(nfsbox.WithLocalIO(nfsbox.LocalIOOff))} {
					fs, ok := c.FS().(vfs.Unwrapper).Unwrap().(vfs.FS) // below what buffers
					if !ok {
						t.Fatal("nothing is below the buffers")
					}
					ways[i] = fs
				}
				tryMatrix(t, n, ways)
				s := local.Stats().LocalIO
				// Root has the descriptors: where it is squashed, it gets none to write by.
				writes := squash == export.SquashNone && !ro
				if s.Reads == 0 || (s.Writes > 0) != writes || (s.Commits > 0) != writes {
					t.Errorf("%+v; want that it reads, and writes: %t", s, writes)
				}
			})
		}
	}
}

// tryMatrix tries all callers, modes and uses both ways, each with a file of its own.
func tryMatrix(t *testing.T, n *neighbour, ways [2]vfs.FS) {
	root := rootOf(t, ways[0])
	for _, who := range matrixCallers {
		for _, mode := range matrixModes {
			for i, use := range matrixUses {
				var got [2]string
				for w, fs := range ways {
					name := fmt.Sprint(who.name, mode, i, w)
					path := filepath.Join(n.tree, name)
					n.onDisk(name, []byte("0123456789"))
					if err := errors.Join(os.Chown(path, ownerID, groupID), unix.Chmod(path, mode)); err != nil {
						t.Fatal(err)
					}
					got[w] = use.do(t.Context(), fs.As(&who.Caller), vfs.At{Dir: root, Name: name})
					var st unix.Stat_t
					data, err := os.ReadFile(path)
					if err = errors.Join(err, unix.Stat(path, &st), os.Remove(path)); err != nil {
						t.Fatal(err)
					}
					got[w] += fmt.Sprintf("; on the disk: %q, mode %o", data, st.Mode)
				}
				if got[0] != got[1] {
					t.Errorf("%s, mode %04o, %s:\nlocal  %s\nremote %s", who.name, mode, use.name, got[0], got[1])
				}
			}
		}
	}
}

// TestLocalIOSeen has each of two clients, one past the network and one over it, see
// at once what the other does to a file.
func TestLocalIOSeen(t *testing.T) {
	n := newNeighbour(t, localfs.HandlesMap, export.Rule{})
	n.onDisk("file", []byte("0123456789"))
	c := n.local(t)
	root := rootOf(t, c.FS())
	var files [2]vfs.File
	var h vfs.Handle
	for i, c := range []*nfsbox.Client{c, n.dial(nfsbox.WithLocalIO(nfsbox.LocalIOOff))} {
		fs := c.FS().(vfs.Unwrapper).Unwrap().(vfs.FS)
		f, opened, err := fs.Open(t.Context(), vfs.At{Dir: root, Name: "file"}, &vfs.OpenHow{Access: vfs.ShareRead | vfs.ShareWrite})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := f.Close(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
		files[i], h = f, opened.H
	}
	local, remote := files[0], files[1]
	ctx, over := t.Context(), n.dial().FS()
	wrote := func(f vfs.File, p string, off uint64) vfs.Attr {
		t.Helper()
		var w vfs.Written
		if k, err := f.WriteAt(ctx, []byte(p), off, vfs.Unstable, &w); err != nil || k != len(p) {
			t.Fatalf("wrote %d, %v", k, err)
		}
		return w.WCC.After
	}
	both := func(want string) {
		t.Helper()
		for i, f := range files {
			var a vfs.Attr
			p := make([]byte, 100)
			k, eof, err := f.ReadAt(ctx, p, 0, &a)
			if string(p[:k]) != want || !eof || err != nil || a.Size != uint64(len(want)) {
				t.Errorf("file %d: %q, eof %t, size %d, %v; want %q", i, p[:k], eof, a.Size, err, want)
			}
		}
	}
	told := wrote(local, "abc", 10)
	both("0123456789abc")
	if a, err := over.GetAttr(ctx, h, vfs.MaskV3); err != nil || a.Size != 13 || !a.Mtime.Equal(told.Mtime) || !a.Ctime.Equal(told.Ctime) || a.FileID != told.FileID || a.FSID != told.FSID {
		t.Errorf("%+v, %v; told of %+v", a, err, told)
	}
	var w vfs.Written
	if _, err := remote.WriteAt(ctx, []byte("d"), 13, vfs.FileSync, &w); err != nil || w.WCC.Before.Valid != 0 {
		t.Errorf("%v; somebody else may write, so of before nothing can be told: %+v", err, w.WCC.Before)
	}
	both("0123456789abcd")
	if _, err := over.SetAttr(ctx, h, &vfs.SetAttr{Valid: vfs.MaskSize, Size: 2}, nil); err != nil {
		t.Fatal(err)
	}
	both("01")
	wrote(local, "x", 4)
	both("01\x00\x00x")
	for _, off := range []uint64{5, 6, 1 << 62, math.MaxInt64 - 1, math.MaxInt64, 1 << 63, math.MaxUint64 - 1, math.MaxUint64} {
		var read, write [2]string
		for i, f := range files {
			k, eof, err := f.ReadAt(ctx, make([]byte, 4), off, nil)
			read[i] = fmt.Sprint(k, eof, status(err))
			if off > 6 {
				k, err := f.WriteAt(ctx, []byte("far away"), off, vfs.Unstable, new(vfs.Written))
				write[i] = fmt.Sprint(k, status(err))
				if err == nil && off > math.MaxInt64-8 {
					t.Errorf("file %d: %d bytes are written beyond the end of all files", i, k)
				}
				if _, err := over.SetAttr(ctx, h, &vfs.SetAttr{Valid: vfs.MaskSize, Size: 5}, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		if read[0] != read[1] || write[0] != write[1] {
			t.Errorf("at %d: read %q, write %q", off, read, write)
		}
	}
	if s := c.Stats().LocalIO; s.Reads == 0 || s.Writes == 0 || s.Revoked != 0 {
		t.Errorf("%+v", s)
	}
}
