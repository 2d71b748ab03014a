package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// fickle is a file system that forgets its cookies at random: some it refuses,
// once, though it knows what they mean; and now and then it changes its verifier
// and refuses all.
type fickle struct {
	vfs.FS

	mu      sync.Mutex
	rand    *rand.Rand
	epoch   byte
	pages   int // but for first ones
	refused int
}

func (f *fickle) As(*vfs.Caller) vfs.FS { return f }

// admit says whether a listing may go on from a position, and which epoch it is.
func (f *fickle) admit(from vfs.Pos) (epoch byte, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if from.Cookie == 0 {
		return f.epoch, true
	}
	if f.rand.IntN(100) == 0 {
		f.epoch++
	}
	if f.pages++; f.pages == 3 || f.rand.IntN(70) == 0 {
		f.refused++
		return f.epoch, false
	}
	return f.epoch, true
}

func (f *fickle) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, maxBytes uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		epoch, ok := f.admit(from)
		if !ok {
			yield(nil, vfs.ErrBadCookie)
			return
		}
		from.Verf[0] ^= epoch // what is of another epoch, memfs refuses
		for e, err := range f.FS.ReadDir(ctx, dir, from, want, maxBytes) {
			if e != nil {
				e.Next.Verf[0] ^= epoch
			}
			if !yield(e, err) {
				return
			}
			if e != nil {
				e.Next.Verf[0] ^= epoch // it is used again
			}
		}
	}
}

// TestDirectoryChanges lists a directory in which others create and remove, from
// a server that forgets cookies, in small pages: what is there throughout comes
// exactly once.
func TestDirectoryChanges(t *testing.T) {
	const kept, rounds = 700, 6
	for seed := range uint64(rounds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			mem := memfs.New(memfs.Options{Mode: 0o777})
			root, _, err := mem.Root(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for i := range kept {
				for _, name := range []string{"kept-%d", "early-%d"} {
					if _, _, _, err := mem.Create(t.Context(), root, fmt.Sprintf(name, i), &vfs.CreateHow{Type: vfs.TypeReg}); err != nil {
						t.Fatal(err)
					}
				}
			}
			f := &fickle{FS: mem, rand: rand.New(rand.NewPCG(seed, 1))}
			url := "nfs://127.0.0.1:" + serve(t, export.Export{Path: "/", FS: f}) + "/"
			var others sync.WaitGroup
			ctx, cancel := context.WithCancel(t.Context())
			defer others.Wait()
			defer cancel()
			fs := dial(t, url).FS()
			for i := range 2 {
				others.Go(func() { churn(ctx, t, fs, rand.New(rand.NewPCG(seed, uint64(i))), i, kept) })
			}
			seen := listKept(t, dial(t, url).FS(), uint32(1024<<(seed%3)))
			if len(seen) != kept {
				t.Errorf("%d entries, want %d", len(seen), kept)
			}
			for name, n := range seen {
				if n != 1 {
					t.Errorf("%s came %d times", name, n)
				}
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			t.Logf("%d cookies refused, %d verifiers", f.refused, f.epoch)
		})
	}
}

// churn creates files and removes them, and removes some of those that were
// there, until ctx ends.
func churn(ctx context.Context, t *testing.T, fs vfs.FS, r *rand.Rand, who, n int) {
	root, _, err := fs.Root(ctx)
	for i := 0; err == nil; i++ {
		name := fmt.Sprintf("late-%d-%d", who, i)
		if _, _, _, err = fs.Create(ctx, root, name, &vfs.CreateHow{Type: vfs.TypeReg}); err != nil {
			break
		}
		if i%2 == 0 {
			_, err = fs.Remove(ctx, root, name, false)
		} else if _, err = fs.Remove(ctx, root, fmt.Sprintf("early-%d", r.IntN(n)), false); errors.Is(err, vfs.ErrNoEnt) {
			err = nil
		}
	}
	if ctx.Err() == nil {
		t.Errorf("churn: %v", err)
	}
}

// listKept counts how often each of the kept files is listed.
func listKept(t *testing.T, fs vfs.FS, maxBytes uint32) map[string]int {
	root, _, err := fs.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]int)
	for e, err := range fs.ReadDir(t.Context(), root, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, maxBytes) {
		if err != nil {
			t.Fatalf("behind %d entries: %v", len(seen), err)
		}
		if string(e.Name[:5]) == "kept-" {
			seen[string(e.Name)]++
		}
	}
	return seen
}
