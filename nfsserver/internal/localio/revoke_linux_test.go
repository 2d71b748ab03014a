package localio

import (
	"context"
	"testing"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/proto/localio"
	"github.com/nfsbox/nfsbox/vfs"
)

func (r *rig) chmod(h vfs.Handle, mode uint32) {
	r.t.Helper()
	if _, err := r.own.SetAttr(r.t.Context(), h, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: mode}, nil); err != nil {
		r.t.Fatal(err)
	}
}

// TestRevoked is told before the client that makes the change is answered.
func TestRevoked(t *testing.T) {
	r := newRig(t, Options{})
	n, other := r.local(), r.local()
	for name, change := range map[string]func(h vfs.Handle){
		"remove": func(vfs.Handle) {
			if _, err := r.own.Remove(t.Context(), r.root, "f", false); err != nil {
				t.Fatal(err)
			}
		},
		"rename over": func(vfs.Handle) {
			r.file("g", 0o644)
			if _, _, err := r.own.Rename(t.Context(), r.root, "g", r.root, "f"); err != nil {
				t.Fatal(err)
			}
		},
		"chmod": func(h vfs.Handle) { r.chmod(h, 0o600) },
		"exports": func(vfs.Handle) {
			e := r.table.Exports()[0]
			e.ReadOnly = !e.ReadOnly
			if err := r.table.Replace(e); err != nil {
				t.Fatal(err)
			}
		},
	} {
		h, beside := r.file("f", 0o644), r.file("beside", 0o644)
		got := n.open(want(h), want(h), want(beside))
		also := other.open(want(h))[0]
		before := r.s.Stats().Revoked
		change(h)
		if n.valid(got[0]) || n.valid(got[1]) || other.valid(also) {
			t.Errorf("%s: still valid when it is answered", name)
		}
		told := []localio.SessionFile{n.revocation(), n.revocation()}
		if told[0] == told[1] {
			t.Errorf("%s: told of %+v", name, told)
		}
		if f := other.revocation(); f.Slot != also.Slot || f.Generation != also.Generation {
			t.Errorf("%s: told of %+v, not of %+v", name, f, also)
		}
		if name != "exports" {
			if !n.valid(got[2]) {
				t.Errorf("%s: another file is revoked", name)
			}
			if d := r.s.Stats().Revoked - before; d != 3 {
				t.Errorf("%s: %d files revoked", name, d)
			}
		} else {
			n.revocation()
			e := r.table.Exports()[0]
			e.ReadOnly = false
			if err := r.table.Replace(e); err != nil {
				t.Fatal(err)
			}
		}
		n.close(got...)
		other.close(also)
		eventually(t, "they are closed", func() bool { return r.s.Stats().Files == 0 })
		for _, f := range []string{"f", "beside"} {
			_, _ = r.own.Remove(t.Context(), r.root, f, false) // it may be gone
		}
	}
}

// TestRevokedBeforeTheAnswer does not let the file go out any more.
func TestRevokedBeforeTheAnswer(t *testing.T) {
	r := newRig(t, Options{MaxFiles: 1})
	n := r.local()
	h := r.file("f", 0o644)
	r.host.opening(func(context.Context, vfs.Handle) error {
		r.chmod(h, 0o640)
		r.chmod(h, 0o644)
		return nil
	})
	if got := n.open(want(h))[0]; got.Why != localio.SESSION_CROWDED || got.Slot != 0 {
		t.Errorf("%+v", got)
	}
	r.host.opening(nil)
	got := n.open(want(h))[0] // in the only slot
	if got.Why != localio.SESSION_OK || !n.valid(got) {
		t.Errorf("%+v", got)
	}
	r.chmod(h, 0o600)
	if f := n.revocation(); f.Slot != got.Slot || f.Generation != got.Generation {
		t.Errorf("%+v", f)
	}
	if st := r.s.Stats(); st.Revoked != 2 || st.Opened != 1 { // the message came behind the count
		t.Errorf("%+v", st)
	}
}

// client is the only client of the service, at the server.
func (r *rig) client() *client {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	for c := range r.s.bound {
		return c
	}
	r.t.Fatal("no client")
	return nil
}

// stuck makes it look as if a goroutine were sending that cannot go on; unstuck goes
// on.
func (c *client) stuck() {
	c.mu.Lock()
	c.sending = true
	c.mu.Unlock()
}

func (c *client) unstuck() { c.sendAll() }

// TestRevokedWhileQueued has a change come when the answer is ready, and waits for
// the socket.
func TestRevokedWhileQueued(t *testing.T) {
	r := newRig(t, Options{})
	n := r.local()
	h, other := r.file("f", 0o644), r.file("g", 0o644)
	c := r.client()
	eventually(t, "BOUND is sent", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return !c.sending
	})
	c.stuck()
	first := n.next
	n.ask(want(h), want(other))
	eventually(t, "they wait", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.answers) == 2
	})
	r.chmod(h, 0o600) // does not wait
	c.unstuck()
	got := n.answers(first, 2)
	if got[0].Why != localio.SESSION_CROWDED || got[1].Why != localio.SESSION_OK || !n.valid(got[1]) {
		t.Errorf("%+v", got)
	}
	eventually(t, "it is not watched", func() bool { return r.host.watches.Load() == 1 })
}

// TestChangeNeverWaits for a client that takes nothing: the page tells, and the
// messages follow.
func TestChangeNeverWaits(t *testing.T) {
	r := newRig(t, Options{})
	n := r.local()
	h := r.file("f", 0o644)
	var files []localio.SessionOpenFile
	for range localio.SESSION_MAX_OPENS {
		files = append(files, want(h))
	}
	got := append(n.open(files...), n.open(files...)...)
	c := r.client()
	eventually(t, "all is sent", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return !c.sending
	})
	c.stuck()
	r.chmod(h, 0o640)
	r.chmod(h, 0o600)
	for _, f := range got {
		if n.valid(f) {
			t.Fatal("a revoked file is valid")
		}
	}
	c.unstuck()
	seen := make(map[uint32]bool)
	for range got {
		seen[n.revocation().Slot] = true
	}
	if len(seen) != len(got) {
		t.Errorf("told of %d files of %d", len(seen), len(got))
	}
	if st := r.s.Stats(); st.Revoked != uint64(len(got)) || st.Files != len(got) {
		t.Errorf("%+v", st)
	}
	n.close(got[:32]...)
	n.close(got[32:]...)
	eventually(t, "they are closed", func() bool { return r.s.Stats().Files == 0 })
}

// TestClose ends the sessions by their pages first.
func TestClose(t *testing.T) {
	r := newRig(t, Options{})
	n := r.local()
	waits := greeted(t, r.dir, DefaultMaxFiles)
	silent := stranger(t, r.dir)
	got := n.open(want(r.file("f", 0o644)))[0]
	if err := r.s.Close(); err != nil {
		t.Fatal(err)
	}
	if n.page.Load(0) == localio.PAGE_LIVE || waits.page.Load(0) == localio.PAGE_LIVE || n.valid(got) {
		t.Error("a page is live")
	}
	for _, n := range []*near{n, waits, silent} {
		n.ended()
	}
	r.offer(waits.nonce) // RPC is not over yet
	if err := r.s.Close(); err != nil {
		t.Error(err)
	}
}

// TestReadOnlyExport is read-only here, too.
func TestReadOnlyExport(t *testing.T) {
	r := newRig(t, Options{Trusted: true}, export.Rule{Match: "127.0.0.1", ReadOnly: true})
	n := r.local()
	w := want(r.file("f", 0o666))
	w.Access = localio.SESSION_WRITE
	if got := n.open(w)[0]; got.Why != localio.SESSION_REFUSED || got.Status != uint32(vfs.ErrROFS) {
		t.Errorf("%+v", got)
	}
}
