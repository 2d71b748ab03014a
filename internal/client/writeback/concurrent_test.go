package writeback

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestConcurrent has several callers read and write their own parts of one file,
// through opens of their own, while the server restarts now and then: each always
// reads what it has written.
func TestConcurrent(t *testing.T) {
	for _, dirty := range []int64{0, 64 << 10} {
		r := newRig(t, memfs.Options{ReadMax: 4096, WriteMax: 4096}, Options{MaxDirty: dirty})
		r.readAhead(r.below, 256<<10)
		var mu sync.Mutex
		faults := rand.New(rand.NewPCG(1, 2))
		const parts, part = 4, 150_001
		var files []vfs.File
		var h vfs.Handle
		for range parts {
			var f vfs.File
			f, h = r.open("f", vfs.OpenHow{})
			files = append(files, f)
		}
		r.setFault(func(_ context.Context, op string) error {
			mu.Lock()
			defer mu.Unlock()
			if op == "write" && faults.IntN(300) == 0 || op == "commit" && faults.IntN(30) == 0 {
				r.below.Restart()
			}
			return nil
		})
		want := make([]byte, parts*part)
		var wg sync.WaitGroup
		for i, f := range files {
			wg.Go(func() { ownPart(t, f, uint64(i*part), want[i*part:(i+1)*part], uint64(i)) })
		}
		wg.Wait()
		r.write(files[0], parts*part-1, want[parts*part-1:])
		for _, f := range files {
			r.ok(f.Close(t.Context()))
		}
		r.wantBelow(h, want)
	}
}

// ownPart writes and reads at random what starts at base, and notes it in want.
func ownPart(t *testing.T, f vfs.File, base uint64, want []byte, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 3))
	p := make([]byte, 20_000)
	for range 100 {
		at := rnd.IntN(len(want))
		q := p[:1+rnd.IntN(min(len(p), len(want)-at))]
		if rnd.IntN(3) == 0 {
			for i := range q {
				q[i] = byte(rnd.Uint32())
			}
			how := vfs.Stability(rnd.IntN(4) / 3 * 2)
			if err := put(t, f, q, base+uint64(at), how); err != nil {
				t.Errorf("write: %v", err)
				return
			}
			copy(want[at:], q)
			continue
		}
		step := 1 + rnd.IntN(6000)
		for ; at < len(want) && rnd.IntN(30) > 0; at += step {
			q := p[:min(step, len(want)-at)]
			n, eof, err := vfs.ReadFull(t.Context(), f, q, base+uint64(at))
			if err != nil || n < len(q) && !eof || !bytes.Equal(q[:n], want[at:at+n]) || bytes.ContainsFunc(want[at+n:at+len(q)], func(r rune) bool { return r != 0 }) {
				t.Errorf("read of %d at %d: %d, %v, %v, equal %v", len(q), at, n, eof, err, bytes.Equal(q[:n], want[at:at+n]))
				return
			}
		}
	}
}

// put writes q. What is unstable goes in a buffer, if f takes one and the offset is even.
func put(t *testing.T, f vfs.File, q []byte, off uint64, how vfs.Stability) error {
	if to, ok := f.(bufpool.Writer); ok && how == vfs.Unstable && off%2 == 0 {
		b := new(bufpool.Pool).Get(len(q))
		defer b.Release()
		copy(b.B, q)
		return to.WriteBuffer(t.Context(), b, off)
	}
	n, err := vfs.WriteFull(t.Context(), f, q, off, how, new(vfs.Written))
	if n != len(q) && err == nil {
		err = io.ErrShortWrite
	}
	return err
}
