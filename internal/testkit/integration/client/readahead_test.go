package client

import (
	"bytes"
	"testing"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestReadAheadOverTheWire reads in a row, at random, and more than a READ
// carries at once.
func TestReadAheadOverTheWire(t *testing.T) {
	ctx := t.Context()
	const size = 8<<20 + 777
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i*7 ^ i>>11)
	}
	mem := memfs.New(memfs.Options{Mode: 0o777})
	put(t, mem, "file", data)
	s := start(t, export.Export{Path: "/", FS: mem})
	c := dial(t, "nfs://"+s.addr+"/?rsize=65536")
	root, _, err := c.FS().Root(ctx)
	if err != nil {
		t.Fatal(err)
	}
	open := func() vfs.File {
		f, _, err := c.FS().Open(ctx, vfs.At{Dir: root, Name: "file"}, &vfs.OpenHow{Access: vfs.ShareRead})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	read := func(f vfs.File, off, n int) {
		t.Helper()
		p := make([]byte, n)
		got, eof, err := vfs.ReadFull(ctx, f, p, uint64(off))
		want := data[min(off, size):min(off+n, size)]
		if err != nil || got != len(want) || !bytes.Equal(p[:got], want) || got < n && !eof {
			t.Fatalf("%d bytes at %d: %d, %v, %v", n, off, got, eof, err)
		}
	}
	f := open()
	for off := 0; off < size+5000; off += 5000 {
		read(f, off, 5000)
	}
	sequential := c.Stats().Buffers
	if sequential.ReadAheadHits < 1000 || sequential.ReadAheadWasted > 1<<20 || sequential.ReadAheadBytes > size {
		t.Errorf("in a row: %+v", sequential)
	}
	for i := range 500 {
		read(f, i*7919*4096%size, 100)
	}
	if random := c.Stats().Buffers; random.ReadAheadBytes != sequential.ReadAheadBytes {
		t.Errorf("at random: %+v", random)
	}
	if err := f.Close(ctx); err != nil {
		t.Error(err)
	}
	f = open()
	read(f, 0, size+1)
	read(f, 1, 3<<20)
	if err := f.Close(ctx); err != nil {
		t.Error(err)
	}
	if s := c.Stats().Buffers; s.ReadAhead != 0 {
		t.Errorf("%+v", s)
	}
}
