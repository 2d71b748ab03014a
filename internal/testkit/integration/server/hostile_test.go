package server

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/proto/rpcbind"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// fail makes a call that is not to be accepted.
func (r *rig) fail(p *xdr.Proc, args xdr.Appender) error {
	r.t.Helper()
	reply, err := r.client.Call(r.t.Context(), p, r.auth, args, xdr.Void{})
	reply.Release()
	if err == nil {
		r.t.Errorf("%v was accepted", p)
	}
	return err
}

func (r *rig) accept(p *xdr.Proc, args xdr.Appender, want oncrpc.AcceptError) {
	r.t.Helper()
	err := r.fail(p, args)
	if got, ok := errors.AsType[*oncrpc.AcceptError](err); !ok || *got != want {
		r.t.Errorf("program %d version %d procedure %d: %v, want %v", p.Program, p.Version, p.Number, err, &want)
	}
}

// TestOtherPrograms asks for what the server does not have.
func TestOtherPrograms(t *testing.T) {
	r := newRig(t, memfs.Options{})
	for _, x := range []struct {
		prog, vers, proc uint32
		want             oncrpc.AcceptError
	}{
		// A mount that asks for version 4 first falls back to 3 on this.
		{100003, 4, 0, oncrpc.AcceptError{Stat: oncrpc.ProgMismatch, Low: 3, High: 3}},
		{100003, 4, 1, oncrpc.AcceptError{Stat: oncrpc.ProgMismatch, Low: 3, High: 3}},
		{100003, 2, 0, oncrpc.AcceptError{Stat: oncrpc.ProgMismatch, Low: 3, High: 3}},
		{100003, 3, 22, oncrpc.AcceptError{Stat: oncrpc.ProcUnavail}},
		{100003, 3, 1 << 31, oncrpc.AcceptError{Stat: oncrpc.ProcUnavail}},
		{100005, 2, 0, oncrpc.AcceptError{Stat: oncrpc.ProgMismatch, Low: 1, High: 3}},
		{100005, 3, 6, oncrpc.AcceptError{Stat: oncrpc.ProcUnavail}},
		{100005, 1, 1, oncrpc.AcceptError{Stat: oncrpc.ProcUnavail}},
		{100000, 1, 0, oncrpc.AcceptError{Stat: oncrpc.ProgMismatch, Low: 2, High: 4}},
		{100000, 2, 5, oncrpc.AcceptError{Stat: oncrpc.ProcUnavail}},                   // CALLIT
		{100000, 3, 5, oncrpc.AcceptError{Stat: oncrpc.ProcUnavail}},                   // CALLIT
		{100000, 4, 5, oncrpc.AcceptError{Stat: oncrpc.ProcUnavail}},                   // BCAST
		{100000, 4, 10, oncrpc.AcceptError{Stat: oncrpc.ProcUnavail}},                  // INDIRECT
		{100227, 2, 0, oncrpc.AcceptError{Stat: oncrpc.ProgMismatch, Low: 3, High: 3}}, // NFSACL
		{100021, 4, 0, oncrpc.AcceptError{Stat: oncrpc.ProgUnavail}},                   // NLM
		{0, 0, 0, oncrpc.AcceptError{Stat: oncrpc.ProgUnavail}},
	} {
		r.accept(&xdr.Proc{Program: x.prog, Version: x.vers, Number: x.proc, Repeatable: true}, xdr.Void{}, x.want)
	}
}

// raw is arguments as bytes.
type raw []byte

func (p raw) AppendXDR(b []byte) ([]byte, error) { return append(b, p...), nil }

// TestGarbage sends every procedure that has arguments none, half of them, and
// more than all of them.
func TestGarbage(t *testing.T) {
	r := newRig(t, memfs.Options{})
	for _, p := range []*xdr.Program{&nfs3.NFS_V3, &mount3.MOUNT_V3, &mount3.MOUNT_V1, &rpcbind.PMAPVERS, &rpcbind.RPCBVERS, &rpcbind.RPCBVERS4} {
		for i := range p.Procs {
			proc := &p.Procs[i]
			if proc.Number == 0 {
				continue
			}
			err := r.fail(proc, raw(strings.Repeat("\xff", 64)))
			got, ok := errors.AsType[*oncrpc.AcceptError](err)
			if !ok || got.Stat != oncrpc.GarbageArgs && got.Stat != oncrpc.ProcUnavail {
				t.Errorf("%v with garbage: %v", proc, err)
			}
		}
	}
	good, err := (&nfs3.GETATTR3args{Object: fh(r.root)}).AppendXDR(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range []raw{nil, good[:len(good)-4], append(good, 0, 0, 0, 0)} {
		r.accept(nfs3.NFSPROC3_GETATTR, args, oncrpc.AcceptError{Stat: oncrpc.GarbageArgs})
	}
	if r.srv.Stats().RPC.Panics != 0 {
		t.Error("a handler panicked")
	}
}

// TestCredentials calls with every kind of credential.
func TestCredentials(t *testing.T) {
	r := newRig(t, memfs.Options{})
	secret := r.as(alice).file(r.root, "secret", 0o600, "x")
	group := r.as(oncrpc.AuthSys{UID: 3000, GID: 50}).file(r.root, "group", 0o640, "x")
	r.status(r.as(bob).read(secret, 0, 1).Status, nfs3.NFS3ERR_ACCES)
	r.status(r.as(bob).read(group, 0, 1).Status, nfs3.NFS3ERR_ACCES)
	r.status(r.as(alice).read(secret, 0, 1).Status, nfs3.NFS3_OK)
	r.status(r.as(alice).read(group, 0, 1).Status, nfs3.NFS3_OK) // by a further group

	body := r.auth.Body
	r.auth = oncrpc.Auth{}
	r.status(r.read(secret, 0, 1).Status, nfs3.NFS3ERR_ACCES)
	made := r.file(r.root, "nobody's", 0o644, "")
	if a := r.attr(made); a.Uid != 65534 || a.Gid != 65534 {
		t.Errorf("a file of AUTH_NONE belongs to %d:%d", a.Uid, a.Gid)
	}
	for _, x := range []struct {
		what string
		auth oncrpc.Auth
		want oncrpc.AuthStat
	}{
		{"AUTH_SYS without a body", oncrpc.Auth{Flavor: oncrpc.AuthSysFlavor}, oncrpc.AuthBadCred},
		{"AUTH_SYS cut", oncrpc.Auth{Flavor: oncrpc.AuthSysFlavor, Body: body[:len(body)-4]}, oncrpc.AuthBadCred},
		{"AUTH_SYS and more", oncrpc.Auth{Flavor: oncrpc.AuthSysFlavor, Body: append(body[:len(body):len(body)], 0, 0, 0, 0)}, oncrpc.AuthBadCred},
		{"AUTH_SHORT", oncrpc.Auth{Flavor: oncrpc.AuthShort, Body: []byte("1234")}, oncrpc.AuthRejectedCred},
		{"RPCSEC_GSS", oncrpc.Auth{Flavor: oncrpc.AuthGSS, Body: []byte("1234")}, oncrpc.AuthTooWeak},
		{"flavor 4711", oncrpc.Auth{Flavor: 4711}, oncrpc.AuthTooWeak},
	} {
		r.auth = x.auth
		err := r.fail(nfs3.NFSPROC3_GETATTR, &nfs3.GETATTR3args{Object: fh(r.root)})
		if got, ok := errors.AsType[*oncrpc.DeniedError](err); !ok || got.Auth != x.want {
			t.Errorf("%s: %v, want %v", x.what, err, x.want)
		}
		// Every caller may ask whether the server is there.
		if reply, err := r.client.Call(t.Context(), nfs3.NFSPROC3_NULL, r.auth, xdr.Void{}, xdr.Void{}); err != nil {
			t.Errorf("NULL with %s: %v", x.what, err)
		} else {
			reply.Release()
		}
	}
}

// TestManyCallers has more users on one connection than it remembers. Each keeps
// its own rights.
func TestManyCallers(t *testing.T) {
	r := newRig(t, memfs.Options{})
	for round := range 2 {
		for uid := range uint32(600) {
			r.as(oncrpc.AuthSys{Stamp: uid * 7, UID: uid + 1, GID: uid + 1})
			name := "f" + string(rune('a'+uid%26)) + strings.Repeat("x", int(uid/26))
			if round == 0 {
				r.file(r.root, name, 0o600, "")
			} else if a := r.attr(r.find(r.root, name)); a.Uid != uid+1 {
				t.Fatalf("%s belongs to %d, not to %d", name, a.Uid, uid+1)
			}
		}
	}
}

// TestHugeRecord announces more than a request may have: the connection ends, and
// the server goes on.
func TestHugeRecord(t *testing.T) {
	r := newRig(t, memfs.Options{})
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(binary.BigEndian.AppendUint32(nil, 1<<31|1<<30)); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, c); n != 0 || err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("%d bytes, %v", n, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	r.attr(r.root)
}

// TestConnectionLost cancels what a dead connection has under way, and leaves
// neither files nor buffers behind (the rig looks for them).
func TestConnectionLost(t *testing.T) {
	entered, cancelled := make(chan struct{}, 64), make(chan struct{}, 64)
	blocking := make(chan bool, 1)
	blocking <- false
	r := newRig(t, memfs.Options{Fault: func(ctx context.Context, op string, _ vfs.Handle) error {
		on := <-blocking
		blocking <- on
		if !on || op != "read" {
			return nil
		}
		entered <- struct{}{}
		<-ctx.Done()
		cancelled <- struct{}{}
		return ctx.Err()
	}})
	h := r.file(r.root, "f", 0o644, "hello")
	<-blocking
	blocking <- true
	other := dial(t, r.addr)
	const calls = 8
	done := make(chan error, calls)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range calls {
		go func() {
			res := nfs3.READ3res{Resok: nfs3.READ3resok{Data: make([]byte, 5)}}
			reply, err := other.Call(ctx, nfs3.NFSPROC3_READ, r.auth, &nfs3.READ3args{File: fh(h), Count: 5}, &res)
			reply.Release()
			done <- err
		}()
	}
	for range calls {
		<-entered
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	for range calls {
		if err := <-done; err == nil {
			t.Error("a READ was answered")
		}
	}
	// A server that shuts down reads no more, and would not see the connection end.
	for range calls {
		<-cancelled
	}
	r.attr(r.root)
	if err := r.client.Close(); err != nil {
		t.Error(err)
	}
	if err := r.srv.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if st := r.srv.Stats(); st.RPC.Dropped != calls {
		t.Errorf("%d calls were dropped, want %d", st.RPC.Dropped, calls)
	}
	if strings.Contains(r.log.String(), "WARN") {
		t.Errorf("the log complains:\n%s", r.log.String())
	}
}
