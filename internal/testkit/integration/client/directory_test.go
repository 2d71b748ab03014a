package client

import (
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// vast is a file system whose root holds files that nobody has made: entries are
// made up from their cookies, however many there are. The rest is memfs.
type vast struct {
	vfs.FS
	entries uint64
	attr    vfs.Attr
}

func newVast(entries uint64) *vast {
	at := time.Unix(1234567890, 0)
	return &vast{FS: memfs.New(memfs.Options{}), entries: entries, attr: vfs.Attr{
		Valid: vfs.MaskV3, Type: vfs.TypeReg, Mode: 0o644, Nlink: 1, Atime: at, Mtime: at, Ctime: at,
	}}
}

func (f *vast) As(*vfs.Caller) vfs.FS { return f }

func (f *vast) ReadDir(_ context.Context, _ vfs.Handle, from vfs.Pos, _ vfs.Mask, _ uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		e := vfs.Entry{Attr: f.attr, Name: make([]byte, 0, 16)}
		var id [12]byte
		for i := from.Cookie; i < f.entries; i++ {
			e.Name = appendName(e.Name[:0], i)
			e.FileID, e.Next.Cookie = i+10, i+1
			e.Attr.FileID, e.Attr.Size = i+10, i
			binary.BigEndian.PutUint64(id[4:], i)
			var err error
			if e.Handle, err = vfs.MakeHandle(id[:]); !yield(&e, err) || err != nil {
				return
			}
		}
	}
}

// appendName appends the name of file i: "file-" and nine digits.
func appendName(b []byte, i uint64) []byte {
	b = append(b, "file-000000000"...)
	for at := len(b) - 1; i > 0; at-- {
		b[at] = byte('0' + i%10)
		i /= 10
	}
	return b
}

// tally checks a listing of a vast directory, entry by entry.
type tally struct {
	next uint64
	name []byte
}

func (c *tally) add(e *vfs.Entry) error {
	c.name = appendName(c.name[:0], c.next)
	if string(e.Name) != string(c.name) || !e.Attr.Has(vfs.MaskV3) || e.Attr.Size != c.next || e.Handle.IsZero() {
		return errors.New("the entry is " + string(e.Name) + ", want " + string(c.name))
	}
	c.next++
	return nil
}

// TestDirectoryOfMany lists a directory over the wire in memory that has nothing
// to do with its size, the server's included; the first entry comes after one
// call.
func TestDirectoryOfMany(t *testing.T) {
	entries := uint64(300_000)
	if need.Race {
		entries /= 10
	}
	const most = 24 << 20 // of memory: four pages and what is remembered of the names
	s := start(t, export.Export{Path: "/", FS: newVast(entries)})
	fs := dial(t, "nfs://"+s.addr+"/").FS()
	root, _, err := fs.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before, peak := m.HeapAlloc, uint64(0)
	calls := s.srv.Stats().RPC.Calls
	var count tally
	for e, err := range fs.ReadDir(t.Context(), root, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if count.next == 0 {
			if n := s.srv.Stats().RPC.Calls - calls; n != 1 {
				t.Errorf("%d calls before the first entry", n)
			}
		}
		if err := count.add(e); err != nil {
			t.Fatal(err)
		}
		if count.next%(entries/10) == 0 {
			runtime.GC()
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapAlloc)
		}
	}
	if count.next != entries {
		t.Errorf("%d entries, want %d", count.next, entries)
	}
	if peak > before+most {
		t.Errorf("the heap grew by %d KiB", (peak-before)>>10)
	}
	t.Logf("heap: at most %d KiB more; %d calls", (peak-before)>>10, s.srv.Stats().RPC.Calls-calls)
}

// TestDirectoryTaken: the first entry of a large directory costs one call, and so
// does a small directory, all of it.
func TestDirectoryTaken(t *testing.T) {
	for _, tc := range []struct {
		entries, take uint64
		calls         uint64
	}{{100_000, 1, 1}, {100, 1, 1}, {100, 100, 1}, {100, 1000, 1}, {0, 1, 1}} {
		s := start(t, export.Export{Path: "/", FS: newVast(tc.entries)})
		fs := dial(t, "nfs://"+s.addr+"/").FS()
		root, _, err := fs.Root(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		before := s.srv.Stats().RPC.Calls
		var count tally
		for e, err := range fs.ReadDir(t.Context(), root, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
			if err = errors.Join(err, count.add(e)); err != nil {
				t.Fatal(err)
			}
			if count.next == tc.take {
				break
			}
		}
		if n := s.srv.Stats().RPC.Calls - before; n != tc.calls {
			t.Errorf("%d of %d entries: %d calls, want %d", tc.take, tc.entries, n, tc.calls)
		}
	}
}

// TestDirectoryResumes stores places, and goes on from them over another
// connection, after a restart of the server.
func TestDirectoryResumes(t *testing.T) {
	const entries = 5000
	s := start(t, export.Export{Path: "/", FS: newVast(entries)})
	list := func(from vfs.Pos, first uint64) (places []vfs.Pos) {
		fs := dial(t, "nfs://"+s.addr+"/").FS()
		root, _, err := fs.Root(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		count := tally{next: first}
		for e, err := range fs.ReadDir(t.Context(), root, from, vfs.MaskV3|vfs.MaskHandle, 4096) {
			if err = errors.Join(err, count.add(e)); err != nil {
				t.Fatal(err)
			}
			places = append(places, e.Next)
		}
		if count.next != entries {
			t.Fatalf("from %d: up to %d, want %d", first, count.next, entries)
		}
		return places
	}
	places := list(vfs.Pos{}, 0)
	s.end()
	s.begin()
	for _, at := range []uint64{1, 2, 20, 21, 22, 23, 24, 25, 26, 1234, entries - 1, entries} {
		if rest := list(places[at-1], at); !slices.Equal(rest, places[at:]) {
			t.Errorf("behind entry %d: other places", at)
		}
	}
}
