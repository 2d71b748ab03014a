package server

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nlm4"
)

// TestClients lists the clients and what they have, and drops one, whose locks are
// then free for the other.
func TestClients(t *testing.T) {
	fs := memfs.New(memfs.Options{Mode: 0o777})
	r := serve(t, fs, nfsserver.Options{Locks: true})
	h := r.file(r.root, "f", 0o666, "")
	args := func(name string) *nlm4.Nlm4Lockargs {
		return &nlm4.Nlm4Lockargs{Exclusive: true, Alock: nlm4.Nlm4Lock{CallerName: []byte(name), Fh: h, Oh: []byte("x"), Svid: 7, LOffset: 5, LLen: 10}}
	}
	gone := oncrpc.NewClient(oncrpc.ClientOptions{Dial: func(context.Context) (net.Conn, error) { return dialFrom(t, "127.0.0.9", r.addr), nil }})
	t.Cleanup(func() { _ = gone.Close() }) // its connection is closed by the server
	var res nlm4.Nlm4Res
	if reply, err := gone.Call(t.Context(), nlm4.NLMPROC4_LOCK, r.auth, args("gone"), &res); err != nil || res.Stat.Stat != nlm4.NLM4_GRANTED {
		t.Fatalf("%v, %v", res.Stat.Stat, err)
	} else {
		reply.Release()
	}
	silent := dialFrom(t, "127.0.0.9", r.addr)
	r.call(nlm4.NLMPROC4_LOCK, args("here"), &res)
	if res.Stat.Stat != nlm4.NLM4_DENIED {
		t.Fatalf("the other's lock: %v", res.Stat.Stat)
	}
	until(t, "all connections are known, and what was answered is counted", func() bool {
		all := r.srv.Clients()
		return r.srv.Stats().RPC.Conns == 3 && len(all) == 2 && all[1].UnderWay == 0 && all[1].BytesOut > 0
	})

	all := r.srv.Clients()
	if len(all) != 2 || all[0].Client != "127.0.0.1" || all[1].Client != "127.0.0.9" {
		t.Fatalf("%+v", all)
	}
	c := all[1]
	if c.Conns != 2 || c.Locks != 1 || len(c.Names) != 1 || c.Names[0] != "gone" || c.Calls != 1 || c.BytesIn == 0 || c.BytesOut == 0 ||
		c.Since.IsZero() || c.Active.Before(c.Since) {
		t.Errorf("%+v", c)
	}
	locks := r.srv.Locks("")
	want := nfsserver.LockInfo{Client: "127.0.0.9", Name: "gone", Process: 7, Off: 5, Len: 10, Exclusive: true, File: vfsHandle(t, h)}
	if len(locks) != 1 || locks[0] != want || len(r.srv.Locks("127.0.0.1")) != 0 || len(r.srv.Locks("::ffff:127.0.0.9")) != 1 {
		t.Errorf("%+v", locks)
	}

	if err := r.srv.Drop(t.Context(), "127.0.0.9"); err != nil {
		t.Fatal(err)
	}
	if _, err := silent.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !isReset(err) {
		t.Errorf("its connection: %v", err)
	}
	r.call(nlm4.NLMPROC4_LOCK, args("here"), &res)
	if res.Stat.Stat != nlm4.NLM4_GRANTED {
		t.Errorf("the other's lock after the drop: %v", res.Stat.Stat)
	}
	for _, nobody := range []string{"192.0.2.1", "a name", ""} {
		if err := r.srv.Drop(t.Context(), nobody); !errors.Is(err, nfsserver.ErrNoClient) {
			t.Errorf("dropping %q: %v", nobody, err)
		}
	}
}

// TestUsersAreClients lists each known user of this host apart, and drops it apart, or
// with all at its address.
func TestUsersAreClients(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	var uid atomic.Uint32
	r := serve(t, fs, nfsserver.Options{Locks: true, User: func(net.Conn) *uint32 {
		if n := uid.Load(); n > 0 {
			return &n
		}
		return nil
	}})
	h := r.file(r.root, "f", 0o666, "")
	names := func() (all []string) {
		for _, c := range r.srv.Clients() {
			all = append(all, c.Client)
		}
		return all
	}
	lock := func(user uint32) {
		t.Helper()
		uid.Store(user)
		c := oncrpc.NewClient(oncrpc.ClientOptions{Dial: func(context.Context) (net.Conn, error) { return dialFrom(t, "127.0.0.1", r.addr), nil }})
		t.Cleanup(func() { _ = c.Close() }) // its connection is closed by the server
		args := &nlm4.Nlm4Lockargs{Alock: nlm4.Nlm4Lock{CallerName: []byte("host"), Fh: h, Oh: []byte("x"), Svid: 7, LLen: 10}}
		var res nlm4.Nlm4Res
		if reply, err := c.Call(t.Context(), nlm4.NLMPROC4_LOCK, r.auth, args, &res); err != nil || res.Stat.Stat != nlm4.NLM4_GRANTED {
			t.Fatalf("%v, %v", res.Stat.Stat, err)
		} else {
			reply.Release()
		}
	}
	lock(0)
	lock(1000)
	lock(oncrpc.UnknownUser)
	if got := names(); !slices.Equal(got, []string{"1000@127.0.0.1", "127.0.0.1", "?@127.0.0.1"}) {
		t.Errorf("%q", got)
	}
	if all, one := r.srv.Locks("127.0.0.1"), r.srv.Locks("1000@::ffff:127.0.0.1"); len(all) != 3 || len(one) != 1 || one[0].Client != "1000@127.0.0.1" {
		t.Errorf("%+v, %+v", all, one)
	}
	if err := r.srv.Drop(t.Context(), "1000@127.0.0.1"); err != nil {
		t.Error(err)
	}
	if all := r.srv.Locks(""); len(all) != 2 {
		t.Errorf("%+v", all)
	}
	if err := r.srv.Drop(t.Context(), "127.0.0.1"); err != nil {
		t.Error(err)
	}
	if all := r.srv.Locks(""); len(all) != 0 {
		t.Errorf("%+v", all)
	}
}
