package transfer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/internal/client/writeback"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// kept are the marks of one file, as a record would have them.
type kept struct {
	mu      sync.Mutex
	last    Mark
	all     []Mark
	skipped int64
	refuse  bool
	dead    func() bool // the process was killed, and notes nothing any more
}

func (k *kept) part(every uint64) *Part {
	return &Part{Every: every, Was: k.last, Skipped: func(n int64) { k.skipped += n }, Note: func(m Mark) bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.refuse || k.dead != nil && k.dead() {
			return false
		}
		k.last, k.all = m, append(k.all, m)
		return true
	}}
}

// tail is what a copy has written, in bytes, and where it began.
type tail struct {
	mu    sync.Mutex
	bytes int
	from  uint64
}

func (w *tail) over(f vfs.FS) vfs.FS {
	w.bytes, w.from = 0, 1<<63
	return &openFS{f, func(in vfs.File) vfs.File { return &tailFile{in, w} }}
}

type tailFile struct {
	vfs.File
	w *tail
}

func (f *tailFile) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (int, error) {
	f.w.mu.Lock()
	f.w.bytes, f.w.from = f.w.bytes+len(p), min(f.w.from, off)
	f.w.mu.Unlock()
	return f.File.WriteAt(ctx, p, off, how, w)
}

// holey is a pattern with runs of zeros.
func holey(n int) []byte {
	b := pattern(n)
	for at := 0; at < n; at += 30_000 {
		clear(b[at:min(at+17_000, n)])
	}
	return b
}

var errKilled = errors.New("the process is dead")

// TestPartKilled kills a copy at chance points, nothing is cleaned up, and the server forgets what is not
// committed. The next copy goes on behind the last mark, and writes nothing before it.
func TestPartKilled(t *testing.T) {
	const chunk = 8 << 10
	const size, every = 40*chunk + 77, 5 * chunk
	rnd := rand.New(rand.NewPCG(1, 2))
	went := 0
	for round := range 120 {
		var dead atomic.Bool
		var ops atomic.Int64
		at := int64(1 << 60)
		below := memfs.New(memfs.Options{Fault: func(ctx context.Context, _ string, _ vfs.Handle) error {
			if ops.Add(1) >= at {
				dead.Store(true)
			}
			if dead.Load() {
				return errKilled
			}
			return ctx.Err()
		}})
		src := mem(t, memfs.Options{})
		want := pattern(size)
		if round%3 == 1 {
			want = holey(size)
		}
		from := src.file("f", want)
		o, k := options(t), &kept{dead: dead.Load}
		o.Chunk, o.Window, o.Verify = chunk, 1+rnd.IntN(8), round%2 == 1
		wb := writeback.New(below, writeback.Options{MaxDirty: 128 << 10, Patience: 1})
		root, _, err := below.Root(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		at = ops.Load() + 1 + rnd.Int64N(60)
		dst := Target{FS: wb, Dir: root, Name: "f", Part: k.part(every)}
		_, err = File(t.Context(), from, dst, o)
		done := err == nil
		was, before := k.last, len(k.all)
		at = 1 << 60
		dead.Store(false)
		below.Restart()

		k.last, dst.Part = was, k.part(every)
		var w tail
		dst.FS = w.over(writeback.New(below, writeback.Options{MaxDirty: 128 << 10}))
		k.skipped = 0
		res, err := File(t.Context(), from, dst, o)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if was.Temp != "" && !done && before > 0 {
			if res.Resumed != was.Bytes || w.from < was.Bytes-was.Bytes%chunk || k.skipped != int64(was.Bytes) {
				// A copy that was killed behind its contents has other attributes, and begins anew.
				if res.Resumed != 0 || k.skipped != 0 {
					t.Errorf("round %d: went on at %d, %d were skipped, and wrote from %d; the mark was at %d", round, res.Resumed, k.skipped, w.from, was.Bytes)
				}
			} else {
				went++
			}
		}
		e := &end{t, below, root}
		if got := e.contents("f"); !slices.Equal(got, want) {
			t.Errorf("round %d: the copy has %d bytes of %d, and differs at %d", round, len(got), len(want), firstDifference(got[:min(len(got), size)], want))
		}
		for _, name := range e.names() {
			if name != "f" && name != was.Temp && was.Temp != "" {
				t.Errorf("round %d: %s is there, the mark's is %s", round, name, was.Temp)
			}
			if name == was.Temp && name != "" {
				t.Errorf("round %d: the mark's temporary is left", round)
			}
		}
		if k.last.Temp != "" {
			t.Errorf("round %d: a mark is left after the end: %+v", round, k.last)
		}
	}
	if went < 30 {
		t.Errorf("only %d of 120 copies went on", went)
	}
}

// brokenOff copies src with one worker until a mark is made at or behind bytes, and is broken off there.
func brokenOff(t *testing.T, from Source, dst Target, o *Options, k *kept, every, bytes uint64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	part := k.part(every)
	note := part.Note
	part.Note = func(m Mark) bool {
		ok := note(m)
		if m.Bytes >= bytes {
			cancel()
		}
		return ok
	}
	dst.Part, o.Window = part, 1
	if _, err := File(ctx, from, dst, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("it ended with %v", err)
	}
	if k.last.Temp == "" || k.last.Bytes < bytes {
		t.Fatalf("the mark is %+v", k.last)
	}
}

// TestPartInDoubt: what is not the mark's own temporary, or not of its source, is not gone on with. It is
// removed, and the copy is made anew.
func TestPartInDoubt(t *testing.T) {
	const chunk, every = 8 << 10, 4 * (8 << 10)
	ctx := context.Background()
	for _, tt := range []struct {
		what    string
		change  func(src, dst *end, k *kept)
		resumes bool
	}{
		{"nothing", func(_, _ *end, _ *kept) {}, true},
		{"the source's bytes", func(src, _ *end, _ *kept) { src.rewrite("f", 5*chunk, []byte("other")) }, false},
		{"the source, with its old times", func(src, _ *end, _ *kept) {
			src.rewrite("f", 5*chunk, []byte("other"))
			src.set(src.source("f").Handle, vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: epoch})
		}, false},
		{"the source's ctime", func(src, _ *end, _ *kept) {
			src.set(src.source("f").Handle, vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o640})
		}, false},
		{"a source of another id", func(_, _ *end, k *kept) { k.last.SourceID++ }, false},
		{"a source of another file system", func(_, _ *end, k *kept) { k.last.SourceFSID[1]++ }, false},
		{"no temporary", func(_, dst *end, k *kept) { dst.remove(k.last.Temp) }, false},
		{"a temporary of another id", func(_, _ *end, k *kept) { k.last.TempID++ }, false},
		{"another file with the name", func(_, dst *end, k *kept) {
			b := dst.contents(k.last.Temp)
			dst.remove(k.last.Temp)
			dst.set(dst.file(k.last.Temp, b).Handle, vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600})
		}, false},
		{"a shorter temporary", func(_, dst *end, k *kept) {
			dst.set(dst.source(k.last.Temp).Handle, vfs.SetAttr{Valid: vfs.MaskSize, Size: k.last.End - 1})
		}, false},
		{"a longer temporary", func(_, dst *end, k *kept) { dst.rewrite(k.last.Temp, 60*chunk, []byte("junk")) }, true},
		{"junk behind the mark", func(_, dst *end, k *kept) {
			dst.rewrite(k.last.Temp, k.last.Bytes, slices.Repeat([]byte("junk"), 100))
		}, true},
		{"its mode", func(_, dst *end, k *kept) {
			dst.set(dst.source(k.last.Temp).Handle, vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o644})
		}, false},
		{"its owner", func(_, dst *end, k *kept) {
			dst.set(dst.source(k.last.Temp).Handle, vfs.SetAttr{Valid: vfs.MaskUID, UID: 77})
		}, false},
		{"a second name", func(_, dst *end, k *kept) {
			if _, _, err := dst.fs.Link(ctx, dst.source(k.last.Temp).Handle, dst.root, "second"); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"a link in its place", func(_, dst *end, k *kept) {
			if _, _, err := dst.fs.Rename(ctx, dst.root, k.last.Temp, dst.root, "elsewhere"); err != nil {
				t.Fatal(err)
			}
			dst.make(k.last.Temp, vfs.CreateHow{Type: vfs.TypeSymlink, Target: "elsewhere"})
		}, false},
		{"the first bytes", func(_, dst *end, k *kept) { dst.rewrite(k.last.Temp, 3, []byte{0}) }, false},
		{"the last bytes", func(_, dst *end, k *kept) { dst.rewrite(k.last.Temp, k.last.Bytes-1, []byte{0}) }, false},
		{"a mark without a copy", func(_, _ *end, k *kept) { k.last.Temp = ".nfsbox-0123456789abcdef.tmp" }, false},
	} {
		t.Run(tt.what, func(t *testing.T) {
			src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
			from, o, k := src.file("f", pattern(40*chunk+7)), options(t), new(kept)
			o.Chunk = chunk
			brokenOff(t, from, dst.target("f"), o, k, every, 3*every)
			temp := k.last.Temp
			src.t, dst.t = t, t
			tt.change(src, dst, k)
			was, to := k.last, dst.target("f")
			from = src.source("f")
			to.Part = k.part(every)
			want := src.contents("f")
			src.set(from.Handle, vfs.SetAttr{Valid: vfs.MaskAtime, Atime: epoch.Add(2 * 3600e9)})
			if tt.resumes { // the set has changed the ctime
				to.Part.Was.Ctime = src.source("f").Attr.Ctime
			}
			res, err := File(t.Context(), src.source("f"), to, o)
			if err != nil {
				t.Fatal(err)
			}
			if resumed := res.Resumed == was.Bytes; resumed != tt.resumes || k.skipped != int64(res.Resumed) || !tt.resumes && res.Resumed != 0 {
				t.Errorf("it went on at %d of %d, and %d were skipped", res.Resumed, was.Bytes, k.skipped)
			}
			if got := dst.contents("f"); !slices.Equal(got, want) {
				t.Errorf("the copy differs at %d of %d, %d", firstDifference(got[:min(len(got), len(want))], want[:min(len(got), len(want))]), len(got), len(want))
			}
			if k.last.Temp != "" {
				t.Errorf("a mark is left: %+v", k.last)
			}
			if names := dst.names(); slices.Contains(names, temp) && was.Temp == temp {
				t.Errorf("the temporary is left: %q", names)
			}
		})
	}
}

func (e *end) rewrite(name string, off uint64, b []byte) {
	e.t.Helper()
	ctx := context.Background()
	f, _, err := e.fs.Open(ctx, vfs.At{H: e.source(name).Handle}, &vfs.OpenHow{Access: vfs.ShareWrite})
	if err != nil {
		e.t.Fatal(err)
	}
	var w vfs.Written
	if _, err := vfs.WriteFull(ctx, f, b, off, vfs.FileSync, &w); err != nil {
		e.t.Fatal(err)
	}
	if err := f.Close(ctx); err != nil {
		e.t.Fatal(err)
	}
}

// TestPartFails: a temporary that is noted stays only if the copy was broken off. A mark that is not kept is
// the last.
func TestPartFails(t *testing.T) {
	const chunk, every = 8 << 10, 4 * (8 << 10)
	for _, tt := range []struct {
		err    error
		stays  bool
		refuse bool
	}{
		{vfs.ErrNoAnswer, true, false}, {vfs.ErrNoAnswer, false, true}, {vfs.ErrNoSpace, false, false}, {vfs.ErrIO, false, false}, {vfs.ErrStale, false, false},
	} {
		var out hooks
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{Fault: out.fault})
		from, o, k := src.file("f", pattern(40*chunk)), options(t), &kept{refuse: tt.refuse}
		o.Chunk = chunk
		to := dst.target("f")
		to.Part, o.Window = k.part(every), 1
		out.start(30, tt.err)
		if _, err := File(t.Context(), from, to, o); !errors.Is(err, tt.err) {
			t.Errorf("%v: it ended with %v", tt.err, err)
		}
		if n := out.count("commit"); tt.refuse && n != 1 {
			t.Errorf("after a mark that was not kept there were %d commits", n)
		}
		out.start(0, nil)
		if got := len(dst.names()) == 1; got != tt.stays || (k.last.Temp != "") != tt.stays {
			t.Errorf("%v: there are %q, the mark is %+v", tt.err, dst.names(), k.last)
		}
	}
}

// TestPartVerify: bytes of the beginning that are not the source's are found, as all of it is read back.
func TestPartVerify(t *testing.T) {
	const chunk, every = 64 << 10, 4 * (64 << 10)
	for _, spoil := range []bool{false, true} {
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
		want := holey(40*chunk + 5)
		from, o, k := src.file("f", want), options(t), new(kept)
		o.Chunk = chunk
		o.Verify = true
		brokenOff(t, from, dst.target("f"), o, k, every, 3*every)
		if spoil { // between the edges
			dst.rewrite(k.last.Temp, 3*chunk, []byte("spoilt"))
		}
		to := dst.target("f")
		to.Part = k.part(every)
		res, err := File(t.Context(), from, to, o)
		if spoil != errors.Is(err, ErrVerify) || !spoil && (!res.Verified || res.Resumed == 0) {
			t.Errorf("spoilt %v: %+v, %v", spoil, res, err)
		}
		if !spoil && !slices.Equal(dst.contents("f"), want) {
			t.Error("the copy differs")
		}
		dst.noTemps()
	}
}

// TestPartMarks: a mark covers what is written without a gap, however the workers end, and comes after the
// commit.
func TestPartMarks(t *testing.T) {
	const chunk, every = 8 << 10, 4 * (8 << 10)
	src, below := mem(t, memfs.Options{}), memfs.New(memfs.Options{})
	root, _, err := below.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := pattern(100*chunk + 3)
	from, o, k := src.file("f", want), options(t), new(kept)
	o.Chunk = chunk
	o.Window = 16
	marks := 0
	e := &end{t, below, root}
	dst := Target{FS: below, Dir: root, Name: "f", Part: k.part(every)}
	note := dst.Part.Note
	dst.Part.Note = func(m Mark) bool {
		if marks++; m.Temp != "" {
			if err := stableUpTo(below, e, m, want); err != nil {
				t.Error(err)
			}
		}
		return note(m)
	}
	if _, err := File(t.Context(), from, dst, o); err != nil {
		t.Fatal(err)
	}
	if marks < 2 || marks > 101/4+2 { // few, if the other workers are quick meanwhile
		t.Errorf("%d marks", marks)
	}
	for i := 1; i < len(k.all)-1; i++ {
		if k.all[i].Bytes < k.all[i-1].Bytes+every {
			t.Errorf("marks at %d and %d", k.all[i-1].Bytes, k.all[i].Bytes)
		}
	}
}

// stableUpTo is an error unless the temporary has the bytes of the mark.
func stableUpTo(_ *memfs.FS, e *end, m Mark, want []byte) error {
	b := e.contents(m.Temp)
	if uint64(len(b)) < m.End || m.End > m.Bytes || firstDifference(b[:m.Bytes], want[:m.Bytes]) != int(m.Bytes) {
		return fmt.Errorf("the mark says %d, %d; there are %d", m.Bytes, m.End, len(b))
	}
	return nil
}
