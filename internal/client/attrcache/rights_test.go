package attrcache_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/attrcache"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestRightsAreACallersOwn: no caller is told what another was, and nobody finds a name in a directory that the server
// would not let it search.
func TestRightsAreACallersOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, attrcache.Options{Times: seconds(600, 600, 600, 600)})
		dir := r.put(r.server, r.root, "d", vfs.TypeDir)
		h := r.put(r.server, dir, "f", vfs.TypeReg)
		r.chmod(r.server, dir, 0o700)
		r.chmod(r.server, h, 0o600)
		ann, ben := r.fs.As(&vfs.Caller{UID: 1000}), r.fs.As(&vfs.Caller{UID: 1001})
		_, err := r.server.SetAttr(t.Context(), dir, &vfs.SetAttr{Valid: vfs.MaskUID, UID: 1000}, nil)
		r.ok(err)
		_, err = r.server.SetAttr(t.Context(), h, &vfs.SetAttr{Valid: vfs.MaskUID, UID: 1000}, nil)
		r.ok(err)
		for range 2 {
			if got, ok := r.find(ann, dir, "f"); !ok || got != h {
				t.Error("ann does not find her file")
			}
			if got, _, err := ann.Access(t.Context(), h, vfs.AccessRead); err != nil || got != vfs.AccessRead {
				t.Errorf("ann may %v, %v", got, err)
			}
			for _, name := range []string{"f", "none"} {
				if _, _, _, err := ben.Lookup(t.Context(), dir, name); !errors.Is(err, vfs.ErrAccess) {
					t.Errorf("ben looks %s up in ann's directory: %v", name, err)
				}
			}
			if got, _, err := ben.Access(t.Context(), h, vfs.AccessRead); err != nil || got != 0 {
				t.Errorf("ben may %v, %v", got, err)
			}
		}
		r.want("ann, the second time", r.asks(func() {
			r.find(ann, dir, "f")
			_, _, err := ann.Access(t.Context(), h, vfs.AccessRead|vfs.AccessModify|vfs.AccessExecute)
			r.ok(err)
		}, "lookup", "access"), 0)
		// With groups she is another caller.
		r.want("another group", r.asks(func() { r.find(r.fs.As(&vfs.Caller{UID: 1000, Groups: []uint32{5}}), dir, "f") }, "lookup"), 1)
		r.want("another client", r.asks(func() { r.find(r.fs.As(&vfs.Caller{UID: 1000, Client: "c"}), dir, "f") }, "lookup"), 1)
		// A caller that may search, by the server's word, is told what others have found.
		r.chmod(r.fs, dir, 0o711)
		r.find(ann, dir, "f")
		got, _, err := ben.Access(t.Context(), dir, vfs.AccessLookup)
		if r.ok(err); got != vfs.AccessLookup {
			t.Fatal("ben may not search")
		}
		r.want("ben, who may search", r.asks(func() { r.find(ben, dir, "f") }, "lookup"), 0)
		// The client's own change of rights is seen at once, by everybody.
		r.chmod(r.fs, dir, 0o700)
		if _, _, _, err := ben.Lookup(t.Context(), dir, "f"); !errors.Is(err, vfs.ErrAccess) {
			t.Errorf("ben, who may search no more: %v", err)
		}
	})
}

// TestRightsEnd: rights are believed as long as attributes, and no longer when these show that they may have changed.
func TestRightsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, attrcache.Options{Times: seconds(3, 10, 30, 60)})
		h := r.put(r.server, r.root, "f", vfs.TypeReg)
		ask := func() {
			_, _, err := r.fs.Access(t.Context(), h, vfs.AccessRead)
			r.ok(err)
		}
		r.want("the first time", r.asks(ask, "access"), 1)
		time.Sleep(3*time.Second - 1)
		r.want("in time", r.asks(ask, "access"), 0)
		time.Sleep(time.Nanosecond)
		r.want("behind it", r.asks(ask, "access"), 1)
		time.Sleep(time.Second)
		r.chmod(r.server, h, 0o600)
		a, err := r.server.GetAttr(t.Context(), h, vfs.MaskV3)
		r.ok(err)
		if got, _, _, err := r.fs.Lookup(t.Context(), r.root, "f"); err != nil || got != h {
			t.Fatal(err)
		}
		if got, err := r.fs.GetAttr(t.Context(), h, vfs.MaskMode); err != nil || got.Mode != a.Mode {
			t.Errorf("mode %o, %v: the look-up has brought %o", got.Mode, err, a.Mode)
		}
		r.want("when the mode is seen to have changed", r.asks(ask, "access"), 1)
	})
}

// TestManyCallers: the rights of a bounded number of callers are kept.
func TestManyCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, attrcache.Options{Times: seconds(600, 600, 600, 600)})
		views := make([]vfs.FS, 40)
		for i := range views {
			views[i] = r.fs.As(&vfs.Caller{UID: uint32(i)})
		}
		ask := func() {
			for i, v := range views {
				got, _, err := v.Access(t.Context(), r.root, vfs.AccessLookup)
				if r.ok(err); got != vfs.AccessLookup {
					t.Error(fmt.Sprint("caller ", i, " may not search"))
				}
			}
		}
		r.want("the first time", r.asks(ask, "access"), 40)
		if n := r.asks(ask, "access"); n == 0 || n > 40 {
			t.Errorf("the second time: %d questions", n)
		}
	})
}
