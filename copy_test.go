package nfsbox_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"

	"github.com/nfsbox/nfsbox/internal/bufpool"
	"github.com/nfsbox/nfsbox/internal/memfs"
	"github.com/nfsbox/nfsbox/internal/sim"
	"github.com/nfsbox/nfsbox/internal/sim/rpcfault"
	"github.com/nfsbox/nfsbox/internal/transfer"
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
	c := &copying{faulty: overTCP(t, memfs.New(memfs.Options{Mode: 0o777}), 1, ""), from: memfs.New(memfs.Options{})}
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
