package localio

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/base/session"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/proto/localio"
	"github.com/nfsbox/nfsbox/vfs"
)

func TestOpen(t *testing.T) {
	r := newRig(t, Options{Trusted: true})
	n := r.local()
	h := r.file("f", 0o666)
	attr, err := r.own.GetAttr(t.Context(), h, vfs.MaskV3)
	if err != nil {
		t.Fatal(err)
	}
	w := want(h)
	w.Access = localio.SESSION_READ | localio.SESSION_WRITE
	got := n.open(want(h), w)
	for i, f := range got {
		if f.Why != localio.SESSION_OK || f.Fileid != attr.FileID || f.Fsid != [2]uint64{attr.FSID[0] ^ attr.FSID[1]} || !n.valid(f) || f.Slot == 0 {
			t.Errorf("file %d: %+v", i, f)
		}
	}
	if got[0].Slot == got[1].Slot {
		t.Error("two files have one slot")
	}
	if _, err := unix.Pwrite(got[1].fd, []byte("hello"), 0); err != nil {
		t.Error(err)
	}
	b := make([]byte, 10)
	if k, err := unix.Pread(got[0].fd, b, 0); err != nil || string(b[:k]) != "hello" {
		t.Errorf("%q, %v", b[:max(k, 0)], err)
	}
	r.host.mu.Lock()
	for _, how := range r.host.asked {
		if how.Peer.UID != n.c.Peer().UID || !slices.Equal(how.Peer.Groups, n.c.Peer().Groups) || !how.Trusted {
			t.Errorf("asked for %+v", how)
		}
	}
	r.host.mu.Unlock()
	eventually(t, "they are counted", func() bool { return r.s.Stats().Files == 2 && r.s.Stats().Opened == 2 })
	n.close(got...)
	eventually(t, "they are closed", func() bool { return r.s.Stats().Files == 0 && r.host.watches.Load() == 0 })
	if n.valid(got[0]) || n.valid(got[1]) {
		t.Error("closed files are valid")
	}
	if n.open(want(h))[0].Why != localio.SESSION_OK {
		t.Error("it cannot be opened again")
	}
}

// TestRefused says why.
func TestRefused(t *testing.T) {
	id := uint32(54321) // not of the user that runs the test, and could pass all then
	r := newRig(t, Options{}, export.Rule{Match: "127.0.0.1", Squash: export.SquashAll, AnonUID: &id, AnonGID: &id})
	n := r.local()
	secret, open, gone := r.file("secret", 0o600), r.file("open", 0o666), r.file("gone", 0o644)
	if _, err := r.own.Remove(t.Context(), r.root, "gone", false); err != nil {
		t.Fatal(err)
	}
	writes, bad := want(open), want(open)
	writes.Access, bad.Handle = localio.SESSION_WRITE, []byte("x")
	for name, x := range map[string]struct {
		f      localio.SessionOpenFile
		why    localio.SessionWhy
		status vfs.Status
	}{
		"squashed":     {want(secret), localio.SESSION_REFUSED, vfs.ErrAccess},
		"good":         {want(open), localio.SESSION_OK, 0},
		"a directory":  {want(r.root), localio.SESSION_REFUSED, vfs.ErrInval},
		"removed":      {want(gone), localio.SESSION_REFUSED, vfs.ErrStale},
		"no handle":    {want(vfs.Handle{}), localio.SESSION_REFUSED, vfs.ErrBadHandle},
		"a bad handle": {bad, localio.SESSION_REFUSED, vfs.ErrBadHandle},
		"not to pass":  {writes, localio.SESSION_NOT_TO_PASS, 0},
	} {
		if got := n.open(x.f)[0]; (got.Slot != 0) != (got.Generation != 0) || (got.Slot != 0) != (x.why == localio.SESSION_OK) || got.Why != x.why || got.Status != uint32(x.status) || (got.fd >= 0) != (x.why == localio.SESSION_OK) {
			t.Errorf("%s: %+v, want %v, %v", name, got, x.why, x.status)
		}
	}
	eventually(t, "all is counted", func() bool {
		st := r.s.Stats()
		return st.Refused["refused"] == 5 && st.Refused["not_to_pass"] == 1 && st.Opened == 1 && st.Files == 1
	})
	if got := r.host.watches.Load(); got != 1 {
		t.Errorf("%d files are watched", got)
	}
}

// TestOutOfExport is judged by where the RPC connection comes from.
func TestOutOfExport(t *testing.T) {
	r := newRig(t, Options{}, export.Rule{Match: "192.0.2.1"})
	n := r.local()
	if got := n.open(want(r.file("f", 0o644)))[0]; got.Why != localio.SESSION_REFUSED || got.Status != uint32(vfs.ErrAccess) {
		t.Errorf("%+v", got)
	}
}

// TestNoFile serves a file system that is not one of this host.
func TestNoFile(t *testing.T) {
	r := newRig(t, Options{})
	if err := r.table.Replace(export.Export{Path: "/", FS: memfs.New(memfs.Options{Mode: 0o777})}); err != nil {
		t.Fatal(err)
	}
	var err error
	if r.root, _, err = r.own.Root(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.local().open(want(r.file("f", 0o644)))[0]; got.Why != localio.SESSION_NO_FILE {
		t.Errorf("%+v", got)
	}
}

func TestErrors(t *testing.T) {
	r := newRig(t, Options{})
	n := r.local()
	h := r.file("f", 0o644)
	for _, x := range []struct {
		err    error
		why    localio.SessionWhy
		status vfs.Status
	}{
		{vfs.ErrNotSupp, localio.SESSION_NOT_TO_PASS, 0},
		{fmt.Errorf("wrapped: %w", vfs.ErrROFS), localio.SESSION_REFUSED, vfs.ErrROFS},
		{vfs.ErrBusy, localio.SESSION_CROWDED, 0},
		{unix.EMFILE, localio.SESSION_CROWDED, 0},
		{errors.New("unheard of"), localio.SESSION_CROWDED, 0},
	} {
		r.host.opening(func(context.Context, vfs.Handle) error { return x.err })
		if got := n.open(want(h))[0]; got.Why != x.why || got.Status != uint32(x.status) {
			t.Errorf("%v: %+v, want %v", x.err, got, x.why)
		}
	}
	if got := r.host.watches.Load(); got != 0 {
		t.Errorf("%d files are watched", got)
	}
}

func TestMayClaim(t *testing.T) {
	ann := session.Peer{UID: 10, GID: 10, Groups: []uint32{20, 30}}
	rootPeer := session.Peer{}
	for name, x := range map[string]struct {
		peer   session.Peer
		caller vfs.Caller
		want   bool
	}{
		"herself":              {ann, vfs.Caller{UID: 10, GID: 10}, true},
		"her other group":      {ann, vfs.Caller{UID: 10, GID: 30, Groups: []uint32{10, 20}}, true},
		"root":                 {ann, vfs.Caller{}, false},
		"root's group":         {ann, vfs.Caller{UID: 10}, false},
		"another":              {ann, vfs.Caller{UID: 11, GID: 10}, false},
		"a group not hers":     {ann, vfs.Caller{UID: 10, GID: 10, Groups: []uint32{20, 31}}, false},
		"nobody":               {ann, vfs.Caller{UID: export.Anonymous, GID: export.Anonymous}, false},
		"root for himself":     {rootPeer, vfs.Caller{}, true},
		"root for her":         {rootPeer, vfs.Caller{UID: 10, GID: 10, Groups: []uint32{99}}, true},
		"root's group no root": {session.Peer{UID: 10}, vfs.Caller{UID: 0}, false},
	} {
		if got := mayClaim(&x.peer, &x.caller); got != x.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestSlots runs out of them: further files are refused until one is closed.
func TestSlots(t *testing.T) {
	r := newRig(t, Options{MaxFiles: 2})
	n := r.local()
	h := r.file("f", 0o644)
	got := n.open(want(h), want(h))
	if got[0].Why != localio.SESSION_OK || got[1].Why != localio.SESSION_OK || got[0].Slot == got[1].Slot {
		t.Fatalf("%+v", got)
	}
	if third := n.open(want(h))[0]; third.Why != localio.SESSION_CROWDED {
		t.Errorf("%+v", third)
	}
	stale := got[0]
	stale.Generation++
	n.close(stale, opened{SessionOpenedFile: localio.SessionOpenedFile{Slot: 0}},
		opened{SessionOpenedFile: localio.SessionOpenedFile{Slot: 1 << 31}}) // none of which there is
	if third := n.open(want(h))[0]; third.Why != localio.SESSION_CROWDED {
		t.Errorf("%+v", third)
	}
	n.close(got[0])
	n.close(got[0]) // once more
	fourth := n.open(want(h))[0]
	if fourth.Why != localio.SESSION_OK || fourth.Slot != got[0].Slot || fourth.Generation == got[0].Generation {
		t.Errorf("%+v after %+v", fourth, got[0])
	}
	if n.valid(got[0]) || !n.valid(got[1]) || !n.valid(fourth) {
		t.Error("a slot is valid for the wrong file")
	}
	eventually(t, "all is counted", func() bool { return r.s.Stats().Files == 2 && r.s.Stats().Refused["crowded"] == 2 })
}

// TestGenerationsWrap are never 0, which no file has.
func TestGenerationsWrap(t *testing.T) {
	r := newRig(t, Options{MaxFiles: 1})
	n := r.local()
	h := r.file("f", 0o644)
	n.close(n.open(want(h))[0])
	eventually(t, "it is closed", func() bool { return r.s.Stats().Files == 0 && r.host.watches.Load() == 0 })
	c := r.client()
	eventually(t, "the slot is free", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.slots[0].generation = 1<<32 - 1
		return len(c.free) == 1
	})
	if got := n.open(want(h))[0]; got.Generation != 1 || !n.valid(got) {
		t.Errorf("%+v", got)
	}
}

// TestOpenConcurrently opens as many files at once as it may, and sends those that
// are ready together.
func TestOpenConcurrently(t *testing.T) {
	r := newRig(t, Options{})
	n := r.local()
	h := r.file("f", 0o644)
	hold := make(chan struct{})
	r.host.opening(func(ctx context.Context, _ vfs.Handle) error {
		select {
		case <-hold:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	first := n.next
	var all []localio.SessionOpenFile
	for range localio.SESSION_MAX_OPENS {
		all = append(all, want(h))
	}
	n.ask(all...)
	eventually(t, "many are opened", func() bool { return r.host.busy.Load() == maxOpening })
	close(hold)
	for _, f := range n.answers(first, len(all)) {
		if f.Why != localio.SESSION_OK {
			t.Errorf("%+v", f)
		}
	}
	if most := r.host.most.Load(); most != maxOpening {
		t.Errorf("%d at once", most)
	}
}

// TestBackPressure reads no more from a client who asks for more than anybody
// needs, and goes on when there is room.
func TestBackPressure(t *testing.T) {
	r := newRig(t, Options{})
	n := r.local()
	h := r.file("f", 0o644)
	hold := make(chan struct{})
	r.host.opening(func(ctx context.Context, _ vfs.Handle) error {
		select {
		case <-hold:
			return vfs.ErrBusy
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	first := n.next
	all := slices.Repeat([]localio.SessionOpenFile{want(h)}, localio.SESSION_MAX_OPENS)
	const messages = (maxOpening+maxAsked)/localio.SESSION_MAX_OPENS + 3
	for range messages {
		n.ask(all...)
	}
	c := r.client()
	eventually(t, "the line is full", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.asked) > maxAsked || c.opening > maxOpening {
			t.Errorf("%d wait, %d are opened", len(c.asked), c.opening)
		}
		return len(c.asked)+len(all) > maxAsked
	})
	close(hold)
	for _, f := range n.answers(first, messages*len(all)) {
		if f.Why != localio.SESSION_CROWDED {
			t.Errorf("%+v", f)
		}
	}
}

// TestEndWhileOpening ends the session of a client whose files are being opened:
// it is not waited for them, and they come to nothing.
func TestEndWhileOpening(t *testing.T) {
	for name, end := range map[string]func(*rig, *near) error{
		"the client": func(_ *rig, n *near) error { return n.c.Close() },
		"the server": func(r *rig, _ *near) error { return r.s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{})
			n := r.local()
			h := r.file("f", 0o644)
			r.host.opening(func(ctx context.Context, _ vfs.Handle) error {
				<-ctx.Done()
				return nil // too late: the file is there
			})
			for range maxAsked / 6 {
				n.ask(want(h), want(h), want(h), want(h), want(h), want(h))
			}
			eventually(t, "they are opened", func() bool { return r.host.busy.Load() == maxOpening })
			if err := end(r, n); err != nil {
				t.Fatal(err)
			}
			eventually(t, "all is given back", func() bool {
				return r.s.Stats().Sessions == 0 && r.host.busy.Load() == 0 && r.host.watches.Load() == 0
			})
		})
	}
}
