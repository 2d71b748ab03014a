package cache_test

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/cache/store"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// slowDisk takes time for each read.
type slowDisk struct {
	store.System
	delay atomic.Int64
	reads atomic.Int64
}

func (d *slowDisk) ReadAt(f *os.File, p []byte, off int64) (int, error) {
	d.reads.Add(1)
	time.Sleep(time.Duration(d.delay.Load()))
	return d.System.ReadAt(f, p, off)
}

// contested is a rig with a file that is kept, and a server of which each READ takes so long.
func contested(t *testing.T, granules int, server time.Duration) (r *rig, d *slowDisk, data []byte) {
	t.Helper()
	d = new(slowDisk)
	o := small
	o.Disk = d
	r = newRig(t, memfs.Options{}, o)
	r.setFault(func(_ context.Context, op string) error {
		if op == "read" {
			time.Sleep(server)
		}
		return nil
	})
	data = content(20, granules*granule)
	r.put("f", data)
	r.want("f", data, granule)
	return r, d, data
}

// TestSlowerDisk: where the disk is slower than the server, reads go past it. After a while it shows itself anew, and is used
// again when it has become quick.
func TestSlowerDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const granules = 100
		r, d, data := contested(t, granules, time.Millisecond)
		d.delay.Store(int64(10 * time.Millisecond))
		r.restart() // what is kept has not been read yet
		n := r.reads(func() { r.want("f", data, granule) })
		if from := granules - n; from < 10 || from > 30 {
			t.Errorf("%d READs, and %d granules from a slow disk", n, from)
		}
		s := r.fs.Stats()
		if s.Bypassed < uint64(n) || len(r.notes) != 1 || !strings.Contains(r.notes[0], "slower") {
			t.Errorf("%+v, notes %q", s, r.notes)
		}
		alone := func(when string) {
			t.Helper()
			asked := d.reads.Load()
			if n := r.reads(func() { r.want("f", data, granule) }); n != granules || d.reads.Load() != asked {
				t.Errorf("%s: %d READs, and %d of the disk", when, n, d.reads.Load()-asked)
			}
		}
		alone("at once")
		time.Sleep(11 * time.Second)
		// It is as slow as before: it has another try, and is left alone for longer.
		if again := r.reads(func() { r.want("f", data, granule) }); again > granules-10 || again < granules-30 {
			t.Errorf("%d READs when it has another try", again)
		}
		time.Sleep(11 * time.Second)
		alone("11 s later")
		d.delay.Store(0)
		time.Sleep(11 * time.Second)
		if again := r.reads(func() { r.want("f", data, granule) }); again != 0 {
			t.Errorf("%d READs: the disk is quick, and not used", again)
		}
		if len(r.notes) != 1 {
			t.Errorf("notes %q", r.notes)
		}
	})
}

// TestQuickerDisk: a disk that is quicker than the server, or slower by little, or quick enough, is used.
func TestQuickerDisk(t *testing.T) {
	for _, tt := range []struct{ server, disk time.Duration }{
		{20 * time.Millisecond, 10 * time.Millisecond},
		{10 * time.Millisecond, 12 * time.Millisecond},
		{10 * time.Microsecond, 200 * time.Microsecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, d, data := contested(t, 100, tt.server)
			d.delay.Store(int64(tt.disk))
			r.restart()
			r.put("other", data) // of which the server's time is learned
			r.want("other", data, granule)
			if n := r.reads(func() { r.want("f", data, granule) }); n != 0 {
				t.Errorf("server %v, disk %v: %d READs", tt.server, tt.disk, n)
			}
			if s := r.fs.Stats(); s.Bypassed != 0 || len(r.notes) != 0 {
				t.Errorf("%+v, %q", s, r.notes)
			}
		})
	}
}

// TestSlowerDiskOfSmallFiles: small files are compared with small reads.
func TestSlowerDiskOfSmallFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, d, _ := contested(t, 1, time.Millisecond)
		names, data := []string{}, content(21, 5000)
		for i := range 100 {
			name := "small" + string(rune('a'+i%26)) + string(rune('a'+i/26))
			names = append(names, name)
			r.put(name, data)
			r.want(name, data, granule)
		}
		d.delay.Store(int64(10 * time.Millisecond))
		r.restart()
		n := r.reads(func() {
			for _, name := range names {
				r.want(name, data, granule)
			}
		})
		if from := 100 - n; from < 10 || from > 30 {
			t.Errorf("%d READs, and %d files from a slow disk", n, from)
		}
	})
}

// nearFS has files that are on this host.
type nearFS struct{ vfs.FS }

type nearFile struct{ vfs.File }

func (nearFile) Near() bool { return true }

func (n nearFS) As(c *vfs.Caller) vfs.FS { return nearFS{n.FS.As(c)} }

func (n nearFS) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	f, o, err := n.FS.Open(ctx, at, how)
	if err != nil {
		return nil, o, err
	}
	return nearFile{f}, o, nil
}

// TestNear: what is on this host anyway is not kept once more.
func TestNear(t *testing.T) {
	r := newRig(t, memfs.Options{}, small)
	data := content(22, 3*granule)
	r.put("f", data)
	fs := over(t, nearFS{r.below}, small)
	for range 2 {
		f := r.open(fs, "f")
		if n, ok := vfs.As[vfs.Near](f); !ok || !n.Near() {
			t.Error("it is not near")
		}
		r.wantFile(f, data, granule)
		r.ok(f.Close(t.Context()))
	}
	if s := fs.Stats(); s.Entries != 0 || s.Hits+s.Misses != 0 {
		t.Errorf("%+v", s)
	}
}

// TestLabel: an entry has the name by which its file was opened, or that the caller has told.
func TestLabel(t *testing.T) {
	r := newRig(t, memfs.Options{}, small)
	data := content(23, 100)
	h := r.put("f", data)
	r.put("g", data)
	f, _, err := r.fs.Open(t.Context(), vfs.At{H: h, Label: "dir/f"}, &vfs.OpenHow{Access: vfs.ShareRead})
	r.ok(err)
	r.wantFile(f, data, granule)
	r.ok(f.Close(t.Context()))
	r.want("g", data, granule)
	labels := make(map[string]bool)
	r.ok(store.Entries(store.Path(r.dir, ""), false, func(e *store.Found) error {
		labels[e.Label] = true
		return e.Err
	}))
	if len(labels) != 2 || !labels["dir/f"] || !labels["g"] {
		t.Errorf("%v", labels)
	}
}
