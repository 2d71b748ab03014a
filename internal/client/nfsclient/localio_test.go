package nfsclient

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/localio"
	"github.com/nfsbox/nfsbox/vfs"
)

// probed is a server whose LOCALIO program is the handler's.
func probed(t *testing.T, o Options, h oncrpc.Handler) *Conn {
	t.Helper()
	host := newHost(t, "10.0.0.1")
	services := []oncrpc.Service{nfs(), host.mountd(nil, "/export/a/b")}
	if h != nil {
		services = append(services, oncrpc.Service{Program: &localio.LOCALIO_V1, Handlers: []oncrpc.Handler{nil, h}})
	}
	host.at("2049", services...)
	o.Port = 2049
	c, err := Mount(t.Context(), host.options(o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestProber asks in both forms, as the caller of the file system, and is counted
// like every other call.
func TestProber(t *testing.T) {
	uuid, nonce := [16]byte{1, 2, 3}, [16]byte{0xff, 15: 9}
	var asked [][]byte
	var callers []oncrpc.AuthSys
	o := Options{}
	o.FS.Caller = vfs.Caller{UID: 1000, GID: 100, Groups: []uint32{7, 8}}
	c := probed(t, o, func(_ context.Context, call *oncrpc.Call) error {
		who, err := oncrpc.ParseAuthSys(call.Auth.Body)
		if err != nil {
			return err
		}
		callers = append(callers, who)
		asked = append(asked, append([]byte(nil), call.Args.Rest()...))
		return call.Reply(&localio.GETUUIDres{Uuid: uuid})
	})
	got, err := c.ServerUUID(t.Context())
	if err != nil || got != uuid {
		t.Errorf("%x, %v", got, err)
	}
	if err := c.OfferNonce(t.Context(), nonce); err == nil {
		t.Error("an answer where void is due is no error")
	}
	if len(asked) != 2 || len(asked[0]) != 0 || string(asked[1]) != string(nonce[:]) {
		t.Errorf("asked with %x", asked)
	}
	for _, who := range callers {
		if who.UID != 1000 || who.GID != 100 || len(who.GIDs) != 2 {
			t.Errorf("asked as %+v", who)
		}
	}
	var calls uint64 // both forms are one procedure to a count by number
	for _, p := range c.Stats().Procs {
		if p.Proc.Program == localio.LOCALIO_PROGRAM {
			calls += p.Calls
		}
	}
	if calls != 2 {
		t.Errorf("%d calls counted", calls)
	}
}

// TestProberRefused returns what a server says that is not ours, or not willing.
func TestProberRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		handler oncrpc.Handler
		want    string
	}{
		"no program":   {nil, "PROG_UNAVAIL"},
		"Linux's form": {func(context.Context, *oncrpc.Call) error { return oncrpc.ErrGarbageArgs }, "GARBAGE_ARGS"},
		"no procedure": {func(context.Context, *oncrpc.Call) error { return &oncrpc.AcceptError{Stat: oncrpc.ProcUnavail} }, "PROC_UNAVAIL"},
		"a version": {func(context.Context, *oncrpc.Call) error {
			return &oncrpc.AcceptError{Stat: oncrpc.ProgMismatch, Low: 2, High: 3}
		}, "PROG_MISMATCH"},
		"it failed":      {func(context.Context, *oncrpc.Call) error { return &oncrpc.AcceptError{Stat: oncrpc.SystemErr} }, "SYSTEM_ERR"},
		"bad credential": {func(context.Context, *oncrpc.Call) error { return &oncrpc.AuthError{Stat: oncrpc.AuthTooWeak} }, "AUTH_TOOWEAK"},
	} {
		t.Run(name, func(t *testing.T) {
			c := probed(t, Options{}, tc.handler)
			uuid, err := c.ServerUUID(t.Context())
			if uuid != [16]byte{} || !answered(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("GETUUID: %x, %v; want %s", uuid, err, tc.want)
			}
			if err := c.OfferNonce(t.Context(), [16]byte{1}); !answered(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("UUID_IS_LOCAL: %v; want %s", err, tc.want)
			}
		})
	}
}

// answered reports whether an error is the server's answer, as it came.
func answered(err error) bool {
	_, accepted := errors.AsType[*oncrpc.AcceptError](err)
	_, denied := errors.AsType[*oncrpc.DeniedError](err)
	return accepted || denied
}

// TestProberSilence does not wait for a silent server as long as other calls do,
// not even if those wait for ever.
func TestProberSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{}
		o.FS.Hard = true
		c := probed(t, o, func(context.Context, *oncrpc.Call) error { return oncrpc.ErrDrop })
		start := time.Now()
		_, err := c.ServerUUID(t.Context())
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took > probeTime+time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// TestHangUpsInARow: a server that has answered, if only that it does not know the
// program, has not hung up, and what was before does not count any more.
func TestHangUpsInARow(t *testing.T) {
	c := probed(t, Options{}, nil)
	c.hangUps.Store(maxHangUps - 1)
	if _, err := c.ServerUUID(t.Context()); !answered(err) {
		t.Fatal(err)
	}
	if n := c.hangUps.Load(); n != 0 {
		t.Errorf("%d hang-ups in a row", n)
	}
}
