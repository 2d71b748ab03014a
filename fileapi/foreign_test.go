package fileapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
)

// TestForeignAnswers gets answers that no server of the file API gives.
func TestForeignAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		kind   string
		body   string
		want   connect.Code
	}{
		"a proxy's error":           {http.StatusBadGateway, "text/html", "<html>", connect.CodeUnavailable},
		"another server's":          {http.StatusNotFound, "text/plain", "no such page", connect.CodeUnimplemented},
		"a redirection":             {http.StatusFound, "text/plain", "", connect.CodeUnknown},
		"a page":                    {http.StatusOK, "text/html", "<html>", connect.CodeUnknown},
		"no message":                {http.StatusOK, "application/proto", "\xff\xff", connect.CodeInvalidArgument},
		"too much":                  {http.StatusOK, "application/proto", strings.Repeat("x", maxAnswer+1), connect.CodeResourceExhausted},
		"an error without a code":   {http.StatusForbidden, "application/json", `{"message": "no"}`, connect.CodePermissionDenied},
		"a code that is none":       {http.StatusTooManyRequests, "application/json", `{"code": "tired"}`, connect.CodeUnavailable},
		"an error":                  {http.StatusTeapot, "application/json", `{"code": "aborted", "message": "no"}`, connect.CodeAborted},
		"details that are not read": {http.StatusTeapot, "application/json", `{"code": "aborted", "details": [{"type": "x", "value": "*"}, {"type": "y", "value": ""}]}`, connect.CodeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", c.kind)
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			defer s.Close()
			client, err := New(s.URL+"/", Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			_, _, err = client.Get(t.Context(), "/f", Range{})
			if e, ok := errors.AsType[*Error](err); !ok || e.Code != c.want {
				t.Errorf("get: %v, want %v", err, c.want)
			}
		})
	}
}

// TestGivenUp has a server that does not answer.
func TestGivenUp(t *testing.T) {
	asked := make(chan string)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case asked <- r.Header.Get("Connect-Timeout-Ms"):
			<-r.Context().Done()
		case <-r.Context().Done():
		}
	}))
	defer s.Close()
	client, err := New(s.URL, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	// On a busy machine the time may be over before the server is asked.
	for patience, told := 50*time.Millisecond, false; !told; patience *= 2 {
		over := make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		go func() { _, _, err := client.Get(ctx, "/f", Range{}); over <- err }()
		select {
		case text := <-asked:
			if told = true; text == "" {
				t.Error("the server is not told how long it has")
			}
			err = <-over
		case err = <-over:
		}
		cancel()
		if e, ok := errors.AsType[*Error](err); !ok || e.Code != connect.CodeDeadlineExceeded {
			t.Fatalf("when the time is over: %v", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	_, _, err = client.Get(ctx, "/f", Range{})
	if e, ok := errors.AsType[*Error](err); !ok || e.Code != connect.CodeCanceled {
		t.Errorf("when nobody waits any more: %v", err)
	}
}

// keeper answers before it has read the request, and goes on reading it for as long as
// it can, as package net/http may.
type keeper struct{ body io.ReadCloser }

func (k *keeper) RoundTrip(r *http.Request) (*http.Response, error) {
	k.body = r.Body
	_, err := io.ReadFull(r.Body, make([]byte, 100))
	return &http.Response{StatusCode: http.StatusTooManyRequests, Body: http.NoBody}, err
}

// TestBufferIsTheCallers puts bytes from a buffer that its caller may use again when the
// call is over: what it writes there is not sent, though not all was sent before.
func TestBufferIsTheCallers(t *testing.T) {
	client, err := New("http://127.0.0.1", Options{})
	if err != nil {
		t.Fatal(err)
	}
	k := &keeper{}
	client.client.Transport = k
	buf := make([]byte, 1000)
	if _, err := client.Put(t.Context(), "/f", buf, UploadOptions{}); err == nil {
		t.Fatal("a refused call has no error")
	}
	for i := range buf {
		buf[i] = 'x'
	}
	late := make([]byte, 1000)
	if n, _ := k.body.Read(late); bytes.Contains(late[:n], []byte("xx")) {
		t.Error("after the call its buffer is still read")
	}
}
