package localio

import (
	"slices"
	"testing"

	"github.com/nfsbox/nfsbox/nfsserver/internal/peer"
	"github.com/nfsbox/nfsbox/proto/localio"
	"github.com/nfsbox/nfsbox/xdr"
)

// TestHostile sends what no client sends: the session ends, and with it all that
// it had. Others are not concerned.
func TestHostile(t *testing.T) {
	r := newRig(t, Options{})
	takeRights(t)
	good := r.local()
	h := r.file("f", 0o644)
	kept := good.open(want(h))[0]
	closing := &localio.SessionMessage{Type: localio.SESSION_CLOSE}
	opening := func(access uint32) *localio.SessionMessage {
		f := want(h)
		f.Access = access
		return &localio.SessionMessage{Type: localio.SESSION_OPEN, Open: localio.SessionOpen{Files: []localio.SessionOpenFile{f}}}
	}
	hello := func(speaks uint32) *localio.SessionMessage {
		return &localio.SessionMessage{Type: localio.SESSION_HELLO, Hello: localio.SessionHello{Speaks: speaks, Commitment: [32]byte{9}}}
	}
	for name, x := range map[string]struct {
		client func() *near
		m      *localio.SessionMessage
		fds    []int
	}{
		"OPEN first":           {func() *near { return stranger(t, r.dir) }, opening(1), nil},
		"CLOSE first":          {func() *near { return stranger(t, r.dir) }, closing, nil},
		"an old version":       {func() *near { return stranger(t, r.dir) }, hello(0), nil},
		"OPEN before BOUND":    {func() *near { return greeted(t, r.dir, DefaultMaxFiles) }, opening(1), nil},
		"CLOSE before BOUND":   {func() *near { return greeted(t, r.dir, DefaultMaxFiles) }, closing, nil},
		"HELLO again":          {func() *near { return greeted(t, r.dir, DefaultMaxFiles) }, hello(1), nil},
		"HELLO when bound":     {r.local, hello(1), nil},
		"WELCOME":              {r.local, &localio.SessionMessage{Type: localio.SESSION_WELCOME}, nil},
		"REVOKED":              {r.local, &localio.SessionMessage{Type: localio.SESSION_REVOKED}, nil},
		"no access":            {r.local, opening(0), nil},
		"an unknown access":    {r.local, opening(5), nil},
		"descriptors":          {r.local, closing, []int{0, 1, 2}},
		"too many descriptors": {r.local, closing, slices.Repeat([]int{0}, 253)},
	} {
		t.Run(name, func(t *testing.T) {
			before := r.s.Stats()
			n := x.client()
			if n.page != nil && r.s.Stats().Sessions == before.Sessions+1 {
				n.open(want(h))
			}
			if err := n.c.Send(x.m, x.fds...); err != nil {
				t.Fatal(err)
			}
			n.ended()
			eventually(t, "all is given back", func() bool {
				st := r.s.Stats()
				return (n.page == nil || n.page.Load(0) != localio.PAGE_LIVE) && st.Sessions == 1 && st.Strangers == 0 && st.Files == 1 && r.host.watches.Load() == 1 &&
					st.Broken == before.Broken+1
			})
		})
	}
	if !good.valid(kept) {
		t.Error("another client's file is revoked")
	}
}

// FuzzMessages has a client that is bound and has files send any message.
func FuzzMessages(f *testing.F) {
	for _, m := range []*localio.SessionMessage{
		{Type: localio.SESSION_HELLO},
		{Type: localio.SESSION_OPEN, Open: localio.SessionOpen{Files: []localio.SessionOpenFile{{Access: 1, Handle: []byte("x")}}}},
		{Type: localio.SESSION_CLOSE, Close: localio.SessionFiles{Files: []localio.SessionFile{{Slot: 1, Generation: 1}, {Slot: 1, Generation: 1}}}},
	} {
		b, err := m.AppendXDR(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, packet []byte) {
		// What is no message at all is for package session to refuse.
		var m localio.SessionMessage
		d := xdr.NewDecoder(packet)
		if m.DecodeXDR(&d) != nil || d.Finish() != nil {
			return
		}
		r := newRig(t, Options{MaxFiles: 4})
		n := greeted(t, r.dir, 4)
		r.s.bind(n.nonce, peer.NewConn(r.table, nil))
		n.isBound()
		h := r.file("f", 0o644)
		n.open(want(h), want(h))
		n.send(&m)
		if err := n.c.Close(); err != nil {
			t.Error(err)
		}
		eventually(t, "all is given back", func() bool {
			return r.s.Stats().Sessions == 0 && r.s.Stats().Files == 0 && r.host.watches.Load() == 0
		})
	})
}
