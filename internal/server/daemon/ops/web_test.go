package ops

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/testkit/leak"
	"github.com/nfsbox/nfsbox/internal/testkit/logbuf"
)

// TestMain looks for goroutines of ours when all tests have cleaned up.
func TestMain(m *testing.M) { leak.Main(m) }

// openWeb opens metrics, for clients that are as many as client says.
func openWeb(t *testing.T, client func(net.Conn) string) (w *Web, at string) {
	t.Helper()
	c, log := config.Default(), &logbuf.Buffer{}
	c.Metrics = "127.0.0.1:0"
	logs := NewLogs(&c.Log, log, time.Now)
	if err := logs.Open(&c.Log, 0); err != nil {
		t.Fatal(err)
	}
	w = new(Web)
	err := w.Open(t.Context(), WebOptions{
		Config: &c, Now: time.Now, Log: logs.Logger(), Logs: logs, Client: client, Source: func() *Scrape { return &Scrape{} },
		Listen: func(_ context.Context, _, address string) (net.Listener, error) { return net.Listen("tcp", address) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(w.Close(), logs.Close()); err != nil {
			t.Error(err)
		}
	})
	w.Serving()
	url := regexp.MustCompile(`msg=metrics url=http://(\S+)`).FindStringSubmatch(log.String())
	if url == nil {
		t.Fatal(log)
	}
	return w, url[1]
}

// begins opens a connection until the test ends, and sends half a request.
func begins(t *testing.T, at, half string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := io.WriteString(conn, half); err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestManyScrapers keeps connections that ask nothing from taking descriptors
// without end.
func TestManyScrapers(t *testing.T) {
	_, at := openWeb(t, func(net.Conn) string { return "one" })
	first := begins(t, at, "")
	for range maxHTTP {
		begins(t, at, "")
	}
	if err := first.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		t.Errorf("one more than %d is let in: %v", maxHTTP, err)
	}
}

// TestHalfRequests: many clients that each hold a connection, and send half a request, keep no
// other one out.
func TestHalfRequests(t *testing.T) {
	for name, half := range map[string]string{
		"nothing": "", "half a head": "GET /metrics HTTP/1.1\r\nHost: local", "half a body": "GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx",
	} {
		t.Run(name, func(t *testing.T) {
			_, at := openWeb(t, func(nc net.Conn) string { return nc.RemoteAddr().String() })
			for range maxHTTP + 1 {
				begins(t, at, half)
			}
			for _, path := range []string{"/healthz", "/metrics", "/healthz"} {
				conn := begins(t, at, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
				if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
					t.Fatal(err)
				}
				answer, err := io.ReadAll(conn)
				if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 200 ") {
					t.Errorf("%s: %.40q, %v", path, answer, err)
				}
			}
		})
	}
}

// deaf is the writer of a client that reads nothing until it is let go.
type deaf struct {
	http.ResponseWriter
	writes chan struct{}
	goes   chan struct{}
}

func (s *deaf) Write([]byte) (int, error) {
	s.writes <- struct{}{}
	<-s.goes
	return 0, net.ErrClosed
}

// TestScrapersReadNothing: clients that ask for metrics, and do not read them, keep no other one
// from them.
func TestScrapersReadNothing(t *testing.T) {
	w, _ := openWeb(t, func(net.Conn) string { return "one" })
	h, writes, goes := w.servers[0].Handler, make(chan struct{}), make(chan struct{})
	ask := func(out http.ResponseWriter) {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Host = "localhost"
		h.ServeHTTP(out, r)
	}
	var all sync.WaitGroup
	for range maxScrapes {
		all.Go(func() { ask(&deaf{httptest.NewRecorder(), writes, goes}) })
		<-writes
	}
	out := httptest.NewRecorder()
	ask(out)
	if out.Code != http.StatusOK || out.Body.Len() == 0 {
		t.Errorf("status %d, %d bytes: %.300s", out.Code, out.Body.Len(), out.Body)
	}
	go func() {
		for range writes { // what is still written now
		}
	}()
	close(goes)
	all.Wait()
	close(writes)
}
