package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/sim"
	"github.com/nfsbox/nfsbox/internal/testkit/sim/rpcfault"
	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// copying is what a copy to a server takes.
type copying struct {
	*faulty
	from *memfs.FS
	dir  vfs.Handle // of from
	o    transfer.Options
}

func newCopying(t *testing.T) *copying {
	t.Helper()
	return newCopyingTo(t, memfs.New(memfs.Options{Mode: 0o777}))
}

func newCopyingTo(t *testing.T, at vfs.FS) *copying {
	t.Helper()
	c := &copying{faulty: overTCP(t, at, 1, ""), from: memfs.New(memfs.Options{})}
	var err error
	if c.dir, _, err = c.from.Root(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.o = transfer.Options{Pool: new(bufpool.Pool), Random: rand.Reader, Chunk: transfer.MaxChunk}
	return c
}

// source makes a file of what is copied.
func (c *copying) source(name string, data []byte) transfer.Source {
	c.t.Helper()
	if err := write(c.t.Context(), &making{c.from}, c.dir, name, data); err != nil {
		c.t.Fatal(err)
	}
	h, a, _, err := c.from.Lookup(c.t.Context(), c.dir, name)
	if err != nil {
		c.t.Fatal(err)
	}
	return transfer.Source{FS: c.from, Handle: h, Attr: a, Dir: c.dir, Name: name}
}

// making opens by creating.
type making struct{ vfs.FS }

func (m *making) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	make := *how
	make.Create = &vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o640}}
	return m.FS.Open(ctx, at, &make)
}

func (c *copying) file(src transfer.Source) error {
	_, err := transfer.File(c.t.Context(), src, transfer.Target{FS: c.fs, Dir: c.root, Name: src.Name}, &c.o)
	return err
}

// bytesRead are those that the server has sent as results of READ.
func (c *copying) bytesRead() (n uint64) {
	for _, p := range c.s.srv.Stats().Procs {
		if p.Proc == nfs3.NFSPROC3_READ {
			n += p.BytesOut
		}
	}
	return n
}

// TestVerifyReadsFromServer: what a copy is compared with comes from the server, all
// of it, and none out of what was written behind or read ahead.
func TestVerifyReadsFromServer(t *testing.T) {
	c := newCopying(t)
	c.o.Verify = true
	for _, size := range []int{1000, 5<<20 + 12} {
		before := c.bytesRead()
		if err := c.file(c.source(fmt.Sprint(size), pattern(1, 1, 0, size))); err != nil {
			t.Fatal(err)
		}
		if n := c.bytesRead() - before; n < uint64(size) {
			t.Errorf("%d bytes: the server has sent %d to be compared", size, n)
		}
	}
}

// TestVerifyFindsWhatTheWireChanged has one byte of a WRITE changed on its way to the
// server. The copy fails, and its name is not there.
func TestVerifyFindsWhatTheWireChanged(t *testing.T) {
	for _, size := range []int{1000, 5 << 20} {
		c := newCopying(t)
		c.o.Verify = true
		c.p.SetRules(rpcfault.Rule{Procs: []*xdr.Proc{nfs3.NFSPROC3_WRITE}, Fault: rpcfault.Fault{
			Kind: rpcfault.EditCall, Edit: func(m *rpcfault.Message, _ *sim.Rand) { m.Record[len(m.Record)-1] ^= 1 },
		}})
		err := c.file(c.source("f", pattern(1, 1, 0, size)))
		if !errors.Is(err, transfer.ErrVerify) {
			t.Errorf("%d bytes: %v", size, err)
		}
		if list, err := names(t.Context(), c.fs, c.root); err != nil || len(list) > 0 {
			t.Errorf("%d bytes: the server has %q, %v", size, list, err)
		}
	}
}

// TestCopyWhileServerForgets copies a file while the server loses what is not committed, and
// changes its verifier, at every place where it may. The copy is right, and made once: no
// byte of the source is read again.
func TestCopyWhileServerForgets(t *testing.T) {
	const size = 5<<20 + 12
	for _, at := range []string{"write 1", "write 2", "write 5", "write 6", "write 7", "commit 1", "commit 2"} {
		var mu sync.Mutex
		var mem *memfs.FS
		count := make(map[string]int)
		mem = memfs.New(memfs.Options{Mode: 0o777, Fault: func(_ context.Context, op string, _ vfs.Handle) error {
			mu.Lock()
			defer mu.Unlock()
			count[op]++
			if fmt.Sprint(op, " ", count[op]) == at || op == "commit" && count[op] == 1 {
				mem.Restart()
			}
			return nil
		}})
		c := newCopyingTo(t, mem)
		want, moved := pattern(1, 1, 0, size), atomic.Int64{}
		c.o.Moved = func(n int64) { moved.Add(max(n, -n)) }
		if err := c.file(c.source("f", want)); err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		mem.Restart() // what is there now has been made stable
		if !bytes.Equal(get(t, mem, "f"), want) {
			t.Errorf("%s: bytes are lost", at)
		}
		if n := moved.Load(); n != size {
			t.Errorf("%s: %d bytes were moved, of %d", at, n, size)
		}
		if n := c.o.Pool.Outstanding(); n != 0 {
			t.Errorf("%s: %d buffers are still out", at, n)
		}
	}
}

// TestCopyToFullServer: the reason comes first, in one line.
func TestCopyToFullServer(t *testing.T) {
	for _, verify := range []bool{false, true} {
		c := newCopyingTo(t, memfs.New(memfs.Options{Mode: 0o777, MaxBytes: 2 << 20}))
		c.o.Verify = verify
		err := c.file(c.source("f", pattern(1, 1, 0, 5<<20)))
		if !errors.Is(err, vfs.ErrNoSpace) || errors.Is(err, vfs.ErrServerFault) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q", err)
		}
		if list, err := names(t.Context(), c.fs, c.root); err != nil || len(list) > 0 {
			t.Errorf("the server has %q, %v", list, err)
		}
	}
}

// TestCopyOfReplacedFiles: files that are replaced by rename between their listing and
// their copy, as on a live tree, are copied as they are now, though their handles
// are stale; and one that is gone has vanished.
func TestCopyOfReplacedFiles(t *testing.T) {
	c := newCopying(t)
	put := func(name string, data []byte) {
		t.Helper()
		if err := write(t.Context(), &making{c.at}, serverRoot(t, c.at), name, data); err != nil {
			t.Fatal(err)
		}
	}
	move := func(from, to string) {
		t.Helper()
		root := serverRoot(t, c.at)
		if _, _, err := c.at.Rename(t.Context(), root, from, root, to); err != nil {
			t.Fatal(err)
		}
	}
	sizes := []int{1000, 3 << 20}
	for i, size := range sizes {
		put(fmt.Sprint(i), pattern(1, 0, 0, size))
	}
	put("gone", pattern(1, 0, 0, 1000))
	var listed []transfer.Source
	for e, err := range c.fs.ReadDir(t.Context(), c.root, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, transfer.Source{FS: c.fs, Handle: e.Handle, Attr: e.Attr, Dir: c.root, Name: string(e.Name)})
	}
	for i, size := range sizes {
		put("new", pattern(2, 0, 0, size+i))
		move("new", fmt.Sprint(i))
	}
	move("gone", "elsewhere")
	if _, err := c.at.Remove(t.Context(), serverRoot(t, c.at), "elsewhere", false); err != nil {
		t.Fatal(err)
	}
	for _, src := range listed {
		_, err := transfer.File(t.Context(), src, transfer.Target{FS: c.from, Dir: c.dir, Name: src.Name}, &c.o)
		if src.Name == "gone" {
			if !errors.Is(err, transfer.ErrVanished) {
				t.Errorf("a name that is gone: %v", err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", src.Name, err)
		}
	}
	for i, size := range sizes {
		if !bytes.Equal(get(t, c.from, fmt.Sprint(i)), pattern(2, 0, 0, size+i)) {
			t.Errorf("the copy of %d is not of the file that has the name", i)
		}
	}
}

func serverRoot(t *testing.T, at vfs.FS) vfs.Handle {
	t.Helper()
	h, _, err := at.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestCopyTellsTimesThatNFSLacks: times before 1970 and after 2106 become the nearest
// one that NFSv3 can carry, and are counted. All others are kept, and no loss is told.
func TestCopyTellsTimesThatNFSLacks(t *testing.T) {
	at := time.Date(2001, 2, 3, 4, 5, 6, 789_012_345, time.UTC)
	for _, backend := range backends {
		c := newCopyingTo(t, backend.make(t))
		for i, x := range []struct {
			mode         uint32
			mtime, atime time.Time
			lost         bool
		}{
			{0o644, at, at, false},
			{0o6711, at, at, false},
			{0, at, at, false},
			{0o644, time.Unix(0, 1), time.Unix(1<<32-1, 999_999_999), false},
			{0o644, time.Unix(-1, 0), at, true},
			{0o644, time.Unix(1<<32, 0), at, true},
			{0o644, at, time.Unix(-1, 0), true},
		} {
			if os.Geteuid() != 0 {
				x.mode &= 0o777 // set-id bits of another's file, as root's is, are lost to a user
			}
			src := c.source(fmt.Sprint(i), pattern(1, 1, 0, 1000))
			set := vfs.SetAttr{Valid: vfs.MaskMode | vfs.MaskMtime | vfs.MaskAtime, Mode: x.mode, Mtime: x.mtime, Atime: x.atime}
			if _, err := c.from.SetAttr(t.Context(), src.Handle, &set, nil); err != nil {
				t.Fatal(err)
			}
			var err error
			if src.Attr, err = c.from.GetAttr(t.Context(), src.Handle, vfs.MaskV3); err != nil {
				t.Fatal(err)
			}
			res, err := transfer.File(t.Context(), src, transfer.Target{FS: c.fs, Dir: c.root, Name: src.Name}, &c.o)
			if err != nil || res.Lost != (transfer.Lost{Times: x.lost}) {
				t.Errorf("%s: mode %o, mtime %v, atime %v: lost %+v, %v", backend.name, x.mode, x.mtime, x.atime, res.Lost, err)
			}
		}
	}
}

// TestSmallCopyCalls: a file that fits one WRITE costs the server four calls: its
// name appears when all of it is stable, and so it is made, written, given its
// times, and renamed.
func TestSmallCopyCalls(t *testing.T) {
	const files = 50
	c := newCopying(t)
	var sources []transfer.Source
	for i := range files {
		sources = append(sources, c.source(fmt.Sprint(i), pattern(uint64(i), 1, 0, 2048)))
	}
	if err := c.file(c.source("first", pattern(1, 1, 0, 2048))); err != nil { // asks for limits
		t.Fatal(err)
	}
	before := c.s.srv.Stats().Calls
	var wg sync.WaitGroup
	for _, src := range sources { // at once: others' files are open while one is renamed
		wg.Go(func() {
			if err := c.file(src); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	total := uint64(0)
	calls := c.s.srv.Stats().Calls
	for name := range calls {
		calls[name] -= before[name]
		total += calls[name]
	}
	if total > 4*files {
		t.Errorf("%d calls for %d files: %v", total, files, calls)
	}
}
