package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/client/writeback"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// statsOf are the counters of the client's wrapper.
func statsOf(t testing.TB, fs vfs.FS) writeback.Stats {
	t.Helper()
	s, ok := vfs.As[interface{ Stats() writeback.Stats }](fs)
	if !ok {
		t.Fatal("the client has no write-behind")
	}
	return s.Stats()
}

// TestClosedTooEarly closes a client under a file that is open: what the file
// had not made stable is not lost in silence.
func TestClosedTooEarly(t *testing.T) {
	c, err := nfsbox.Dial(t.Context(), "nfs://127.0.0.1:"+serve(t, export.Export{Path: "/", FS: memfs.New(memfs.Options{})})+"/",
		nfsbox.WithCaller(vfs.Caller{}))
	if err != nil {
		t.Fatal(err)
	}
	root, _, err := c.FS().Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	how := vfs.OpenHow{Access: vfs.ShareWrite, Create: &vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600}}}
	file, _, err := c.FS().Open(t.Context(), vfs.At{Dir: root, Name: "open"}, &how)
	if err != nil {
		t.Fatal(err)
	}
	var w vfs.Written
	if _, err := file.WriteAt(t.Context(), []byte("not yet stable"), 0, vfs.Unstable, &w); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); !errors.Is(err, vfs.ErrIO) || !strings.Contains(err.Error(), "14 bytes") {
		t.Errorf("closing with 14 bytes that are not stable: %v", err)
	}
	if s := c.Stats(); s.Dirty != 0 || s.Buffers.BytesLost != 14 {
		t.Errorf("dirty %d, lost %d", s.Dirty, s.Buffers.BytesLost)
	}
}

// TestServerForgets writes over the wire while the file system below the server
// loses what is not committed, and changes its verifier, at every place where it
// may: every byte is there at the end.
func TestServerForgets(t *testing.T) {
	const size = 3<<20 + 12345
	data := make([]byte, size)
	rnd := rand.NewChaCha8([32]byte{1})
	if _, err := rnd.Read(data); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		op  string // before which it forgets
		nth int
	}{
		{"write", 2}, {"write", 20}, {"write", 49}, {"write", 50}, {"write", 60}, {"commit", 1}, {"commit", 2},
	} {
		t.Run(fmt.Sprint(tt.op, " ", tt.nth), func(t *testing.T) {
			var mu sync.Mutex
			var mem *memfs.FS
			count := make(map[string]int)
			forget := func(_ context.Context, op string, _ vfs.Handle) error {
				mu.Lock()
				defer mu.Unlock()
				count[op]++
				if op == tt.op && count[op] == tt.nth || op == "commit" && count[op] == 1 {
					mem.Restart()
				}
				return nil
			}
			mem = memfs.New(memfs.Options{Mode: 0o777, Fault: forget})
			s := start(t, export.Export{Path: "/", FS: mem})
			c := dial(t, "nfs://"+s.addr+"/?wsize=65536&rsize=65536")
			writeSlowly(t, c.FS(), "file", data)
			stats := statsOf(t, c.FS())
			if stats.Resent == 0 || stats.VerifierChanges == 0 || stats.BytesLost != 0 {
				t.Errorf("%+v", stats)
			}
			mem.Restart() // what is there now has been made stable
			if !bytes.Equal(get(t, mem, "file"), data) {
				t.Error("bytes are lost")
			}
		})
	}
}

// writeSlowly writes a file in odd steps, and reads it back before it closes it.
func writeSlowly(t *testing.T, fs vfs.FS, name string, data []byte) {
	t.Helper()
	ctx := t.Context()
	root, _, err := fs.Root(ctx)
	if err != nil {
		t.Fatal(err)
	}
	f, _, err := fs.Open(ctx, vfs.At{Dir: root, Name: name}, &vfs.OpenHow{
		Access: vfs.ShareRead | vfs.ShareWrite,
		Create: &vfs.CreateHow{Type: vfs.TypeReg},
	})
	if err != nil {
		t.Fatal(err)
	}
	for off := 0; off < len(data); off += 10_007 {
		p := data[off:min(off+10_007, len(data))]
		if n, err := vfs.WriteFull(ctx, f, p, uint64(off), vfs.Unstable, new(vfs.Written)); n != len(p) || err != nil {
			t.Fatalf("write at %d: %d, %v", off, n, err)
		}
	}
	got := make([]byte, len(data)+1)
	n, eof, err := vfs.ReadFull(ctx, f, got, 0)
	if err != nil || !eof || !bytes.Equal(got[:n], data) {
		t.Errorf("read back: %d, %v, %v", n, eof, err)
	}
	if err := f.Close(ctx); err != nil {
		t.Error(err)
	}
}
