package job

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/internal/client/writeback"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/vfs"
)

// large are the bytes of a file in these tests that is copied in parts: of more than testLarge.
const (
	testLarge = 128 << 10
	large     = 8 * testLarge
)

// partly is the copy of a tree with a large file, or of that file alone, which is broken off.
type partly struct {
	t        *testing.T
	src, dst *tree
	out      hooks
	dir      *os.Root
	single   bool
	verify   bool
	id       string
}

func newPartly(t *testing.T) *partly {
	p := &partly{t: t, id: "this job", dir: recordDir(t)}
	p.src, p.dst = mem(t, memfs.Options{}), mem(t, memfs.Options{Fault: p.out.fault, WriteMax: 16 << 10})
	p.src.file("sub/large", 0o644, pattern(large, 1))
	p.src.file("sub/small", 0o644, pattern(1000, 2))
	p.src.file("other", 0o644, pattern(1000, 3))
	p.src.settle()
	return p
}

func (p *partly) run(ctx context.Context) (Summary, string, error) {
	p.t.Helper()
	o, v := options(p.t, p.src, p.dst, "copy")
	o.Record, o.ID, o.Large, o.Verify, o.Parallel = p.dir, p.id, testLarge, p.verify, 1
	if p.single {
		o.Source.Handle = p.src.at("sub/large")
		o.Record, o.Parts, o.Tag, o.Sweep = nil, p.dir, "0123", true
	}
	s, err := Copy(ctx, o)
	return s, v.String(), err
}

// breakOff runs the copy until a part of the large file was noted, and breaks it off: from then on each
// operation calls how.
func (p *partly) breakOff(how func(cancel func()) error) (Summary, string, error) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	defer cancel()
	var broken atomic.Bool
	whole := p.dst.fs
	defer func() { p.dst.fs = whole }()
	p.dst.fs = &counting{FS: whole, count: func(int) {}, before: inHalf(p.dir, &broken)}
	p.out.set(func(int, string, vfs.Handle) error {
		if broken.Load() {
			return how(cancel)
		}
		return nil
	})
	s, told, err := p.run(ctx)
	p.out.set(nil)
	return s, told, err
}

func (p *partly) interrupt() (Summary, string, error) {
	return p.breakOff(func(cancel func()) error { cancel(); return nil })
}

// written counts the bytes that reach the destination while f runs.
func (p *partly) written(f func()) (n uint64) {
	whole := p.dst.fs
	var mu sync.Mutex
	p.dst.fs = &counting{FS: whole, count: func(bytes int) { mu.Lock(); n += uint64(bytes); mu.Unlock() }}
	f()
	p.dst.fs = whole
	return n
}

// inHalf sets reached when a write is in the second half of a file, and something is noted of one. It holds such
// writes until then. No worker for what is before waits for that.
func inHalf(dir *os.Root, reached *atomic.Bool) func(off uint64) {
	return func(off uint64) {
		for all, err := Parts(dir); off >= large/2 && len(all) == 0 && err == nil && !reached.Load(); all, err = Parts(dir) {
			runtime.Gosched()
		}
		reached.CompareAndSwap(false, off >= large/2)
	}
}

// counting counts what is written to its files.
type counting struct {
	vfs.FS
	count  func(int)
	before func(off uint64) // of each write
}

func (f *counting) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	file, opened, err := f.FS.Open(ctx, at, how)
	if err != nil {
		return nil, opened, err
	}
	return &countingFile{file, f}, opened, nil
}

type countingFile struct {
	vfs.File
	fs *counting
}

func (f *countingFile) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (int, error) {
	if f.fs.before != nil {
		f.fs.before(off)
	}
	n, err := f.File.WriteAt(ctx, p, off, how, w)
	f.fs.count(n)
	return n, err
}

// TestLargeGoesOn: a copy is broken off in a large file, by its user, by the loss of a server or by a kill. The next run writes
// what was missing, and no temporary is left.
func TestLargeGoesOn(t *testing.T) {
	for _, how := range []string{"interrupted", "silent", "killed"} {
		for _, single := range []bool{false, true} {
			for _, verify := range []bool{false, true} {
				p := newPartly(t)
				p.single, p.verify = single, verify
				var s Summary
				var err error
				var told string
				switch how {
				case "interrupted":
					s, told, err = p.interrupt()
				case "silent":
					s, told, err = p.breakOff(func(func()) error { return vfs.ErrNoAnswer })
				case "killed":
					s, err = p.killed()
				}
				if s.ExitCode(err) == ExitDone {
					t.Fatalf("%s: it was not broken off", how)
				}
				if how != "killed" && (s.Kept != 1 || s.Left > 0 || !strings.Contains(told, "the next run goes on there")) {
					t.Errorf("%s: %+v\n%s", how, s, told)
				}
				all, err := Parts(p.dir)
				if err != nil || len(all) != 1 || len(p.dst.temps()) != 1 {
					t.Fatalf("%s: %+v, %v, %q", how, all, err, p.dst.temps())
				}
				wrote := p.written(func() { s, told, err = p.run(t.Context()) })
				if s.ExitCode(err) != ExitDone || s.Kept > 0 {
					t.Fatalf("%s: %v, %+v\n%s", how, err, s, told)
				}
				if rest := large - all[0].Bytes; wrote > rest+4000 || s.Bytes > rest+2000 || !strings.Contains(told, "it goes on behind") {
					t.Errorf("%s: %d bytes were missing, %d were written, %d told\n%s", how, rest, wrote, s.Bytes, told)
				}
				p.isWhole(how)
			}
		}
	}
}

// killed is a run whose process dies while it writes: nothing is cleaned up, or noted.
func (p *partly) killed() (s Summary, err error) {
	p.t.Helper()
	var before []Part
	var died sync.Once // several writes may be under way
	saved := p.dir
	p.out.set(nil)
	s, _, err = p.breakOff(func(func()) error {
		died.Do(func() { before, _ = Parts(saved) })
		return errDead
	})
	if werr := writeParts(saved, before); werr != nil { // what the dead process would not have removed
		p.t.Fatal(werr)
	}
	return s, err
}

// isWhole fails unless the copy is the source, and nothing else is there.
func (p *partly) isWhole(what string) {
	p.t.Helper()
	if p.single {
		if got, want := p.dst.read(p.dst.at("copy"), large+1), p.src.read(p.src.at("sub/large"), large+1); !bytes.Equal(got, want) {
			p.t.Errorf("%s: the copy differs", what)
		}
	} else if d := diff(p.src.list(p.src.root), p.dst.list(p.dst.at("copy"))); d != "" {
		p.t.Errorf("%s: %.500s", what, d)
	}
	if temps := p.dst.temps(); len(temps) > 0 {
		p.t.Errorf("%s: left behind: %q", what, temps)
	}
	if _, err := p.dir.Lstat(PartsFile); !errors.Is(err, os.ErrNotExist) {
		p.t.Errorf("%s: the parts' file is left: %v", what, err)
	}
}

// TestLargeInDoubt: what is not as it was is copied anew, and that is told. Temporaries of which no file
// is made are removed in the end.
func TestLargeInDoubt(t *testing.T) {
	for _, tt := range []struct {
		what   string
		change func(p *partly, temp string)
		resume bool
	}{
		{"nothing", func(*partly, string) {}, true},
		{"the source", func(p *partly, _ string) { p.src.write(p.src.at("sub/large"), 5, []byte("x")) }, false},
		{"the source is small", func(p *partly, _ string) {
			p.src.set(p.src.at("sub/large"), vfs.SetAttr{Valid: vfs.MaskSize, Size: 10})
		}, false},
		{"the source is gone", func(p *partly, _ string) {
			if _, err := p.src.fs.Remove(t.Context(), p.src.at("sub"), "large", false); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"its directory is gone", func(p *partly, _ string) {
			for _, name := range []string{"large", "small"} {
				if _, err := p.src.fs.Remove(t.Context(), p.src.at("sub"), name, false); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := p.src.fs.Remove(t.Context(), p.src.root, "sub", true); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"no temporary", func(p *partly, temp string) {
			if _, err := p.dst.fs.Remove(t.Context(), p.dst.at("copy/sub"), temp, false); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"the temporary's mode", func(p *partly, temp string) { p.dst.set(p.dst.at("copy/sub/"+temp), mode(0o666)) }, false},
		{"a damaged file", func(p *partly, _ string) {
			b, err := p.dir.ReadFile(PartsFile)
			if err == nil {
				b[60] ^= 1
				err = p.dir.WriteFile(PartsFile, b, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, false},
		{"no file", func(p *partly, _ string) {
			if err := p.dir.Remove(PartsFile); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"another job", func(p *partly, _ string) { // as begun anew with --no-resume
			p.id = "another job"
			if err := p.dir.Remove(RecordFile); err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		t.Run(tt.what, func(t *testing.T) {
			p := newPartly(t)
			if _, told, err := p.interrupt(); err == nil {
				t.Fatalf("it was not broken off\n%s", told)
			}
			all, err := Parts(p.dir)
			if err != nil || len(all) != 1 {
				t.Fatal(all, err)
			}
			tt.change(p, all[0].Temp)
			var s Summary
			var told string
			wrote := p.written(func() { s, told, err = p.run(t.Context()) })
			if s.ExitCode(err) != ExitDone || s.Kept+s.Left > 0 {
				t.Fatalf("%v, %+v\n%s", err, s, told)
			}
			if resumed := strings.Contains(told, "goes on behind"); resumed != tt.resume || resumed && wrote > large-all[0].Bytes+3000 {
				t.Errorf("resumed %v, %d bytes were written, %d had been\n%s", resumed, wrote, all[0].Bytes, told)
			}
			if strings.Contains(tt.what, "gone") { // what the source has lost stays in the copy
				if temps := p.dst.temps(); len(temps) > 0 {
					t.Errorf("left behind: %q", temps)
				}
				return
			}
			p.isWhole(tt.what)
		})
	}
}

// TestLargeKilledAtChance kills copies at chance points, over a client's owner of dirty bytes, with a server that forgets what is not
// committed. In the end the copy is whole.
func TestLargeKilledAtChance(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	dir := recordDir(t)
	var k hooks
	src, below := mem(t, memfs.Options{}), memfs.New(memfs.Options{Fault: k.fault, WriteMax: 16 << 10})
	src.file("a", 0o644, pattern(large, 1))
	src.file("b/c", 0o644, pattern(large+7, 2))
	src.file("b/d", 0o644, pattern(5000, 3))
	src.settle()
	const last = 16
	kills, resumed := 0, 0
	for run := range last + 1 {
		dst := newTree(t, below)
		dst.fs = writeback.New(below, writeback.Options{MaxDirty: 256 << 10})
		var reached atomic.Bool
		reached.Store(run%2 == 1)
		if run%2 == 0 {
			dst.fs = &counting{FS: dst.fs, count: func(int) {}, before: inHalf(dir, &reached)}
		}
		var after atomic.Int64
		dies := int64(1 + rnd.IntN(60))
		k.set(func(int, string, vfs.Handle) error {
			if run < last && reached.Load() && after.Add(1) >= dies {
				return vfs.ErrIO // which nothing tries again
			}
			return nil
		})
		o, v := options(t, src, dst, "copy")
		o.Record, o.ID, o.Large = dir, "this job", testLarge
		held := heldParts(t, &k, dir)
		s, err := Copy(t.Context(), o)
		held()
		k.set(nil)
		below.Restart()
		resumed += strings.Count(v.String(), "goes on behind")
		if s.ExitCode(err) == ExitDone {
			break
		}
		if kills++; run == last {
			t.Fatalf("the last run: %v, %+v\n%s", err, s, v)
		}
	}
	dst := newTree(t, below)
	if d := diff(src.list(src.root), dst.list(dst.at("copy"))); d != "" || kills < 2 || resumed == 0 {
		t.Errorf("%d kills, %d times a file was gone on with: %.300s", kills, resumed, d)
	}
	if temps := dst.temps(); len(temps) > 0 {
		t.Errorf("left behind: %q", temps)
	}
}

// heldParts has the parts' file stay, from the moment of death on, as a dead process cannot change it.
func heldParts(t *testing.T, k *hooks, dir *os.Root) func() {
	t.Helper()
	k.mu.Lock()
	do := k.do
	k.mu.Unlock()
	if do == nil {
		return func() {}
	}
	var once sync.Once
	var at []Part
	var dead bool
	k.set(func(n int, op string, h vfs.Handle) error {
		err := do(n, op, h)
		if err != nil {
			once.Do(func() { at, _ = Parts(dir); dead = true })
		}
		return err
	})
	return func() {
		if dead {
			if err := writeParts(dir, at); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestLargeBound: when as many files are copied in part as are remembered, further ones are copied without.
func TestLargeBound(t *testing.T) {
	p := &parts{dir: recordDir(t), of: make(map[string]Part)}
	for i := range maxParts {
		one := samplePart(i)
		p.of[one.Temp] = one
	}
	if p.add(samplePart(maxParts)) {
		t.Error("there was room for one more")
	}
	if one := samplePart(5); !p.add(one) || !p.drop(one.Temp) || !p.add(samplePart(maxParts)) {
		t.Error("one that is known was refused, or there was no room behind it")
	}
	if all, err := Parts(p.dir); err != nil || len(all) != maxParts {
		t.Errorf("%d, %v", len(all), err)
	}
	bad := samplePart(7)
	bad.Path += "/../x"
	p.drop(samplePart(9).Temp)
	if p.add(bad) {
		t.Error("a path was taken that cannot be")
	}
}

func samplePart(i int) Part {
	return Part{strings.Repeat("d/", i%3) + "f", transfer.Mark{
		SourceFSID: [2]uint64{1, uint64(i)}, SourceID: 7, Size: 1 << 40, Mtime: epoch, Ctime: epoch.Add(5), TempFSID: [2]uint64{2, 3}, TempID: uint64(i), UID: 4, GID: 5,
		Temp: ".nfsbox-" + strings.Repeat("0", i/256) + string("0123456789abcdef"[i/16%16]) + string("0123456789abcdef"[i%16]) + ".tmp", Bytes: 1 << 39, End: uint64(i),
	}}
}

// FuzzParts: what is no file of parts is an error, and what is one is what is written again.
func FuzzParts(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(appendParts(nil, nil))
	two := appendParts(nil, []Part{samplePart(1), samplePart(300)})
	f.Add(two)
	whole := samplePart(2)
	whole.Whole, whole.Bytes, whole.End = "by this", 0, 0
	f.Add(appendParts(nil, []Part{samplePart(1), whole}))
	f.Add(two[:len(two)-30])
	f.Add(slices.Concat(two[:20], []byte{255}, two[21:]))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, b := range [][]byte{b, resealed(b)} {
			all, err := parseParts(b)
			if err != nil {
				continue
			}
			if again, err := parseParts(appendParts(nil, all)); err != nil || len(again) != len(all) {
				t.Errorf("%v, %v", again, err)
			}
			for i := range all {
				if all[i].Bytes == 0 && all[i].Whole == "" || all[i].Bytes > all[i].Size || all[i].End > all[i].Bytes {
					t.Errorf("%+v", all[i])
				}
			}
		}
	})
}

// resealed is b with the checksum that it should have.
func resealed(b []byte) []byte {
	if len(b) < 4 {
		return b
	}
	b = slices.Clone(b[:len(b)-4])
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}
