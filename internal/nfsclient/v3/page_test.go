package v3

import (
	"testing"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// FuzzPage decodes pages of listings: each ends, in an error or not, and yields
// no more entries than its bytes can hold.
func FuzzPage(f *testing.F) {
	res := nfs3.READDIRPLUS3res{}
	res.Resok.Reply.Entries = []nfs3.Entryplus3{{Name: []byte("a"), Cookie: 1}, {Name: []byte(".."), Cookie: 2}}
	seed, err := res.AppendXDR(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed, true)
	f.Add(seed[:40], false)
	f.Fuzz(func(t *testing.T, b []byte, plus bool) {
		l := &listing{plus: plus, want: vfs.MaskV3 | vfs.MaskHandle, fs: &FS{shared: &shared{}}}
		d := xdr.NewDecoder(b)
		if l.page.DecodeXDR(&d) != nil || l.page.status != nfs3.NFS3_OK {
			return
		}
		n := 0
		_, _ = l.deliver(oncrpc.Reply{}, func(e *vfs.Entry, err error) bool {
			if err != nil || string(e.Name) == "." || string(e.Name) == ".." {
				t.Fatalf("%q, %v", e.Name, err)
			}
			n++
			return true
		})
		if n > len(b)/20 {
			t.Fatalf("%d entries from %d bytes", n, len(b))
		}
	})
}

// TestLoopGuard finds circles of every size, wherever they begin, and none where
// there is none.
func TestLoopGuard(t *testing.T) {
	for _, start := range []uint64{0, 1, 5, 100} {
		for _, size := range []uint64{1, 2, 3, 7, 50} {
			var g loopGuard
			found := false
			for i := uint64(1); i < 4*(start+size)+8 && !found; i++ {
				at := i
				if i > start {
					at = start + 1 + (i-start-1)%size
				}
				found = g.back(at)
				if found && i <= start+size {
					t.Errorf("start %d, size %d: found at %d, before there was one", start, size, i)
				}
			}
			if !found {
				t.Errorf("start %d, size %d: not found", start, size)
			}
		}
	}
	var g loopGuard
	for i := range uint64(100000) {
		if g.back(i + 1) {
			t.Fatalf("found at %d, and there is none", i)
		}
	}
}
