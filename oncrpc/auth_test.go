package oncrpc

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/xdr"
)

func TestAuthSys(t *testing.T) {
	for _, c := range []struct {
		name string
		auth AuthSys
		ok   bool
	}{
		{"zero", AuthSys{}, true},
		{"usual", AuthSys{Stamp: 7, Machine: "client.example", UID: 1000, GID: 100, GIDs: []uint32{100, 4, 24}}, true},
		{"largest", AuthSys{Machine: strings.Repeat("m", MaxMachineName), GIDs: make([]uint32, MaxGIDs)}, true},
		{"name too long", AuthSys{Machine: strings.Repeat("m", MaxMachineName+1)}, false},
		{"too many groups", AuthSys{GIDs: make([]uint32, MaxGIDs+1)}, false},
	} {
		auth, err := c.auth.Auth()
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
		if err != nil {
			continue
		}
		if len(auth.Body) > MaxAuthBody {
			t.Errorf("%s: %d bytes", c.name, len(auth.Body))
		}
		back, err := ParseAuthSys(auth.Body)
		if len(back.GIDs) == 0 {
			back.GIDs = nil
		}
		if err != nil || !reflect.DeepEqual(back, c.auth) {
			t.Errorf("%s: %+v, %v", c.name, back, err)
		}
		for n := range auth.Body {
			if _, err := ParseAuthSys(auth.Body[:n]); err == nil {
				t.Errorf("%s: parses although cut after %d bytes", c.name, n)
			}
		}
		if _, err := ParseAuthSys(append(auth.Body, 0, 0, 0, 0)); err == nil {
			t.Errorf("%s: parses with bytes behind it", c.name)
		}
	}
	for name, body := range map[string][]byte{
		"long name":   append(words(0, MaxMachineName+1), make([]byte, 1000)...),
		"many groups": append(words(0, 0, 0, 0, MaxGIDs+1), make([]byte, 1000)...),
	} {
		if _, err := ParseAuthSys(body); !isLength(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAuthSysReuse: decoding the same client's credentials allocates nothing.
func TestAuthSysReuse(t *testing.T) {
	from := AuthSys{Machine: "client", UID: 1, GIDs: []uint32{1, 2, 3}}
	auth, err := from.Auth()
	if err != nil {
		t.Fatal(err)
	}
	var a AuthSys
	if n := testing.AllocsPerRun(100, func() {
		if err := a.Decode(auth.Body); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestAuthArrives: the handler sees the credential that the client sent.
func TestAuthArrives(t *testing.T) {
	noLeaks(t)
	var got AuthSys
	svc := newService().service()
	svc.Handlers[procEcho] = func(_ context.Context, c *Call) error {
		if c.Auth.Flavor != AuthSysFlavor || c.Verf.Flavor != AuthNone {
			return &AuthError{Stat: AuthRejectedCred}
		}
		return got.Decode(c.Auth.Body)
	}
	srv, err := NewServer([]Service{svc}, ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l := newPipeListener()
	go func() { _ = srv.Serve(l) }() // ends with Close
	defer func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	}()
	c := newClient(t, ClientOptions{Dial: l.dialContext})
	sent := AuthSys{Stamp: 1, Machine: "here", UID: 10, GID: 20, GIDs: []uint32{30}}
	auth, err := sent.Auth()
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Call(t.Context(), proc(procEcho), auth, &opaque{}, xdr.Void{})
	r.Release()
	if err != nil || !reflect.DeepEqual(got, sent) {
		t.Errorf("got %+v, %v", got, err)
	}
	_, err = c.Call(t.Context(), proc(procEcho), Auth{}, &opaque{}, xdr.Void{})
	if !says(&DeniedError{Stat: AuthRejected, Auth: AuthRejectedCred})(err) {
		t.Errorf("without a credential: %v", err)
	}
}
