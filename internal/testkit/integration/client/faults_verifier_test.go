package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/internal/testkit/sim/rpcfault"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// forgetful is a memfs that loses power when one of its operations begins: what
// was written and not committed is gone, and the verifier is another.
type forgetful struct {
	*memfs.FS
	hook  atomic.Pointer[func(op string)]
	times atomic.Int64
}

func newForgetful() *forgetful {
	f := new(forgetful)
	f.FS = memfs.New(memfs.Options{Mode: 0o777, Fault: func(_ context.Context, op string, _ vfs.Handle) error {
		if hook := f.hook.Load(); hook != nil {
			(*hook)(op)
		}
		return nil
	}})
	return f
}

// on has hook asked at every operation; nil ends it.
func (f *forgetful) on(hook func(op string)) {
	if hook == nil {
		f.hook.Store(nil)
		return
	}
	f.hook.Store(&hook)
}

func (f *forgetful) lose() {
	f.times.Add(1)
	f.Restart()
}

// forgetting are the moments at which the power goes.
var forgetting = []struct {
	name string
	hook func(f *forgetful, seed uint64) func(op string)
}{
	{"before the first COMMIT", func(f *forgetful, _ uint64) func(string) {
		var n atomic.Int64
		return func(op string) {
			if op == "commit" && n.Add(1) == 1 {
				f.lose()
			}
		}
	}},
	{"before three COMMITs in a row", func(f *forgetful, _ uint64) func(string) {
		var n atomic.Int64
		return func(op string) {
			if op == "commit" && n.Add(1) <= 3 {
				f.lose()
			}
		}
	}},
	{"between WRITEs", func(f *forgetful, _ uint64) func(string) {
		var n atomic.Int64
		return func(op string) {
			if op != "write" {
				return
			}
			if i := n.Add(1); i%11 == 7 && i < 100 {
				f.lose()
			}
		}
	}},
	{"at six moments of chance", func(f *forgetful, seed uint64) func(string) {
		var mu sync.Mutex
		r, left := rand.New(rand.NewPCG(seed, 0)), 6
		return func(op string) {
			mu.Lock()
			now := (op == "write" || op == "commit") && left > 0 && r.IntN(12) == 0
			if now {
				left--
			}
			mu.Unlock()
			if now {
				f.lose()
			}
		}
	}},
}

const (
	verifierFiles = 4
	verifierSize  = 1<<20 + 12345
)

// TestVerifierChanges has a server lose unstable bytes between their WRITE and
// its COMMIT. When Close has returned every byte is on its disk.
func TestVerifierChanges(t *testing.T) {
	need.Time(t, "servers that lose what is not committed, at every place")
	for _, when := range forgetting {
		for _, lossy := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/cuts %v", when.name, lossy), func(t *testing.T) {
				for _, seed := range seeds(t, 3) {
					at := newForgetful()
					f := overTCP(t, at, seed, "timeo=50&retrans=5&wsize=32768")
					if lossy {
						f.p.SetRules(rpcfault.Rule{Procs: []*xdr.Proc{nfs3.NFSPROC3_WRITE, nfs3.NFSPROC3_COMMIT}, Every: 61,
							Fault: rpcfault.Fault{Kind: rpcfault.CutInReply}})
					}
					at.on(when.hook(at, seed))
					writeAll(t, f, seed)
					at.on(nil)
					if at.times.Load() == 0 {
						t.Errorf("seed %d: nothing was lost on the way", seed)
					}
					at.lose() // what is not stable now is not there
					for i := range uint64(verifierFiles) {
						if !bytes.Equal(get(t, at, fmt.Sprint("file", i)), pattern(i, seed, 0, verifierSize)) {
							t.Errorf("seed %d: file%d is not what was written", seed, i)
						}
					}
				}
			})
		}
	}
}

// writeAll writes files side by side.
func writeAll(t *testing.T, f *faulty, seed uint64) {
	t.Helper()
	var fails failures
	var wg sync.WaitGroup
	for i := range uint64(verifierFiles) {
		wg.Go(func() {
			if err := writeInPieces(t.Context(), f, fmt.Sprint("file", i), pattern(i, seed, 0, verifierSize)); err != nil {
				fails.add("seed %d: file%d: %v", seed, i, err)
			}
		})
	}
	wg.Wait()
	fails.report(t)
}

func writeInPieces(ctx context.Context, f *faulty, name string, data []byte) error {
	file, _, err := f.fs.Open(ctx, vfs.At{Dir: f.root, Name: name}, &vfs.OpenHow{
		Access: vfs.ShareWrite, Create: &vfs.CreateHow{Type: vfs.TypeReg, Mode: vfs.CreateExclusive, Verf: vfs.Verifier{byte(len(name))}},
	})
	if err != nil {
		return err
	}
	return errors.Join(fill(ctx, file, data), file.Close(ctx))
}

// fill writes data in pieces that are no whole pages, and commits it.
func fill(ctx context.Context, file vfs.File, data []byte) error {
	const piece = 50_000
	for off := 0; off < len(data); off += piece {
		if _, err := vfs.WriteFull(ctx, file, data[off:min(off+piece, len(data))], uint64(off), vfs.Unstable, new(vfs.Written)); err != nil {
			return fmt.Errorf("at %d: %w", off, err)
		}
	}
	return file.Commit(ctx, 0, 0, new(vfs.Written))
}

// TestServerRestartsWhileWriting takes the server away as well: its connections
// end, unstable bytes are lost, and it comes back at the same port.
func TestServerRestartsWhileWriting(t *testing.T) {
	const restarts = 3
	for _, seed := range seeds(t, 3) {
		at := newForgetful()
		f := overTCP(t, at, seed, "timeo=50&retrans=10&wsize=32768")
		r := rand.New(rand.NewPCG(seed, 0))
		var due [restarts]int64 // WRITEs
		for i := range due {
			due[i] = int64(i*40 + 1 + r.IntN(40))
		}
		var n atomic.Int64
		now := make(chan struct{}, restarts)
		at.on(func(op string) {
			if op == "write" && slices.Contains(due[:], n.Add(1)) {
				now <- struct{}{}
			}
		})
		ended := make(chan int)
		go func() {
			times := 0
			for range now {
				f.s.end()
				at.lose()
				f.s.begin()
				times++
			}
			ended <- times
		}()
		writeAll(t, f, seed)
		at.on(nil)
		close(now)
		if times := <-ended; times == 0 {
			t.Errorf("seed %d: the server was not restarted", seed)
		}
		at.lose()
		for i := range uint64(verifierFiles) {
			if !bytes.Equal(get(t, at, fmt.Sprint("file", i)), pattern(i, seed, 0, verifierSize)) {
				t.Errorf("seed %d: file%d is not what was written", seed, i)
			}
		}
	}
}

// TestVerifierNeverTheSame: a server that loses everything before each COMMIT
// stores nothing, and this is said.
func TestVerifierNeverTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := newForgetful()
		f := inMemory(t, at, 1, "")
		at.on(func(op string) {
			if op == "commit" {
				at.lose()
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := writeInPieces(ctx, f, "file", pattern(1, 1, 0, 200_000)); err == nil {
			t.Error("no error")
		}
		if n := at.times.Load(); n > 1000 {
			t.Errorf("%d COMMITs", n)
		}
	})
}

// TestAttributesOutliveResentBytes: attributes that are set while bytes wait for
// their COMMIT are not those of bytes that have to be sent again later.
func TestAttributesOutliveResentBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := newForgetful()
		f := inMemory(t, at, 1, "wsize=32768")
		put(t, at, "file", nil)
		file, opened, err := f.fs.Open(t.Context(), vfs.At{Dir: f.root, Name: "file"}, &vfs.OpenHow{Access: vfs.ShareWrite})
		if err != nil {
			t.Fatal(err)
		}
		data := pattern(1, 1, 0, 100_000)
		if _, err := vfs.WriteFull(t.Context(), file, data, 0, vfs.Unstable, new(vfs.Written)); err != nil {
			t.Fatal(err)
		}
		want := time.Date(2001, 2, 3, 4, 5, 6, 7, time.UTC)
		if _, err := f.fs.SetAttr(t.Context(), opened.H, &vfs.SetAttr{Valid: vfs.MaskMtime | vfs.MaskMode, Mtime: want, Mode: 0o4755}, nil); err != nil {
			t.Fatal(err)
		}
		at.lose()
		if err := errors.Join(file.Commit(t.Context(), 0, 0, new(vfs.Written)), file.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		root, _, err := at.Root(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, a, _, err := at.Lookup(t.Context(), root, "file")
		if err != nil || !a.Mtime.Equal(want) || a.Mode != 0o4755 {
			t.Errorf("mtime %v and not %v, mode %o, %v", a.Mtime, want, a.Mode, err)
		}
		if !bytes.Equal(get(t, at, "file"), data) {
			t.Error("not what was written")
		}
	})
}
