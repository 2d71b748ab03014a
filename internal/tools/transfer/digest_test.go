package transfer

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestVerifySparse verifies copies of files that are nearly all holes, of up to an exabyte:
// holes are neither read nor hashed. What differs is found.
func TestVerifySparse(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	from, o := src.sparse("f", 20<<30, 25<<30+5), options(t)
	o.Verify = true
	src.set(from.Handle, vfs.SetAttr{Valid: vfs.MaskSize, Size: 1<<60 + 7})
	res, err := File(t.Context(), src.source("f"), dst.target("f"), o)
	if err != nil || !res.Verified || res.Bytes != 1<<60+7 {
		t.Fatalf("%v; %+v", err, res)
	}
	spoil := dst.target("g")
	spoil.FS = &openFS{dst.fs, func(f vfs.File) vfs.File { return &spoiler{File: f} }}
	if _, err := File(t.Context(), src.source("f"), spoil, o); !errors.Is(err, ErrVerify) {
		t.Errorf("a byte too much in a hole: %v", err)
	}
	dst.noTemps()
}

// spoiler is a file in which a byte appears in a hole when it is committed. It can tell
// where its holes are.
type spoiler struct{ vfs.File }

func (f *spoiler) Unwrap() any { return f.File }

func (f *spoiler) Commit(ctx context.Context, off, n uint64, w *vfs.Written) error {
	if _, err := f.WriteAt(ctx, []byte{1}, 1<<40, vfs.FileSync, new(vfs.Written)); err != nil {
		return err
	}
	return f.File.Commit(ctx, off, n, w)
}

// TestDigest: the same contents have the same digest however they are divided into data
// and holes, and others another one.
func TestDigest(t *testing.T) {
	const b = zeroBlock
	contents := [][]byte{
		nil, {0}, {1}, make([]byte, b-1), make([]byte, b), make([]byte, b+1), make([]byte, 5*b), pattern(5*b + 3),
		append(make([]byte, 3*b), pattern(b)...), append(pattern(b), make([]byte, 3*b)...),
		append(append(pattern(b+9), make([]byte, 3*b)...), pattern(b)...), append(append(pattern(b+9), make([]byte, 4*b)...), pattern(b)...),
		append(append(make([]byte, b), pattern(b)...), make([]byte, 2*b)...),
	}
	seen := map[[32]byte]int{}
	for i, c := range contents {
		var want [32]byte
		for k, step := range []int{1 << 20, 1, 100, b - 1, b, b + 1, 3 * b} {
			d := newDigest()
			for at := 0; at < len(c); at += step {
				part := c[at:min(at+step, len(c))]
				if k%2 == 0 && bytes.Count(part, []byte{0}) == len(part) {
					d.hole(uint64(len(part)))
					continue
				}
				d.write(part)
			}
			got := d.result()
			if k == 0 {
				want = got
			}
			if got != want {
				t.Errorf("contents %d in parts of %d: another digest", i, step)
			}
		}
		if j, ok := seen[want]; ok {
			t.Errorf("contents %d and %d have one digest", i, j)
		}
		seen[want] = i
	}
}
