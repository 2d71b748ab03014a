package job

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// asked counts the operations of a memfs.
type asked struct {
	mu sync.Mutex
	n  map[string]int
}

func (a *asked) fault(_ context.Context, op string, _ vfs.Handle) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n[op]++
	return nil
}

// TestVerifyCalls counts what a comparison asks for. Names that both sides have cost nothing but
// their place in the listings, and directories of the source a LOOKUP in the end.
func TestVerifyCalls(t *testing.T) {
	const dirs, files, missing, extra = 20, 30, 7, 5
	from, to := asked{n: map[string]int{}}, asked{n: map[string]int{}}
	src, dst := mem(t, memfs.Options{Fault: from.fault}), mem(t, memfs.Options{Fault: to.fault})
	for d := range dirs {
		for f := range files {
			path := fmt.Sprintf("d%d/f%d", d, f)
			src.file(path, 0o644, nil)
			dst.file(path, 0o644, nil)
		}
	}
	for i := range missing {
		src.file(fmt.Sprint("d3/only", i), 0o644, nil)
	}
	for i := range extra {
		dst.file(fmt.Sprint("d4/only", i), 0o644, nil)
	}
	for _, tr := range []*tree{src, dst} {
		tr.each("", tr.root, func(_ string, h vfs.Handle, _ vfs.Attr) {
			tr.set(h, vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: epoch})
		})
	}
	clear(from.n)
	clear(to.n)
	s, got := verify(t, src, dst, nil)
	if s.Missing != missing || s.Extra != extra || s.Files != dirs*files || len(got) != missing+extra {
		t.Errorf("%+v, %q", s, got)
	}
	// A page, and one that is empty, of each directory; each directory once more in the end, and
	// that with extra names once more before they are believed.
	if from.n["readdir"] > 2*(dirs+1) || from.n["lookup"] != dirs+extra+1 || from.n["getattr"] > 3 {
		t.Errorf("the source was asked for %v", from.n)
	}
	if to.n["readdir"] > 2*(dirs+1) || to.n["lookup"] != missing || to.n["getattr"] > 2 {
		t.Errorf("the destination was asked for %v", to.n)
	}
}

// hiding leaves some names out of its first listings.
type hiding struct {
	vfs.FS
	left  *atomic.Int64 // such listings
	hides string        // names that begin so
}

func (f hiding) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, n uint32) iter.Seq2[*vfs.Entry, error] {
	hides := f.left.Add(-1) >= 0
	return func(yield func(*vfs.Entry, error) bool) {
		for e, err := range f.FS.ReadDir(ctx, dir, from, want, n) {
			if hides && err == nil && strings.HasPrefix(string(e.Name), f.hides) {
				continue
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// TestVerifyComesMeanwhile: what comes into a directory after it was listed, on either side, is on
// both sides. In the destination it is compared.
func TestVerifyComesMeanwhile(t *testing.T) {
	for _, n := range []int{1, 3*maxUnlisted + 10} {
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
		for i := range n {
			src.file(fmt.Sprint("new", i), 0o644, []byte("abc"))
			dst.file(fmt.Sprint("new", i), 0o644, []byte("abd"))
		}
		src.file("old", 0o644, nil)
		dst.file("old", 0o644, nil)
		for _, tr := range []*tree{src, dst} {
			tr.each("", tr.root, func(_ string, h vfs.Handle, _ vfs.Attr) {
				tr.set(h, vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: epoch})
			})
		}
		var one atomic.Int64
		one.Store(1)
		s, got := verify(t, src, &tree{t, hiding{dst.fs, &one, "new"}, dst.root}, nil)
		if s.Differences != uint64(n) || !slices.Contains(got, "content new0") || s.Missing+s.Extra+s.Errors > 0 {
			t.Errorf("%d in the destination: %+v, %.500q", n, s, got)
		}
		one.Store(1)
		s, got = verify(t, &tree{t, hiding{src.fs, &one, "new"}, src.root}, dst, nil)
		if len(got) > 0 || s.Files != 1 {
			t.Errorf("%d in the source: %+v, %.500q", n, s, got)
		}
	}
}

// TestVerifyFolds: names that the destination takes for others are missing there, however many.
func TestVerifyFolds(t *testing.T) {
	for _, n := range []int{1, 2*maxUnlisted + 10} {
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
		var want []string
		for i := range n {
			src.file(fmt.Sprint("d/File", i), 0o644, nil)
			src.file(fmt.Sprint("d/file", i), 0o644, nil)
			dst.file(fmt.Sprint("d/File", i), 0o644, nil)
			want = append(want, fmt.Sprint("missing d/file", i))
		}
		for _, tr := range []*tree{src, dst} {
			tr.each("", tr.root, func(_ string, h vfs.Handle, _ vfs.Attr) {
				tr.set(h, vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: epoch})
			})
		}
		s, got := verify(t, src, &tree{t, folding{dst.fs, strings.ToLower, new(sync.Mutex)}, dst.root}, nil)
		if slices.Sort(want); !slices.Equal(got, want) || s.Missing != uint64(n) || s.Errors > 0 {
			t.Errorf("%d names: %+v, %.500q", n, s, got)
		}
	}
}

// TestVerifyListingFails fails each page of the listings of a directory of several, on either side:
// nothing that is on both sides is called missing or extra.
func TestVerifyListingFails(t *testing.T) {
	const n = 500
	for _, side := range []string{"source", "destination"} {
		for page := 1; page <= 4; page++ {
			var in, out hooks
			src, dst := mem(t, memfs.Options{Fault: in.fault}), mem(t, memfs.Options{Fault: out.fault})
			for i := range n {
				src.file(fmt.Sprint("d/", i), 0o644, nil)
				dst.file(fmt.Sprint("d/", n-1-i), 0o644, nil)
			}
			for _, tr := range []*tree{src, dst} {
				tr.each("", tr.root, func(_ string, h vfs.Handle, _ vfs.Attr) {
					tr.set(h, vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: epoch})
				})
			}
			tr, k := src, &in
			if side == "destination" {
				tr, k = dst, &out
			}
			d, seen := tr.at("d"), 0
			k.set(func(_ int, op string, h vfs.Handle) error {
				if op == "readdir" && h == d {
					if seen++; seen >= page {
						return vfs.ErrIO
					}
				}
				return nil
			})
			s, got := verify(t, src, dst, nil)
			if s.Differences > 0 || s.Errors != 1 || !slices.Equal(got, []string{"error d"}) {
				t.Errorf("%s, page %d: %+v, %.500q", side, page, s, got)
			}
		}
	}
}
