package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/writeback"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

func TestFile(t *testing.T) {
	const chunk = 64 << 10
	sizes := []int{0, 1, 4095, chunk - 1, chunk, chunk + 1, 3 * chunk, 20*chunk + 7}
	for _, short := range []uint32{0, 5000} { // bytes that a peer moves at a time
		for _, window := range []int{1, 4, MaxWindow} {
			src := mem(t, memfs.Options{ReadMax: short})
			dst := mem(t, memfs.Options{WriteMax: short})
			o := options(t)
			o.Window, o.Verify = window, true
			var moved int64
			done := make(chan int64, 10_000)
			o.Moved = func(n int64) { done <- n }
			for _, size := range sizes {
				name := fmt.Sprint(size)
				want := pattern(size)
				res, err := File(t.Context(), src.file(name, want), dst.target(name), o)
				if err != nil {
					t.Fatalf("%d bytes: %v", size, err)
				}
				dst.same(name, want, 0o640)
				if !res.Verified || res.Bytes != uint64(size) {
					t.Errorf("%d bytes: result %+v", size, res)
				}
				for len(done) > 0 {
					moved += <-done
				}
				if moved != int64(size) {
					t.Errorf("%d bytes: %d were reported", size, moved)
				}
				moved = 0
			}
			dst.noTemps()
		}
	}
}

// TestSmallFileCost counts the round trips of a file of one chunk.
func TestSmallFileCost(t *testing.T) {
	var in, out hooks
	src, dst := mem(t, memfs.Options{Fault: in.fault}), mem(t, memfs.Options{Fault: out.fault})
	from := src.file("f", pattern(1000))
	in.start(0, nil)
	out.start(0, nil)
	if _, err := File(t.Context(), from, dst.target("f"), options(t)); err != nil {
		t.Fatal(err)
	}
	slices.Sort(in.ops) // the list is asked for beside the read; no server is asked for extended attributes
	if want := []string{"acl", "close", "open", "read", "xattrs"}; !slices.Equal(in.ops, want) {
		t.Errorf("the source was asked for %q, want %q", in.ops, want)
	}
	if want := []string{"open", "write", "setattr", "close", "rename"}; !slices.Equal(out.ops, want) {
		t.Errorf("the destination was asked for %q, want %q", out.ops, want)
	}
}

// TestReplace: what had the name is replaced, links are not followed, and
// directories stay.
func TestReplace(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	o := options(t)
	dst.file("file", []byte("old, and longer"))
	dst.file("victim", []byte("victim"))
	dst.make("link", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "victim"})
	dst.make("dir", vfs.CreateHow{Type: vfs.TypeDir})
	for _, name := range []string{"file", "link"} {
		if _, err := File(t.Context(), src.file(name, []byte("new")), dst.target(name), o); err != nil {
			t.Fatal(err)
		}
		dst.same(name, []byte("new"), 0o640)
	}
	dst.same("victim", []byte("victim"), 0o640)
	if _, err := File(t.Context(), src.source("file"), dst.target("dir"), o); err == nil {
		t.Error("a file took the place of a directory")
	}
	if a := dst.source("dir").Attr; a.Type != vfs.TypeDir {
		t.Errorf("the directory is a %v", a.Type)
	}
	dst.noTemps()
}

// TestEveryFault fails each operation of a copy in turn. The name stays what it
// was, and no temporary is left unless its removal was what failed.
func TestEveryFault(t *testing.T) {
	for _, size := range []int{0, 1000, 300_000} {
		for _, side := range []string{"source", "destination"} {
			for n := 1; ; n++ {
				var in, out hooks
				src, dst := mem(t, memfs.Options{Fault: in.fault}), mem(t, memfs.Options{Fault: out.fault})
				from, o := src.file("f", pattern(size)), options(t)
				o.Verify = true
				dst.file("f", []byte("old"))
				k := &in
				if side == "destination" {
					k = &out
				}
				k.start(n, vfs.ErrIO)
				_, err := File(t.Context(), from, dst.target("f"), o)
				if len(k.ops) < n {
					if err != nil {
						t.Fatalf("%d bytes: no operation failed: %v", size, err)
					}
					break
				}
				if k.ops[n-1] == "xattrs" { // it may have some, and is asked again
					if err != nil || !bytes.Equal(dst.contents("f"), pattern(size)) {
						t.Errorf("%d bytes: %v", size, err)
					}
					continue
				}
				k.start(0, nil)
				what := fmt.Sprintf("%d bytes, %s, operation %d", size, side, n)
				if !errors.Is(err, vfs.ErrIO) {
					t.Errorf("%s: error %v", what, err)
				}
				if got := dst.contents("f"); string(got) != "old" {
					t.Errorf("%s: %d bytes under the name", what, len(got))
				}
				dst.noTemps()
			}
		}
	}
}

// TestUnknownOutcome cuts operations off that did happen. Where another name, or
// a look, settles the matter, the copy is a success; else it says that it does
// not know. Nothing is left behind in either case.
func TestUnknownOutcome(t *testing.T) {
	for _, c := range []struct {
		op   string
		also error // beside ErrUnknownOutcome
		want error
	}{
		{"open", nil, nil}, // another name does
		{"every open", nil, vfs.ErrUnknownOutcome},
		{"open", vfs.ErrExist, nil}, // made by a call that was sent twice
		{"rename", nil, nil},
		{"rename", vfs.ErrNoEnt, nil},
		{"no rename", nil, vfs.ErrUnknownOutcome},
	} {
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
		from, o := src.file("f", pattern(1000)), options(t)
		cut := &cutOff{FS: dst.fs, op: c.op, also: c.also}
		_, err := File(t.Context(), from, Target{FS: cut, Dir: dst.root, Name: "f"}, o)
		if !errors.Is(err, c.want) {
			t.Errorf("%s, %v: error %v, want %v", c.op, c.also, err, c.want)
		}
		if c.want == nil && !bytes.Equal(dst.contents("f"), pattern(1000)) {
			t.Errorf("%s, %v: the copy is not whole", c.op, c.also)
		}
		dst.noTemps()
	}
}

// cutOff does an operation, or does not, and says that it does not know; of
// opens, the first, or every one.
type cutOff struct {
	vfs.FS
	op   string
	also error
}

func (f *cutOff) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	file, opened, err := f.FS.Open(ctx, at, how)
	if (f.op == "open" || f.op == "every open") && err == nil {
		f.op = strings.TrimPrefix(f.op, "open")
		return nil, vfs.Opened{}, errors.Join(vfs.ErrUnknownOutcome, f.also, file.Close(ctx))
	}
	return file, opened, err
}

func (f *cutOff) Rename(ctx context.Context, a vfs.Handle, an string, b vfs.Handle, bn string) (vfs.WCC, vfs.WCC, error) {
	if f.op == "no rename" {
		return vfs.WCC{}, vfs.WCC{}, vfs.ErrUnknownOutcome
	}
	from, to, err := f.FS.Rename(ctx, a, an, b, bn)
	if f.op == "rename" {
		err = errors.Join(vfs.ErrUnknownOutcome, f.also, err)
	}
	return from, to, err
}

// TestCancel cancels a copy in each of its operations.
func TestCancel(t *testing.T) {
	for n := 1; ; n++ {
		var in, out hooks
		src, dst := mem(t, memfs.Options{Fault: in.fault}), mem(t, memfs.Options{Fault: out.fault})
		from, o := src.file("f", pattern(500_000)), options(t)
		ctx, cancel := context.WithCancel(t.Context())
		count := 0
		out.start(0, nil)
		out.before = func(string) {
			out.mu.Lock()
			defer out.mu.Unlock()
			if count++; count == n {
				cancel()
			}
		}
		_, err := File(ctx, from, dst.target("f"), o)
		cancel()
		dst.noTemps()
		if err == nil {
			if n < 5 {
				t.Errorf("cancelled in operation %d without an error", n)
			}
			dst.same("f", pattern(500_000), 0o640)
			return
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("operation %d: %v", n, err)
		}
	}
}

// owning is a destination over below that owns its dirty bytes, as a client has it.
func owning(t *testing.T, below vfs.FS) *end {
	t.Helper()
	return newEnd(t, writeback.New(below, writeback.Options{}))
}

// TestRestart: a server that loses unstable writes is written to again, by the owner of the
// dirty bytes. One that never keeps them fails the copy.
func TestRestart(t *testing.T) {
	for _, restarts := range []int{1, 2, 3, 1000} {
		var out hooks
		m := memfs.New(memfs.Options{Fault: out.fault})
		src, dst := mem(t, memfs.Options{}), owning(t, m)
		want := pattern(300_000)
		from := src.file("f", want)
		left := restarts
		out.before = func(op string) {
			if op == "commit" && left > 0 {
				left--
				m.Restart()
			}
		}
		o := options(t)
		_, err := File(t.Context(), from, dst.target("f"), o)
		if restarts == 1000 {
			if !errors.Is(err, vfs.ErrIO) || slices.Contains(dst.names(), "f") {
				t.Errorf("%d restarts: error %v", restarts, err)
			}
		} else if err != nil {
			t.Errorf("%d restarts: %v", restarts, err)
		} else {
			m.Restart() // what is safe survives one more
			dst.same("f", want, 0o640)
		}
		dst.noTemps()
	}
}

// TestRestartBetweenWrites: the verifier of the COMMIT equals that of the last WRITEs, but
// not that of the first.
func TestRestartBetweenWrites(t *testing.T) {
	var out hooks
	m := memfs.New(memfs.Options{Fault: out.fault})
	src, dst := mem(t, memfs.Options{}), owning(t, m)
	want := pattern(500_000)
	from, o := src.file("f", want), options(t)
	o.Window = 1
	writes := 0
	out.before = func(op string) {
		if op == "write" {
			if writes++; writes == 4 {
				m.Restart()
			}
		}
	}
	if _, err := File(t.Context(), from, dst.target("f"), o); err != nil {
		t.Fatal(err)
	}
	m.Restart()
	dst.same("f", want, 0o640)
}

// TestSyncer: on a destination that leaves stability to us, a copy is committed once its
// attributes are set.
func TestSyncer(t *testing.T) {
	for _, size := range []int{0, 1000, 300_000} {
		var out hooks
		m := memfs.New(memfs.Options{Fault: out.fault})
		src, dst := mem(t, memfs.Options{}), newEnd(t, m)
		want := pattern(size)
		f := &syncer{FS: dst.fs}
		to := dst.target("f")
		to.FS = f
		from := src.file("f", want)
		if _, err := File(t.Context(), from, to, options(t)); err != nil {
			t.Fatal(err)
		}
		if size > 0 && (f.syncs > 0 || slices.Index(out.ops, "setattr") > slices.Index(out.ops, "commit")) {
			t.Errorf("%d bytes: %d syncs, %q", size, f.syncs, out.ops)
		}
		if size == 0 && f.syncs != 1 {
			t.Errorf("an empty file is synced %d times", f.syncs)
		}
		m.Restart()
		dst.same("f", want, 0o640)
		dst.noTemps()
	}
}

// syncer leaves attributes to be synced.
type syncer struct {
	vfs.FS
	syncs int
}

func (f *syncer) Sync(context.Context, vfs.Handle) error { f.syncs++; return nil }

// TestWeakServer writes a small file to a server that does not do FILE_SYNC.
func TestWeakServer(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	commits := 0
	weak := &openFS{dst.fs, func(f vfs.File) vfs.File {
		return &hookFile{File: f,
			write:  func(n int, w *vfs.Written) int { w.Committed = vfs.Unstable; return n },
			commit: func(*vfs.Written) { commits++ },
		}
	}}
	to := dst.target("f")
	to.FS = weak
	if _, err := File(t.Context(), src.file("f", pattern(10)), to, options(t)); err != nil {
		t.Fatal(err)
	}
	if commits != 1 {
		t.Errorf("%d commits", commits)
	}
}

// TestSourceChanges changes the source while it is read, once and always.
func TestSourceChanges(t *testing.T) {
	for _, size := range []int{1000, 300_000} {
		for _, changes := range []int{1, 1000} {
			var in hooks
			src, dst := mem(t, memfs.Options{Fault: in.fault}), mem(t, memfs.Options{})
			from := src.file("f", pattern(size))
			left := changes
			in.start(0, nil)
			in.before = func(op string) {
				in.mu.Lock()
				change, n := op == "read" && left > 0, left
				if change {
					left--
				}
				in.mu.Unlock()
				if change { // which is no read, and so comes here once
					src.set(from.Handle, vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: time.Unix(int64(n), 0)})
				}
			}
			_, err := File(t.Context(), from, dst.target("f"), options(t))
			in.before = nil
			if changes == 1 && err != nil {
				t.Errorf("%d bytes, one change: %v", size, err)
			}
			if changes > 1 && (!errors.Is(err, ErrChanged) || len(dst.names()) > 0) {
				t.Errorf("%d bytes, many changes: %v; %q", size, err, dst.names())
			}
			if changes == 1 && !bytes.Equal(dst.contents("f"), pattern(size)) {
				t.Errorf("%d bytes: the copy is another", size)
			}
			dst.noTemps()
		}
	}
}

// TestUntrueCounts: peers that lie about how much they moved.
func TestUntrueCounts(t *testing.T) {
	tests := []struct {
		name string
		in   hookFile
		out  hookFile
		want error
	}{
		{name: "nothing and no end", in: hookFile{read: func([]byte, uint64, int, bool) (int, bool) { return 0, false }}, want: ErrCount},
		{name: "more than asked", in: hookFile{read: func(p []byte, _ uint64, _ int, _ bool) (int, bool) { return len(p) + 1, false }}, want: ErrCount},
		{name: "less than none", in: hookFile{read: func([]byte, uint64, int, bool) (int, bool) { return -1, true }}, want: ErrCount},
		{name: "an early end", in: hookFile{read: func(_ []byte, off uint64, n int, _ bool) (int, bool) { return n / 2, true }}, want: io.ErrUnexpectedEOF},
		{name: "nothing written", out: hookFile{write: func(int, *vfs.Written) int { return 0 }}, want: ErrCount},
		{name: "too much written", out: hookFile{write: func(n int, _ *vfs.Written) int { return n + 1 }}, want: ErrCount},
		{name: "less than none written", out: hookFile{write: func(int, *vfs.Written) int { return -5 }}, want: ErrCount},
	}
	for _, tt := range tests {
		for _, size := range []int{100, 300_000} {
			t.Run(fmt.Sprint(tt.name, " ", size), func(t *testing.T) {
				src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
				from, to := src.file("f", pattern(size)), dst.target("f")
				wrap := func(h hookFile) func(vfs.File) vfs.File {
					return func(f vfs.File) vfs.File { h := h; h.File = f; return &h }
				}
				from.FS, to.FS = &openFS{src.fs, wrap(tt.in)}, &openFS{dst.fs, wrap(tt.out)}
				_, err := File(t.Context(), from, to, options(t))
				if !errors.Is(err, tt.want) {
					t.Errorf("error %v, want %v", err, tt.want)
				}
				if names := dst.names(); len(names) > 0 {
					t.Errorf("the destination holds %q", names)
				}
			})
		}
	}
}

// TestVerify: a destination that stores other bytes is found out.
func TestVerify(t *testing.T) {
	for _, size := range []int{100, 300_000} {
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
		from, to, o := src.file("f", pattern(size)), dst.target("f"), options(t)
		o.Verify = true
		to.FS = &openFS{dst.fs, func(f vfs.File) vfs.File {
			return &hookFile{File: f, read: func(p []byte, off uint64, n int, eof bool) (int, bool) {
				if off == 0 {
					p[n-1] ^= 1
				}
				return n, eof
			}}
		}}
		if _, err := File(t.Context(), from, to, o); !errors.Is(err, ErrVerify) {
			t.Errorf("%d bytes: error %v", size, err)
		}
		if names := dst.names(); len(names) > 0 {
			t.Errorf("the destination holds %q", names)
		}
	}
}

// TestSparse copies files with holes, from a source that knows them and from one
// that does not.
func TestSparse(t *testing.T) {
	const mib = 1 << 20
	tests := []struct {
		name string
		size uint64
		data []uint64 // offsets of 10,000 bytes
	}{
		{"all hole", 5*mib + 1, nil},
		{"hole at the end", 5 * mib, []uint64{0}},
		{"hole at the start", 3*mib + 10_000, []uint64{3 * mib}},
		{"holes between", 9*mib + 5, []uint64{mib + 4096, 2 * mib, 7*mib - 5}},
		{"small", 60_000, []uint64{20_000}},
	}
	for _, tt := range tests {
		for _, seek := range []bool{true, false} {
			t.Run(fmt.Sprint(tt.name, " ", seek), func(t *testing.T) {
				src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
				want := make([]byte, tt.size)
				from := src.file("f", nil)
				f, _, err := src.fs.Open(t.Context(), vfs.At{H: from.Handle}, &vfs.OpenHow{Access: vfs.ShareWrite})
				if err != nil {
					t.Fatal(err)
				}
				for _, off := range tt.data {
					copy(want[off:off+10_000], pattern(10_000))
					var w vfs.Written
					if _, err := vfs.WriteFull(t.Context(), f, want[off:off+10_000], off, vfs.FileSync, &w); err != nil {
						t.Fatal(err)
					}
				}
				if err := f.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				src.set(from.Handle, vfs.SetAttr{Valid: vfs.MaskSize | vfs.MaskMtime | vfs.MaskAtime, Size: tt.size, Mtime: epoch, Atime: epoch.Add(3600e9)})
				from = src.source("f")
				if !seek {
					from.FS = &openFS{src.fs, func(f vfs.File) vfs.File { return &hookFile{File: f} }}
				}
				o := options(t)
				o.Verify = true
				if _, err := File(t.Context(), from, dst.target("f"), o); err != nil {
					t.Fatal(err)
				}
				dst.same("f", want, 0o640)
				if a, b := from.Attr.Used, dst.source("f").Attr.Used; b > a {
					t.Errorf("the copy uses %d bytes, the source %d", b, a)
				}
			})
		}
	}
}

// silentHoles is a file that cannot tell its holes, though others of its file system may.
type silentHoles struct{ vfs.File }

func (silentHoles) NextData(context.Context, uint64) (uint64, error) { return 0, vfs.ErrNotSupp }
func (silentHoles) NextHole(context.Context, uint64) (uint64, error) { return 0, vfs.ErrNotSupp }

// TestHolesNotTold: what may be a hole is copied like data, where the source cannot tell.
func TestHolesNotTold(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	const size = 3<<20 + 5
	from := src.file("f", pattern(10_000))
	src.set(from.Handle, vfs.SetAttr{Valid: vfs.MaskSize | vfs.MaskMtime | vfs.MaskAtime, Size: size, Mtime: epoch, Atime: epoch.Add(time.Hour)})
	if from = src.source("f"); from.Attr.Used >= size {
		t.Fatalf("it has no holes: %+v", from.Attr)
	}
	from.FS = &openFS{src.fs, func(f vfs.File) vfs.File { return silentHoles{f} }}
	if _, err := File(t.Context(), from, dst.target("f"), options(t)); err != nil {
		t.Fatal(err)
	}
	dst.same("f", append(pattern(10_000), make([]byte, size-10_000)...), 0o640)
	if used := dst.source("f").Attr.Used; used < size {
		t.Errorf("the copy uses %d bytes of %d", used, size)
	}
}

// TestUntrueHoles: positions that lead nowhere are errors, not endless loops.
func TestUntrueHoles(t *testing.T) {
	for _, h := range []badHoles{{data: 0, hole: 0}, {data: 1 << 19, hole: 10}, {data: 1 << 60, hole: 0}} {
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
		from := src.file("f", nil)
		src.set(from.Handle, vfs.SetAttr{Valid: vfs.MaskSize, Size: 1 << 20})
		from = src.source("f")
		from.FS = &openFS{src.fs, func(f vfs.File) vfs.File { h := h; h.File = f; return &h }}
		_, err := File(t.Context(), from, dst.target("f"), options(t))
		if want := h.data < 1<<20; want != errors.Is(err, ErrCount) {
			t.Errorf("data at %d, hole at %d: %v", h.data, h.hole, err)
		}
		dst.noTemps()
	}
}

type badHoles struct {
	vfs.File
	data, hole uint64
}

func (h *badHoles) NextData(context.Context, uint64) (uint64, error) { return h.data, nil }
func (h *badHoles) NextHole(context.Context, uint64) (uint64, error) { return h.hole, nil }

func TestTempNames(t *testing.T) {
	for _, tag := range []string{"", "0a1b2c3d-"} {
		o := options(t)
		o.Tag = tag
		name, err := o.TempName()
		if err != nil || !IsTemp(name, tag) || IsTemp(name, tag+"x") || vfs.CheckName(name) != nil {
			t.Errorf("%q, %v", name, err)
		}
	}
	for _, name := range []string{"", ".nfsbox-.tmp", ".nfsbox-0123456789abcdef", ".nfsbox-0123456789abcdeg.tmp", "x.nfsbox-0123456789abcdef.tmp"} {
		if IsTemp(name, "") {
			t.Errorf("%q counts as a temporary", name)
		}
	}
	o := options(t)
	o.Random = strings.NewReader("short")
	if _, err := o.TempName(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v", err)
	}
}

func TestChunk(t *testing.T) {
	src, dst := mem(t, memfs.Options{ReadMax: 100_000}), mem(t, memfs.Options{WriteMax: 50_000})
	n, err := Chunk(t.Context(), Source{FS: src.fs, Handle: src.root}, dst.target(""))
	if err != nil || n != 50_000 {
		t.Errorf("%d, %v", n, err)
	}
}

// TestBudget copies and compares many files at once with fewer chunks than
// files, and counts the buffers.
func TestBudget(t *testing.T) {
	const slots = 3
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	o := options(t)
	o.Budget, o.Window, o.Verify = NewBudget(slots), 8, true
	var most atomic.Int64
	o.Moved = func(int64) {
		if n := int64(o.Pool.Outstanding()); n > most.Load() {
			most.Store(n)
		}
	}
	want := pattern(1 << 20)
	from := src.file("f", want)
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			name := fmt.Sprint(i)
			if _, err := File(t.Context(), from, dst.target(name), o); err != nil {
				t.Error(err)
				return
			}
			if c, err := Compare(t.Context(), from, dst.source(name), 1<<20, o); err != nil || c.Differ {
				t.Errorf("%+v, %v", c, err)
			}
		})
	}
	wg.Wait()
	if most.Load() > 2*slots || most.Load() == 0 || o.Budget.taken.Load() != 0 {
		t.Errorf("%d buffers at once, %d slots are taken", most.Load(), o.Budget.taken.Load())
	}
}

func TestCompare(t *testing.T) {
	a, b := mem(t, memfs.Options{}), mem(t, memfs.Options{ReadMax: 10_000})
	const size = 700_000
	want := pattern(size)
	r := rand.New(rand.NewPCG(3, 4))
	from, o := a.file("f", want), options(t)
	other := b.file("same", want)
	if c, err := Compare(t.Context(), from, other, size, o); err != nil || c.Differ || c.Bytes != size {
		t.Errorf("%+v, %v", c, err)
	}
	for i := range 20 {
		first := r.IntN(size)
		changed := bytes.Clone(want)
		for off := first; off < size; off += 1 + r.IntN(100_000) {
			changed[off] ^= 0x80
		}
		c, err := Compare(t.Context(), from, b.file(fmt.Sprint(i), changed), size, o)
		if err != nil || !c.Differ || c.Offset != uint64(first) {
			t.Errorf("first difference at %d: %+v, %v", first, c, err)
		}
	}
	c, err := Compare(t.Context(), from, b.file("short", want[:300_001]), size, o)
	if err != nil || !c.Differ || c.Offset != 300_001 {
		t.Errorf("a shorter file: %+v, %v", c, err)
	}
}

// TestCompareFaults fails each operation of a comparison.
func TestCompareFaults(t *testing.T) {
	for n := 1; ; n++ {
		var k hooks
		a, b := mem(t, memfs.Options{}), mem(t, memfs.Options{Fault: k.fault})
		from, other := a.file("f", pattern(300_000)), b.file("f", pattern(300_000))
		k.start(n, vfs.ErrIO)
		_, err := Compare(t.Context(), from, other, 300_000, options(t))
		if len(k.ops) < n {
			if err != nil {
				t.Error(err)
			}
			return
		}
		if !errors.Is(err, vfs.ErrIO) {
			t.Errorf("operation %d: %v", n, err)
		}
	}
}

func BenchmarkFile(b *testing.B) {
	for _, size := range []int{4 << 10, 16 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			src, dst := mem(b, memfs.Options{}), mem(b, memfs.Options{})
			from, o := src.file("f", pattern(size)), options(b)
			o.Chunk = MaxChunk
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := File(b.Context(), from, dst.target("f"), o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
