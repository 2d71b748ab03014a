package writeback

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/client/readahead"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

const rw = vfs.ShareRead | vfs.ShareWrite

// rig is a wrapper over a memfs that a test can break, and counts of what
// reached it.
type rig struct {
	t     *testing.T
	fs    *FS
	below *memfs.FS
	pool  *bufpool.Pool

	mu    sync.Mutex
	fault func(ctx context.Context, op string) error
	ops   map[string]int
}

// over puts another FS below the file system.
func (r *rig) over(below vfs.FS) { *r.fs = *over(below, r.fs.s) }

func newRig(t *testing.T, mem memfs.Options, opt Options) *rig {
	t.Helper()
	r := &rig{t: t, pool: new(bufpool.Pool), ops: make(map[string]int)}
	mem.Fault = func(ctx context.Context, op string, _ vfs.Handle) error {
		r.mu.Lock()
		r.ops[op]++
		fault := r.fault
		r.mu.Unlock()
		if fault == nil {
			return nil
		}
		return fault(ctx, op)
	}
	r.below = memfs.New(mem)
	opt.Pool = r.pool
	r.fs = New(r.below, opt)
	t.Cleanup(func() {
		if n := r.pool.Outstanding(); n != 0 || r.fs.Dirty() != 0 {
			t.Errorf("%d buffers, %d dirty bytes are left", n, r.fs.Dirty())
		}
		if n := r.below.OpenFiles(); n != 0 || len(r.fs.s.nodes) != 0 {
			t.Errorf("%d files, %d nodes are left open", n, len(r.fs.s.nodes))
		}
	})
	return r
}

// readAhead puts reading ahead between the wrapper and below.
func (r *rig) readAhead(below vfs.FS, total int64) {
	r.over(readahead.New(below, readahead.Options{Total: total, Pool: r.pool}))
}

func (r *rig) setFault(f func(ctx context.Context, op string) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = f
}

func (r *rig) count(op string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ops[op]
}

func (r *rig) open(name string, how vfs.OpenHow) (vfs.File, vfs.Handle) {
	r.t.Helper()
	root, _, err := r.fs.Root(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	how.Access |= rw
	how.Create = &vfs.CreateHow{Type: vfs.TypeReg, Mode: vfs.CreateUnchecked, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o644}}
	f, opened, err := r.fs.Open(r.t.Context(), vfs.At{Dir: root, Name: name}, &how)
	if err != nil {
		r.t.Fatal(err)
	}
	return f, opened.H
}

func (r *rig) write(f vfs.File, off uint64, p []byte) {
	r.t.Helper()
	var w vfs.Written
	if n, err := f.WriteAt(r.t.Context(), p, off, vfs.Unstable, &w); n != len(p) || err != nil {
		r.t.Fatalf("WriteAt of %d bytes at %d: %d, %v", len(p), off, n, err)
	}
}

func (r *rig) ok(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) commit(f vfs.File) error {
	var w vfs.Written
	return f.Commit(r.t.Context(), 0, 0, &w)
}

// wantBelow restarts the server and compares what it still has.
func (r *rig) wantBelow(h vfs.Handle, want []byte) {
	r.t.Helper()
	r.setFault(nil)
	r.below.Restart()
	f, _, err := r.below.Open(r.t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	r.ok(err)
	got := make([]byte, len(want)+1)
	n, eof, err := vfs.ReadFull(r.t.Context(), f, got, 0)
	r.ok(err)
	if !eof || !bytes.Equal(got[:n], want) {
		r.t.Errorf("below are %d bytes, want %d (equal: %v)", n, len(want), bytes.Equal(got[:n], want))
	}
	r.ok(f.Close(r.t.Context()))
}

func pattern(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i*7 + i>>8)
	}
	return p
}

// TestRestarts lets the server forget at every place where it may. Without the
// comparison of verifiers in saw and committed (all written pieces taken for
// stable) every case fails.
func TestRestarts(t *testing.T) {
	const size = 100_000
	for _, tt := range []struct {
		name string
		op   string // before which the server restarts
		nth  int
	}{
		{"before the second WRITE", "write", 2},
		{"before the last WRITE", "write", 25},
		{"between WRITE and COMMIT", "commit", 1},
		{"while bytes are sent again", "write", 26},
		{"before the second COMMIT", "commit", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, memfs.Options{WriteMax: 4096}, Options{})
			f, h := r.open("f", vfs.OpenHow{})
			commits, writes := 0, 0
			var mu sync.Mutex
			r.setFault(func(_ context.Context, op string) error {
				mu.Lock()
				defer mu.Unlock()
				switch op {
				case "write":
					writes++
				case "commit":
					if commits++; commits == 1 {
						r.below.Restart() // so that there is a second round
					}
				}
				if op == tt.op && (op == "write" && writes == tt.nth || op == "commit" && commits == tt.nth) {
					r.below.Restart()
				}
				return nil
			})
			data := pattern(size)
			r.write(f, 0, data)
			r.ok(r.commit(f))
			if writes <= size/4096+1 {
				t.Errorf("%d WRITEs: nothing was sent again", writes)
			}
			r.wantBelow(h, data)
			r.ok(f.Close(t.Context()))
		})
	}
}

// TestServerThatAlwaysRestarts: Commit gives up in the end, and says so.
func TestServerThatAlwaysRestarts(t *testing.T) {
	r := newRig(t, memfs.Options{}, Options{})
	f, _ := r.open("f", vfs.OpenHow{})
	r.setFault(func(_ context.Context, op string) error {
		if op == "commit" {
			r.below.Restart()
		}
		return nil
	})
	r.write(f, 0, pattern(5000))
	if err := r.commit(f); !errors.Is(err, vfs.ErrIO) {
		t.Errorf("Commit: %v", err)
	}
	if n := r.count("commit"); n != maxRounds {
		t.Errorf("%d COMMITs, want %d", n, maxRounds)
	}
	if err := f.Close(t.Context()); !errors.Is(err, vfs.ErrIO) {
		t.Errorf("Close: %v", err)
	}
}

func TestCloseCommits(t *testing.T) {
	r := newRig(t, memfs.Options{}, Options{})
	f, h := r.open("f", vfs.OpenHow{})
	r.write(f, 10, []byte("abc"))
	r.ok(f.Close(t.Context()))
	r.wantBelow(h, []byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00abc"))
	if err := f.Close(t.Context()); !errors.Is(err, vfs.ErrInval) {
		t.Errorf("second Close: %v", err)
	}
	if n, err := f.WriteAt(t.Context(), []byte("x"), 0, vfs.Unstable, new(vfs.Written)); n != 0 || !errors.Is(err, vfs.ErrInval) {
		t.Errorf("WriteAt after Close: %d, %v", n, err)
	}
}

// TestCoalescing: small writes in a row become large WRITEs.
func TestCoalescing(t *testing.T) {
	r := newRig(t, memfs.Options{WriteMax: 1 << 20}, Options{})
	f, h := r.open("f", vfs.OpenHow{})
	data := pattern(3<<20 + 4096)
	for off := 0; off < len(data); off += 4096 {
		r.write(f, uint64(off), data[off:off+4096])
	}
	r.ok(f.Close(t.Context()))
	if w, c := r.count("write"), r.count("commit"); w != 4 || c != 1 {
		t.Errorf("%d WRITEs and %d COMMITs, want 4 and 1", w, c)
	}
	r.wantBelow(h, data)
}

// TestBoundOfDirtyBytes: at the bound there are COMMITs, and never more memory.
func TestBoundOfDirtyBytes(t *testing.T) {
	const bound = 256 << 10
	r := newRig(t, memfs.Options{WriteMax: 32 << 10}, Options{MaxDirty: bound})
	idle, idleHandle := r.open("idle", vfs.OpenHow{})
	f, h := r.open("f", vfs.OpenHow{})
	r.write(idle, 0, pattern(200<<10))
	data := pattern(2 << 20)
	for off := 0; off < len(data); off += 50_000 {
		r.write(f, uint64(off), data[off:min(off+50_000, len(data))])
		if n := r.fs.Dirty(); n > bound {
			t.Fatalf("%d dirty bytes, the bound is %d", n, bound)
		}
	}
	if n := r.count("commit"); n < 7 {
		t.Errorf("%d COMMITs for 2 MiB under a bound of 256 KiB", n)
	}
	r.ok(f.Close(t.Context()))
	r.ok(idle.Close(t.Context()))
	r.wantBelow(h, data)
	r.wantBelow(idleHandle, pattern(200<<10))
}

// TestFirstErrorStays: a failed WRITE is told by all that follows, and by files
// that were opened later not at all.
func TestFirstErrorStays(t *testing.T) {
	r := newRig(t, memfs.Options{WriteMax: 4096}, Options{})
	f, h := r.open("f", vfs.OpenHow{})
	r.write(f, 0, pattern(4096))
	r.ok(r.commit(f))
	r.setFault(func(_ context.Context, op string) error {
		if op == "write" {
			return vfs.ErrNoSpace
		}
		return nil
	})
	r.write(f, 4096, pattern(100))
	for range 2 {
		if err := r.commit(f); !errors.Is(err, vfs.ErrNoSpace) {
			t.Errorf("Commit: %v", err)
		}
	}
	r.setFault(nil)
	if _, err := f.WriteAt(t.Context(), []byte("x"), 0, vfs.Unstable, new(vfs.Written)); !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("WriteAt: %v", err)
	}
	later, _ := r.open("f", vfs.OpenHow{})
	r.write(later, 0, []byte("later"))
	if err := f.Close(t.Context()); !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("Close: %v", err)
	}
	r.ok(later.Close(t.Context()))
	want := pattern(4096)
	copy(want, "later")
	r.wantBelow(h, want)
}

// TestCommitError: the bytes stay dirty, the error is told to the end.
func TestCommitError(t *testing.T) {
	r := newRig(t, memfs.Options{}, Options{})
	f, h := r.open("f", vfs.OpenHow{})
	fails := 1
	r.setFault(func(_ context.Context, op string) error {
		if op == "commit" && fails > 0 {
			fails--
			return vfs.ErrIO
		}
		return nil
	})
	r.write(f, 0, []byte("abc"))
	if err := r.commit(f); !errors.Is(err, vfs.ErrIO) {
		t.Errorf("Commit: %v", err)
	}
	r.below.Restart()
	if err := f.Close(t.Context()); !errors.Is(err, vfs.ErrIO) {
		t.Errorf("Close: %v", err)
	}
	r.wantBelow(h, []byte("abc"))
}

// TestNoOverlapInFlight holds the first WRITE up and writes over its range.
func TestNoOverlapInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, memfs.Options{WriteMax: 4096}, Options{})
		f, h := r.open("f", vfs.OpenHow{})
		let := make(chan struct{})
		flying, most := 0, 0
		var mu sync.Mutex
		r.setFault(func(_ context.Context, op string) error {
			if op != "write" {
				return nil
			}
			mu.Lock()
			flying++
			most = max(most, flying)
			mu.Unlock()
			<-let
			mu.Lock()
			flying--
			mu.Unlock()
			return nil
		})
		r.write(f, 0, bytes.Repeat([]byte("1"), 4096))
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.write(f, 100, bytes.Repeat([]byte("2"), 4096))
		}()
		synctest.Wait()
		select {
		case <-done:
			t.Error("a write over bytes in flight did not wait")
		default:
		}
		close(let)
		<-done
		r.ok(f.Close(t.Context()))
		if most != 1 {
			t.Errorf("%d overlapping WRITEs were in flight", most)
		}
		r.wantBelow(h, append(bytes.Repeat([]byte("1"), 100), bytes.Repeat([]byte("2"), 4096)...))
	})
}

// TestCancel: a WriteAt that waits for room gives up with its context, what it
// accepted is kept; a Close that gives up says so and leaves nothing behind.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 56 << 10 // of one object: seven eighths of all
		r := newRig(t, memfs.Options{WriteMax: 4096}, Options{MaxDirty: 64 << 10})
		f, h := r.open("f", vfs.OpenHow{})
		hang := func(ctx context.Context, op string) error {
			if op != "write" && op != "commit" {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		stuck := make(chan struct{})
		r.setFault(func(ctx context.Context, op string) error {
			if op != "write" {
				return nil
			}
			select {
			case <-stuck:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		data := pattern(100 << 10)
		n, err := f.WriteAt(ctx, data, 0, vfs.Unstable, new(vfs.Written))
		if n != most || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("WriteAt without room: %d, %v", n, err)
		}
		close(stuck)
		r.ok(r.commit(f))
		r.wantBelow(h, data[:n])

		r.setFault(hang)
		r.write(f, 0, []byte("never sent"))
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := f.Close(ctx); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
			t.Errorf("Close: %v", err)
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("Close gave up after %v", d)
		}
		r.setFault(nil)
	})
}

// TestSizes: attributes show bytes that the server does not have.
func TestSizes(t *testing.T) {
	ctx := t.Context()
	r := newRig(t, memfs.Options{}, Options{})
	f, h := r.open("f", vfs.OpenHow{})
	root, _, err := r.fs.Root(ctx)
	r.ok(err)
	r.write(f, 1000, []byte("abc"))
	want := func(what string, a vfs.Attr, err error, size uint64) {
		t.Helper()
		if err != nil || a.Size != size {
			t.Errorf("%s: size %d, %v, want %d", what, a.Size, err, size)
		}
	}
	_, a, _, err := r.fs.Lookup(ctx, root, "f")
	want("Lookup", a, err, 1003)
	for e, err := range r.fs.ReadDir(ctx, root, vfs.Pos{}, vfs.MaskSize|vfs.MaskHandle, 0) {
		r.ok(err)
		want("ReadDir", e.Attr, nil, 1003)
	}
	a, err = r.fs.As(&vfs.Caller{}).GetAttr(ctx, h, vfs.MaskV3)
	want("GetAttr", a, err, 1003)
	r.below.Restart()
	a, err = r.fs.GetAttr(ctx, h, vfs.MaskV3)
	want("GetAttr after a restart", a, err, 1003)
	_, err = r.fs.SetAttr(ctx, h, &vfs.SetAttr{Valid: vfs.MaskSize, Size: 1001}, nil)
	r.ok(err)
	a, err = r.fs.GetAttr(ctx, h, vfs.MaskV3)
	want("GetAttr after SetAttr", a, err, 1001)
	again, _ := r.open("f", vfs.OpenHow{Trunc: true})
	a, err = r.fs.GetAttr(ctx, h, vfs.MaskV3)
	want("GetAttr after Open", a, err, 0)
	r.ok(again.Close(ctx))
	r.write(f, 0, []byte("12"))
	r.ok(r.fs.Sync(ctx, h))
	r.wantBelow(h, []byte("12"))
	r.ok(f.Close(ctx))
}

// TestSetAttrCommits: attributes outlive a restart of the server, after which
// bytes would be sent again.
func TestSetAttrCommits(t *testing.T) {
	ctx := t.Context()
	r := newRig(t, memfs.Options{WriteMax: 4096}, Options{})
	f, h := r.open("f", vfs.OpenHow{})
	r.write(f, 0, pattern(10_000))
	want := time.Unix(1_000_000, 0)
	_, err := r.fs.SetAttr(ctx, h, &vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: want}, nil)
	r.ok(err)
	r.below.Restart()
	r.ok(f.Close(ctx))
	a, err := r.below.GetAttr(ctx, h, vfs.MaskV3)
	if err != nil || !a.Mtime.Equal(want) {
		t.Errorf("mtime %v, %v", a.Mtime, err)
	}
	if w, c := r.count("write"), r.count("commit"); w != 3 || c != 1 {
		t.Errorf("%d WRITEs and %d COMMITs, want 3 and 1", w, c)
	}
	r.wantBelow(h, pattern(10_000))
}

// TestModel does random things to one file through two opens, with a server that
// restarts at random before any WRITE or COMMIT, and compares with a slice.
func TestModel(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { model(t, seed) })
	}
}

func model(t *testing.T, seed uint64) {
	ctx := t.Context()
	rnd := rand.New(rand.NewPCG(seed, 1))
	faults := rand.New(rand.NewPCG(seed, 2))
	opt := Options{}
	if seed%2 == 1 {
		opt.MaxDirty = 64 << 10
	}
	r := newRig(t, memfs.Options{WriteMax: 4096 << rnd.IntN(3), ReadMax: 8192}, opt)
	var mu sync.Mutex
	restarts := func(_ context.Context, op string) error {
		mu.Lock()
		defer mu.Unlock()
		if op == "write" && faults.IntN(30) == 0 || op == "commit" && faults.IntN(5) == 0 {
			r.below.Restart()
		}
		return nil
	}
	a, h := r.open("f", vfs.OpenHow{})
	b, _ := r.open("f", vfs.OpenHow{})
	r.setFault(restarts)
	files := []vfs.File{a, b}
	var want []byte
	grow := func(n uint64) {
		if n > uint64(len(want)) {
			want = append(want, make([]byte, n-uint64(len(want)))...)
		}
	}
	const reach = 100_000
	for step := range 150 {
		f := files[rnd.IntN(2)]
		off := rnd.Uint64N(reach)
		if rnd.IntN(3) == 0 {
			off = uint64(len(want))
		}
		switch op := rnd.IntN(20); {
		case op < 10:
			p := make([]byte, 1+rnd.IntN(1<<rnd.IntN(16)))
			for i := range p {
				p[i] = byte(rnd.Uint32())
			}
			how := vfs.Unstable
			if rnd.IntN(6) == 0 {
				how = vfs.FileSync
			}
			n, err := vfs.WriteFull(ctx, f, p, off, how, new(vfs.Written))
			if err != nil || n != len(p) {
				t.Fatalf("step %d: write of %d at %d: %d, %v", step, len(p), off, n, err)
			}
			grow(off + uint64(len(p)))
			copy(want[off:], p)
		case op < 12:
			// A sequence, which begins to read ahead, with writes in between.
			step := 1 + rnd.IntN(5000)
			for range rnd.IntN(20) {
				p := make([]byte, step)
				n, eof, err := vfs.ReadFull(ctx, f, p, off)
				exp := want[min(off, uint64(len(want))):]
				exp = exp[:min(len(exp), len(p))]
				if err != nil || !bytes.Equal(p[:n], exp) || n < len(p) && !eof || eof && off+uint64(n) < uint64(len(want)) {
					t.Fatalf("step %d: read of %d at %d in a row: %d of %d bytes, eof %v, %v", step, len(p), off, n, len(exp), eof, err)
				}
				off += uint64(n)
				if rnd.IntN(4) == 0 {
					at := off + rnd.Uint64N(20_000)
					p := []byte{byte(step), byte(n)}
					r.write(files[rnd.IntN(2)], at, p)
					grow(at + 2)
					copy(want[at:], p)
				}
				if rnd.IntN(8) == 0 {
					r.ok(r.commit(f))
				}
			}
		case op < 15:
			p := bytes.Repeat([]byte{0xee}, 1+rnd.IntN(reach/2))
			n, eof, err := vfs.ReadFull(ctx, f, p, off)
			exp := want[min(off, uint64(len(want))):]
			exp = exp[:min(len(exp), len(p))]
			if err != nil || !bytes.Equal(p[:n], exp) || n < len(p) && !eof || eof && off+uint64(n) < uint64(len(want)) {
				t.Fatalf("step %d: read of %d at %d: %d of %d bytes, eof %v, %v, equal %v", step, len(p), off, n, len(exp), eof, err, bytes.Equal(p[:n], exp))
			}
		case op < 17:
			size := rnd.Uint64N(reach)
			_, err := f.Truncate(ctx, size)
			r.ok(err)
			want = want[:min(size, uint64(len(want)))]
			grow(size)
		case op < 18:
			r.below.Restart()
		default:
			r.ok(r.commit(f))
			if rnd.IntN(2) == 0 {
				r.wantBelow(h, want)
				r.setFault(restarts)
			}
		}
	}
	r.ok(a.Close(ctx))
	r.ok(b.Close(ctx))
	r.wantBelow(h, want)
}

// slowReply is an FS whose COMMITs are answered late: reply runs in between; and
// wrote, of WRITEs.
type slowReply struct {
	vfs.FS
	reply func()
	wrote func(off uint64)
}

type slowFile struct {
	vfs.File
	fs *slowReply
}

func (s *slowReply) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	f, opened, err := s.FS.Open(ctx, at, how)
	if err != nil {
		return nil, opened, err
	}
	return &slowFile{f, s}, opened, nil
}

func (f *slowFile) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (int, error) {
	wrote := f.fs.wrote
	n, err := f.File.WriteAt(ctx, p, off, how, w)
	if wrote != nil {
		wrote(off)
	}
	return n, err
}

func (f *slowFile) Commit(ctx context.Context, off, n uint64, w *vfs.Written) error {
	err := f.File.Commit(ctx, off, n, w)
	if f.fs.reply != nil {
		f.fs.reply()
	}
	return err
}

// TestWriteDuringCommit: a WRITE that is answered after the COMMIT was carried
// out is not covered by it, though their verifiers are the same.
func TestWriteDuringCommit(t *testing.T) {
	r := newRig(t, memfs.Options{WriteMax: 4096}, Options{})
	slow := &slowReply{FS: r.below}
	r.over(slow)
	f, h := r.open("f", vfs.OpenHow{})
	data := pattern(8192)
	r.write(f, 0, data[:4096])
	slow.reply = func() {
		slow.reply = nil
		r.write(f, 4096, data[4096:])
		_, err := r.fs.GetAttr(t.Context(), h, vfs.MaskSize)
		r.ok(err)
	}
	r.ok(r.commit(f))
	r.below.Restart()
	r.ok(f.Close(t.Context()))
	r.wantBelow(h, data)
}

// TestTruncateDuringCommit: bytes that a commit sends again stay behind while
// the size is being changed, and do not come back afterwards.
func TestTruncateDuringCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, memfs.Options{WriteMax: 4096}, Options{})
		f, h := r.open("f", vfs.OpenHow{})
		r.write(f, 0, pattern(10_000))
		_, err := r.fs.GetAttr(t.Context(), h, vfs.MaskSize)
		r.ok(err)
		r.below.Restart()
		let := make(chan struct{})
		r.setFault(func(_ context.Context, op string) error {
			if op == "truncate" {
				<-let
			}
			return nil
		})
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := f.Truncate(t.Context(), 100); err != nil {
				t.Errorf("Truncate: %v", err)
			}
		})
		synctest.Wait()
		before := r.count("write")
		wg.Go(func() {
			if err := r.commit(f); err != nil {
				t.Errorf("Commit: %v", err)
			}
		})
		synctest.Wait()
		if n := r.count("write") - before; n != 0 {
			t.Errorf("%d WRITEs were sent while the size was changed", n)
		}
		close(let)
		wg.Wait()
		r.ok(f.Close(t.Context()))
		r.wantBelow(h, pattern(100))
	})
}

// TestNoGoroutinesLeft: nothing runs when no WRITE is in flight.
// inBubble counts the goroutines of synctest's bubbles. Those of the runtime, which runs
// finalizers in one, come and go.
func inBubble() int {
	stacks := make([]byte, 1<<20)
	return bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte("synctest bubble "))
}

func TestNoGoroutinesLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, memfs.Options{WriteMax: 4096}, Options{})
		f, _ := r.open("f", vfs.OpenHow{})
		before := inBubble()
		r.write(f, 0, pattern(100_000))
		synctest.Wait()
		if n := inBubble(); before == 0 || n > before {
			t.Errorf("%d goroutines, %d before", n, before)
		}
		r.ok(f.Close(t.Context()))
	})
}
