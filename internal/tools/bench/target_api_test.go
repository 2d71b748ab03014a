package bench_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/fileapi"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/bench"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestTLS speaks to a file API over https, if it is trusted, by either HTTP.
func TestTLS(t *testing.T) {
	s := serve(t, memfs.Options{})
	_, api := s.api()
	h := httptest.NewUnstartedServer(api)
	h.EnableHTTP2 = true
	h.StartTLS()
	defer h.Close()
	roots := x509.NewCertPool()
	roots.AddCert(h.Certificate())
	for _, http2 := range []bool{false, true} {
		for _, verb := range []string{"upload", "download", "echo", "delete"} {
			o := s.options(verb, "")
			o.URL, o.Count, o.Concurrency = h.URL, 20, 3
			o.API = bench.API{TLS: &tls.Config{RootCAs: roots}, HTTP2: http2}
			run(t, o)
		}
	}
	o := s.options("echo", "")
	o.URL = h.URL
	if res, err := bench.Run(t.Context(), o); res != nil || !errors.Is(err, bench.ErrUnreachable) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("without trust: %v", err)
	}
}

// TestAPIFailures counts what a server, or the way to it, does wrong by its kind.
func TestAPIFailures(t *testing.T) {
	s := serve(t, memfs.Options{})
	_, api := s.api()
	for kind, answer := range map[string]http.HandlerFunc{
		"unauthenticated": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"unavailable":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) },
		"connection":      func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"wrong data": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/proto")
			_, _ = w.Write([]byte{0x0a, 0x01, 'x'})
		},
	} {
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/Echo") {
				answer(w, r)
				return
			}
			api.ServeHTTP(w, r)
		}))
		o := s.options("echo", "")
		o.URL, o.Count = h.URL, 10
		res, err := bench.Run(t.Context(), o)
		if err != nil || res.Ops != 0 || res.Errors != 10 || len(res.Faults) != 1 || res.Faults[0].Kind != kind {
			t.Errorf("%s: %+v, %v", kind, res, err)
		}
		h.Close()
	}
}

// TestAPIKinds prefers what the file system has said to the protocol's code.
func TestAPIKinds(t *testing.T) {
	for want, err := range map[string]error{
		"NOSPC":             &fileapi.Error{Op: "put", Code: connect.CodeResourceExhausted, Status: vfs.ErrNoSpace, Err: errors.New("x")},
		"permission_denied": &fileapi.Error{Op: "put", Code: connect.CodePermissionDenied, Err: errors.New("x")},
		"wrong data":        &fileapi.Error{Op: "get", Code: connect.CodeDataLoss, Err: fileapi.ErrCorrupted},
		"unknown outcome":   &fileapi.Error{Op: "put", Code: connect.CodeUnknown, Err: vfs.ErrUnknownOutcome},
		"deadline_exceeded": &fileapi.Error{Op: "get", Code: connect.CodeDeadlineExceeded, Err: errors.New("the server's patience has ended")},
	} {
		if got := bench.KindOf(err); got != want {
			t.Errorf("%v is %q, want %q", err, got, want)
		}
	}
}
