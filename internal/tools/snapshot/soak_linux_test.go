package snapshot_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/server/object/dir"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/internal/tools/backup"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/vfs"
)

// drawn is a tree of files that is in no memory: what it has follows from numbers. Its root has
// directories of dirFiles files each.
type drawn struct {
	vfs.ReadOnly
	files, size int
}

const dirFiles = 1000

// drawnAt is when all of it was changed last.
var drawnAt = time.Unix(1_700_000_000, 0)

func (f *drawn) As(*vfs.Caller) vfs.FS { return f }

// handle is that of the root (0), a directory (1 and more) or a file (below 0, from -1 on).
func (*drawn) handle(n int64) vfs.Handle {
	h, _ := vfs.MakeHandle(binary.BigEndian.AppendUint64(nil, uint64(n))) // 8 bytes fit
	return h
}

func (f *drawn) dirs() int { return (f.files + dirFiles - 1) / dirFiles }

func (f *drawn) number(h vfs.Handle) (int64, error) {
	if h.Len() != 8 {
		return 0, vfs.ErrBadHandle
	}
	n := int64(binary.BigEndian.Uint64(h.Bytes()))
	if n > int64(f.dirs()) || -n > int64(f.files) {
		return 0, vfs.ErrBadHandle
	}
	return n, nil
}

func (f *drawn) attr(n int64) vfs.Attr {
	a := vfs.Attr{
		Valid: vfs.MaskV3, Type: vfs.TypeDir, Mode: 0o755, Nlink: 2, FileID: uint64(n + 1<<40), FSID: [2]uint64{1},
		Mtime: drawnAt, Ctime: drawnAt, Atime: drawnAt,
	}
	if n < 0 {
		a.Type, a.Mode, a.Nlink, a.Size, a.Used = vfs.TypeReg, 0o644, 1, uint64(f.size), uint64(f.size)
	}
	return a
}

func (f *drawn) Root(ctx context.Context) (vfs.Handle, vfs.Attr, error) {
	return f.handle(0), f.attr(0), ctx.Err()
}

func (f *drawn) GetAttr(ctx context.Context, h vfs.Handle, _ vfs.Mask) (vfs.Attr, error) {
	n, err := f.number(h)
	if err != nil {
		return vfs.Attr{}, err
	}
	return f.attr(n), ctx.Err()
}

func (f *drawn) Lookup(context.Context, vfs.Handle, string) (h vfs.Handle, a, d vfs.Attr, err error) {
	return h, a, d, vfs.ErrNotSupp // a backup looks nothing up
}

func drawnName(n int64) string {
	return fmt.Sprintf("%s-%07d", map[bool]string{true: "file", false: "dir"}[n < 0], max(n, -n))
}

func (f *drawn) ReadDir(ctx context.Context, h vfs.Handle, from vfs.Pos, _ vfs.Mask, _ uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		d, err := f.number(h)
		if err == nil && d < 0 {
			err = vfs.ErrNotDir
		}
		if err != nil {
			yield(nil, err)
			return
		}
		first, last, sign := int64(1), int64(f.dirs()), int64(1)
		if d > 0 {
			first, last, sign = (d-1)*dirFiles+1, min(d*dirFiles, int64(f.files)), -1
		}
		for i := first + int64(from.Cookie); i <= last; i++ {
			n := sign * i
			e := &vfs.Entry{
				Name: []byte(drawnName(n)), Handle: f.handle(n), Attr: f.attr(n), FileID: uint64(n + 1<<40),
				Next: vfs.Pos{Cookie: uint64(i - first + 1)},
			}
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// content is what a file has: no two have the same, and nothing packs it.
func (f *drawn) content(n int64) []byte {
	b := make([]byte, f.size)
	var seed [32]byte
	binary.BigEndian.PutUint64(seed[:], uint64(n))
	rand.NewChaCha8(seed).Read(b) //nolint:errcheck // it does not fail
	return b
}

func (f *drawn) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	o, err := vfs.Readable(ctx, f, at, how)
	if err != nil {
		return nil, o, err
	}
	n, err := f.number(o.H)
	return vfs.ReaderFile(strings.NewReader(string(f.content(n))), o.Attr), o, err
}

// counted counts the Gets of a store, and the objects that were put.
type counted struct {
	object.Store
	gets, puts atomic.Int64
}

func (c *counted) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, object.Info, error) {
	c.gets.Add(1)
	return c.Store.Get(ctx, key, off, n)
}

func (c *counted) Put(ctx context.Context, key string, r io.Reader, o object.PutOptions) (object.Info, error) {
	info, err := c.Store.Put(ctx, key, r, o)
	if err == nil {
		c.puts.Add(1)
	}
	return info, err
}

const (
	stepEnv  = "NFSBOX_SNAPSHOT_STEP"  // which step a child process does
	storeEnv = "NFSBOX_SNAPSHOT_STORE" // on which store
	filesEnv = "NFSBOX_SNAPSHOT_FILES" // of how many files
	sizeEnv  = "NFSBOX_SNAPSHOT_SIZE"  // of how many bytes each
	// peakMark is before the most memory that a step has had, in KiB.
	peakMark = "the peak is "
	// mostMemory is what a step may take of memory: all of the process, and not only its heap.
	mostMemory = 256 << 20
	// mostGets is how many Gets one file may cost, that of the root included.
	mostGets = 8
)

// steps are what is done with a large snapshot, each in a process of its own.
var steps = map[string]func(*testing.T, *drawn, *counted){
	"backup":        stepBackup,
	"second backup": stepSecond,
	"cat":           stepCat,
}

// TestManyFiles backs two million files up in a soak, and few on other days. It wants each step to stay within
// its memory, one file of them to be found with few Gets, and files of 8 KiB to share their objects.
func TestManyFiles(t *testing.T) {
	need.Speed(t, "the memory and the time that are measured would be its own")
	if step := os.Getenv(stepEnv); step != "" {
		runStep(t, steps[step])
		return
	}
	for name, c := range map[string]struct{ few, many, size int }{
		"many":  {3_000, 2_000_000, 100},
		"8 KiB": {2_000, 200_000, 8 << 10},
	} {
		files := c.few
		if os.Getenv("NFSBOX_SOAK") != "" {
			files = c.many
		}
		store := filepath.Join(t.TempDir(), "store")
		for _, step := range []string{"backup", "second backup", "cat"} {
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestManyFiles$", "-test.timeout=1h", "-test.v")
			child.Env = append(os.Environ(), stepEnv+"="+step, storeEnv+"="+store,
				filesEnv+"="+strconv.Itoa(files), sizeEnv+"="+strconv.Itoa(c.size))
			began := time.Now()
			out, err := child.CombinedOutput()
			if err != nil {
				t.Fatalf("%s of %d files: %v\n%s", step, files, err, out)
			}
			// The kernel's figure in the child's usage is no less than that of this process.
			_, text, _ := strings.Cut(string(out), peakMark)
			text, _, _ = strings.Cut(text, " ")
			peak, err := strconv.Atoi(text)
			if err != nil {
				t.Fatalf("%s of %d files: no peak: %v\n%s", step, files, err, out)
			}
			t.Logf("%s: %s of %d files: %d MiB, %.1f s, of a processor %.1f s", name, step, files, peak>>10,
				time.Since(began).Seconds(), (child.ProcessState.UserTime() + child.ProcessState.SystemTime()).Seconds())
			if peak<<10 > mostMemory && !raceEnabled() {
				t.Errorf("%s of %d files takes %d MiB", step, files, peak>>10)
			}
		}
	}
}

// raceEnabled says whether the race detector takes a multiple of the memory.
func raceEnabled() bool {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, s := range info.Settings {
			if s.Key == "-race" && s.Value == "true" {
				return true
			}
		}
	}
	return false
}

func runStep(t *testing.T, step func(*testing.T, *drawn, *counted)) {
	files, err := strconv.Atoi(os.Getenv(filesEnv))
	size, serr := strconv.Atoi(os.Getenv(sizeEnv))
	if err != nil || serr != nil || step == nil {
		t.Fatal("a child process without its step", err, serr)
	}
	path := os.Getenv(storeEnv)
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := dir.Open(path, dir.Options{Create: true, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	step(t, &drawn{files: files, size: size}, &counted{Store: s})
	status, err := os.ReadFile("/proc/self/status")
	_, text, ok := strings.Cut(string(status), "VmHWM:")
	text, _, _ = strings.Cut(text, "kB")
	if err != nil || !ok {
		t.Fatalf("no peak in /proc/self/status: %v", err)
	}
	fmt.Println(peakMark + strings.TrimSpace(text) + " kB")
}

// takeDrawn backs the tree up, on top of a base or of nothing.
func takeDrawn(t *testing.T, f *drawn, store *counted, base *snapshot.Snapshot) backup.Summary {
	t.Helper()
	sum, err := backup.Run(t.Context(), backup.Options{
		FS: f, Root: f.handle(0), Store: store, Base: base, Now: time.Now, Meta: snapshot.Meta{Name: "many"},
	})
	if err != nil || !sum.Complete || sum.Files != uint64(f.files) {
		t.Fatalf("%+v: %v", sum, err)
	}
	return sum
}

func stepBackup(t *testing.T, f *drawn, store *counted) {
	sum := takeDrawn(t, f, store, nil)
	if sum.Read != sum.Files {
		t.Errorf("%+v", sum)
	}
	if n := store.puts.Load(); n > int64(max(f.files/20, 10)) {
		t.Errorf("%d files are %d objects", f.files, n)
	}
}

func stepSecond(t *testing.T, f *drawn, store *counted) {
	if sum := takeDrawn(t, f, store, opened(t, store, "many")); sum.Read != 0 {
		t.Errorf("%+v", sum)
	}
}

func stepCat(t *testing.T, f *drawn, store *counted) {
	ctx := t.Context()
	n := int64(f.files / 3)
	fs := opened(t, store, "many").FS()
	root, _, err := fs.Root(ctx)
	if err != nil {
		t.Fatal(err)
	}
	path := drawnName((n+dirFiles-1)/dirFiles) + "/" + drawnName(-n)
	r, err := vfs.Resolve(ctx, fs, root, path, false)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	file, _, err := fs.Open(ctx, vfs.At{H: r.Handle}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, f.size+1)
	got, eof, err := vfs.ReadFull(ctx, file, b, 0)
	if err != nil || !eof || string(b[:got]) != string(f.content(-n)) {
		t.Fatalf("%s: %d bytes, eof %t, that are others: %v", path, got, eof, err)
	}
	if err := file.Close(ctx); err != nil {
		t.Error(err)
	}
	if n := store.gets.Load(); n > mostGets {
		t.Errorf("one file of %d costs %d Gets", f.files, n)
	}
}

// TestInsertedInMuch inserts a byte in the middle of a stream of 1 GiB in a soak, and of 48 MiB on other days.
func TestInsertedInMuch(t *testing.T) {
	need.Speed(t, "the memory and the time that are measured would be its own")
	size := int64(48 << 20)
	if os.Getenv("NFSBOX_SOAK") != "" {
		size = 1 << 30
	}
	s, err := dir.Open(t.TempDir(), dir.Options{Create: true, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // it is removed
	stored := func(parts ...io.Reader) int64 {
		w, err := snapshot.NewWriter(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.Data(t.Context(), io.MultiReader(parts...), size, nil); err != nil {
			t.Fatal(err)
		}
		n, _ := w.Written()
		return n
	}
	half := func(seed byte) io.Reader { return io.LimitReader(rand.NewChaCha8([32]byte{seed}), size/2) }
	if n := stored(half(1), half(2)); n != size {
		t.Errorf("%d of %d bytes are stored at first", n, size)
	}
	n := stored(half(1), strings.NewReader("x"), half(2))
	t.Logf("a byte in the middle of %d MiB: %d bytes are stored", size>>20, n)
	if n > 32<<20 {
		t.Errorf("%d bytes are stored for one", n)
	}
}
