package attrcache_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/attrcache"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestTimes: attributes are believed for the least time, which doubles up to the most while nothing changes, and is the
// least again after a change.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, attrcache.Options{Times: seconds(3, 10, 30, 60)})
		for what, times := range map[vfs.Type][]time.Duration{vfs.TypeReg: {3, 6, 10, 10}, vfs.TypeDir: {30, 60, 60}} {
			h := r.put(r.server, r.root, what.String(), what)
			ask := func() { r.mode(h) }
			r.want("the first time", r.asks(ask, "getattr"), 1)
			for _, life := range times {
				time.Sleep(life*time.Second - 1)
				r.want("before its time is over", r.asks(ask, "getattr"), 0)
				time.Sleep(time.Nanosecond)
				r.want("when its time is over", r.asks(ask, "getattr"), 1)
			}
			r.chmod(r.server, h, 0o700)
			if got := r.mode(h); got != 0o755 {
				t.Errorf("%v: mode %o before its time is over, want what is kept", what, got)
			}
			time.Sleep(times[len(times)-1] * time.Second)
			if got := r.mode(h); got != 0o700 {
				t.Errorf("%v: mode %o when its time is over", what, got)
			}
			time.Sleep(times[0]*time.Second - 1)
			r.want("after a change, before the least time is over", r.asks(ask, "getattr"), 0)
			time.Sleep(time.Nanosecond)
			r.want("after a change", r.asks(ask, "getattr"), 1)
		}
	})
}

// TestNoTime: what has no time is not kept.
func TestNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, attrcache.Options{Times: seconds(0, 0, 30, 60)})
		h := r.put(r.server, r.root, "f", vfs.TypeReg)
		r.mode(h)
		r.want("a file without time", r.asks(func() { r.mode(h) }, "getattr"), 1)
		r.mode(r.root)
		r.want("a directory", r.asks(func() { r.mode(r.root) }, "getattr"), 0)
	})
}

// TestNamesTime: names, and that there are none, are believed as long as their directory, and acdirmax at most.
func TestNamesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, attrcache.Options{Times: seconds(3, 10, 30, 60)})
		h := r.put(r.server, r.root, "there", vfs.TypeReg)
		ask := func() {
			if got, ok := r.find(r.fs, r.root, "there"); !ok || got != h {
				t.Error("the name is not found")
			}
			if _, ok := r.find(r.fs, r.root, "not"); ok {
				t.Error("a name is found that is not there")
			}
		}
		r.want("the first time", r.asks(ask, "lookup"), 2)
		r.want("the second time", r.asks(ask, "lookup"), 0)
		time.Sleep(30*time.Second - 1)
		r.want("before the time is over", r.asks(ask, "lookup"), 0)
		time.Sleep(time.Nanosecond)
		// One question shows that the directory has not changed, and so does for all names.
		r.want("when the time of the directory is over", r.asks(ask, "lookup"), 1)
		time.Sleep(30 * time.Second)
		r.want("when acdirmax is over", r.asks(ask, "lookup"), 1)
		r.ok(second(r.server.Remove(t.Context(), r.root, "there", false)))
		r.put(r.server, r.root, "not", vfs.TypeReg)
		time.Sleep(time.Minute)
		if _, ok := r.find(r.fs, r.root, "there"); ok {
			t.Error("a name is there that another client has removed")
		}
		if _, ok := r.find(r.fs, r.root, "not"); !ok {
			t.Error("a name is not there that another client has made")
		}
	})
}

func second(_ vfs.WCC, err error) error { return err }

// TestLookupCache: which names are kept is as was asked for.
func TestLookupCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for names, want := range map[attrcache.Names]int{attrcache.NamesAll: 0, attrcache.NamesPositive: 1, attrcache.NamesNone: 2} {
			r := newRig(t, attrcache.Options{Names: names})
			r.put(r.server, r.root, "there", vfs.TypeReg)
			ask := func() {
				r.find(r.fs, r.root, "there")
				r.find(r.fs, r.root, "not")
			}
			ask()
			r.want("the second time", r.asks(ask, "lookup"), want)
		}
	})
}

// TestOpenAsksAnew: what another client has changed is seen at an open, by name and by handle, and under a lock.
func TestOpenAsksAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, attrcache.Options{})
		h := r.put(r.server, r.root, "f", vfs.TypeReg)
		lock := &vfs.Lock{Exclusive: true, Owner: vfs.Owner{ID: [64]byte{1}, N: 1}}
		locker, ok := vfs.As[vfs.Locker](r.fs)
		if !ok {
			t.Fatal("there are no locks")
		}
		for i, anew := range []func() error{
			func() error {
				f, _, err := r.fs.Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
				if err != nil {
					return err
				}
				return f.Close(t.Context())
			},
			func() error {
				f, o, err := r.fs.Open(t.Context(), vfs.At{Dir: r.root, Name: "f"}, &vfs.OpenHow{Access: vfs.ShareRead})
				if err != nil {
					return err
				}
				if o.H != h {
					t.Error("another file")
				}
				return f.Close(t.Context())
			},
			func() error { return locker.Lock(t.Context(), h, lock) },
		} {
			mode := uint32(0o600 + i)
			before := r.mode(h)
			_, _, err := r.fs.Access(t.Context(), h, vfs.AccessRead)
			r.ok(err)
			r.chmod(r.server, h, mode)
			if got := r.mode(h); got != before {
				t.Fatalf("%d: mode %o, want the one that is kept", i, got)
			}
			r.ok(anew())
			if got := r.mode(h); got != mode {
				t.Errorf("%d: mode %o, want %o", i, got, mode)
			}
			r.want("rights", r.asks(func() {
				_, _, err := r.fs.Access(t.Context(), h, vfs.AccessRead)
				r.ok(err)
			}, "access"), 1)
		}
		// A name that leads to another file now is found so by an open, and by whom asks afterwards.
		r.find(r.fs, r.root, "f")
		r.ok(second(r.server.Remove(t.Context(), r.root, "f", false)))
		other := r.put(r.server, r.root, "f", vfs.TypeReg)
		f, o, err := r.fs.Open(t.Context(), vfs.At{Dir: r.root, Name: "f"}, &vfs.OpenHow{Access: vfs.ShareRead})
		r.ok(err)
		r.ok(f.Close(t.Context()))
		if got, ok := r.find(r.fs, r.root, "f"); !ok || got != other || o.H != other {
			t.Error("the name leads to what it led to before the open")
		}
	})
}

// TestOwnChangesKeepNames: a client's own changes of a directory leave the other names of it known. But without proof they
// hide what others have changed, so that the time of the names is not extended.
func TestOwnChangesKeepNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, attrcache.Options{Times: seconds(3, 10, 30, 60)})
		r.put(r.server, r.root, "old", vfs.TypeReg)
		r.find(r.fs, r.root, "old")
		ask := func() { r.find(r.fs, r.root, "old") }
		mine := r.put(r.fs, r.root, "mine", vfs.TypeReg)
		r.want("another name", r.asks(ask, "lookup"), 0)
		r.want("the new name", r.asks(func() {
			if h, _ := r.find(r.fs, r.root, "mine"); h != mine {
				t.Error("another object")
			}
		}, "lookup"), 0)
		r.want("its attributes", r.asks(func() { r.mode(mine); r.mode(r.root) }, "getattr"), 0)
		time.Sleep(29 * time.Second)
		r.put(r.server, r.root, "theirs", vfs.TypeReg)
		r.ok(second(r.server.Remove(t.Context(), r.root, "old", false)))
		r.put(r.fs, r.root, "mine too", vfs.TypeReg)
		r.find(r.fs, r.root, "none") // whose answer shows the directory as this client has left it
		time.Sleep(time.Second)
		if _, ok := r.find(r.fs, r.root, "old"); ok {
			t.Error("a name that another client has removed is believed for longer than its time")
		}
	})
}

// TestNamesOfAnotherVersion: when it is seen that another client has changed a directory, no name of it is believed.
func TestNamesOfAnotherVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, attrcache.Options{Times: long})
		r.put(r.server, r.root, "old", vfs.TypeReg)
		r.find(r.fs, r.root, "old")
		r.find(r.fs, r.root, "new")
		r.ok(second(r.server.Remove(t.Context(), r.root, "old", false)))
		r.put(r.server, r.root, "new", vfs.TypeReg)
		if _, ok := r.find(r.fs, r.root, "old"); !ok {
			t.Error("the name is not kept")
		}
		r.find(r.fs, r.root, "third") // whose answer shows the directory
		if _, ok := r.find(r.fs, r.root, "old"); ok {
			t.Error("a name is believed of a directory that has changed")
		}
		if _, ok := r.find(r.fs, r.root, "new"); !ok {
			t.Error("that there is no name is believed of a directory that has changed")
		}
	})
}

// TestListing: what comes with a listing is kept.
func TestListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, attrcache.Options{})
		r.put(r.server, r.root, "a", vfs.TypeReg)
		r.put(r.server, r.root, "b", vfs.TypeDir)
		r.mode(r.root)
		r.find(r.fs, r.root, "none") // a right to list is no right to search
		for _, err := range r.fs.ReadDir(t.Context(), r.root, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
			r.ok(err)
		}
		r.want("after a listing", r.asks(func() {
			for _, name := range []string{"a", "b"} {
				h, _ := r.find(r.fs, r.root, name)
				r.mode(h)
			}
		}, "lookup", "getattr"), 0)
	})
}
