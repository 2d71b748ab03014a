package nfsclient

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/nfsbox/nfsbox/internal/base/fault"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/xdr"
)

// oddList is a list of exports as a server should not send it.
type oddList []Export

// AppendXDR implements xdr.Appender.
func (l oddList) AppendXDR(b []byte) ([]byte, error) {
	for _, x := range l {
		b = xdr.AppendOpaque(xdr.AppendBool(b, true), []byte(x.Path))
		for _, name := range x.Groups {
			b = xdr.AppendOpaque(xdr.AppendBool(b, true), []byte(name))
		}
		b = xdr.AppendBool(b, false)
	}
	return xdr.AppendBool(b, false), nil
}

// TestOddExports: exports that cannot be mounted are counted, and hide no other.
func TestOddExports(t *testing.T) {
	long, longName := "/"+strings.Repeat("a", mount3.MNTPATHLEN), strings.Repeat("h", mount3.MNTNAMLEN+1)
	h := newHost(t, "10.0.0.1")
	h.at("7000", serve(&mount3.MOUNT_V3, map[*xdr.Proc]func(*oncrpc.Call) xdr.Appender{
		mount3.MOUNTPROC3_EXPORT: func(*oncrpc.Call) xdr.Appender {
			return oddList{{Path: ""}, {Path: "/a", Groups: []string{longName, "x"}}, {Path: long}, {Path: "", Groups: []string{"x"}}, {Path: "/" + long[2:]}}
		},
	}))
	list, err := Exports(t.Context(), h.options(Options{MountPort: 7000}))
	left, ok := errors.AsType[*ExportsError](err)
	if !ok || *left != (ExportsError{Empty: 2, TooLong: 1}) {
		t.Errorf("%v", err)
	}
	if len(list) != 2 || list[0].Path != "/a" || list[1].Path != "/"+long[2:] {
		t.Fatalf("%d exports, the first %.20q", len(list), list[0].Path)
	}
	if want := []string{longName[1:], "x"}; !slices.Equal(list[0].Groups, want) {
		t.Errorf("%q", list[0].Groups)
	}
}

// TestMute: where a connection is accepted and no call is answered, the error says so, and not that the host
// is down.
func TestMute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, "10.0.0.1")
		l, err := h.net.Listen("10.0.0.1:7000")
		if err != nil {
			t.Fatal(err)
		}
		var taken []net.Conn
		accepted := make(chan struct{})
		go func() {
			defer close(accepted)
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				taken = append(taken, c)
			}
		}()
		_, err = Exports(t.Context(), h.options(Options{MountPort: 7000, Timeout: tryTime, Retries: -1}))
		if !errors.Is(err, fault.ErrMute) {
			t.Errorf("%v", err)
		}
		var last Step
		if err := Diagnose(t.Context(), h.options(Options{Port: 7000}), DiagnoseOptions{}, func(s Step) { last = s }); !errors.Is(err, fault.ErrMute) {
			t.Errorf("%v", err)
		}
		if !strings.Contains(last.Advice, "another service may listen there") || strings.Contains(last.Advice, "down") {
			t.Errorf("%+v", last)
		}
		err = l.Close()
		<-accepted
		for _, c := range taken {
			err = errors.Join(err, c.Close())
		}
		if err != nil {
			t.Error(err)
		}
	})
}

// TestHTTPThatWaits: a server of HTTP that waits for the end of a line is named for what it is, after a call has
// had no answer.
func TestHTTPThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, "10.0.0.1")
		l, err := h.net.Listen("10.0.0.1:7000")
		if err != nil {
			t.Fatal(err)
		}
		s := http.Server{Handler: http.NotFoundHandler(), ErrorLog: log.New(io.Discard, "", 0)}
		served := make(chan error)
		go func() { served <- s.Serve(l) }()
		_, err = Exports(t.Context(), h.options(Options{MountPort: 7000, Timeout: tryTime, Retries: -1}))
		if !errors.Is(err, fault.ErrForeign) || !strings.Contains(err.Error(), "this is HTTP") {
			t.Errorf("%v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}
