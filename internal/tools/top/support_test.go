package top

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/view"
	"github.com/nfsbox/nfsbox/internal/testkit/leak"
)

// TestMain looks for goroutines of ours when all tests have cleaned up.
func TestMain(m *testing.M) { leak.Main(m) }

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares text with what testdata has under a name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nbut %s has\n%s", got, path, want)
	}
}

// frame is the Frame to which package view holds its JSON, with more calls.
func frame(t *testing.T) *view.Frame {
	t.Helper()
	text, err := os.ReadFile("../../server/view/testdata/frame.json")
	if err != nil {
		t.Fatal(err)
	}
	f := new(view.Frame)
	if err := json.Unmarshal(text, f); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"GETATTR", "LOOKUP", "ACCESS", "READDIRPLUS", "COMMIT", "CREATE", "REMOVE", "RENAME"} {
		n := float64(i + 1)
		f.Procs = append(f.Procs, view.ProcFrame{Name: name, Program: "NFS", Version: 3, Calls: 1e6 * uint64(i+1), Rate: 1234.5 * n, P50: 1e-5 * n, P99: 1e-3 * n, Max: n})
	}
	f.Points = nil
	for i := range 100 {
		f.Points = append(f.Points, view.Point{Seq: uint64(i + 1), Rates: map[string]float64{"READ": float64(i % 10), "WRITE": 5}, P99: float64(i)})
	}
	return f
}

// server has a view, and does the same work whenever that looks. It lives in a
// bubble of testing/synctest.
type server struct {
	v     *view.View
	end   context.CancelFunc // of its life
	asked []string           // the queries
	fail  atomic.Int32       // status of the next answers; 1: none; 0: good ones
}

// begin begins a life of the server.
func (s *server) begin(ctx context.Context) {
	if s.end != nil {
		s.end()
	}
	ctx, s.end = context.WithCancel(ctx)
	started, calls := time.Now(), uint64(0)
	s.v = view.New(view.Options{Every: 2 * time.Second, Source: func() view.Snapshot {
		calls += 20
		return view.Snapshot{URL: "nfs://192.0.2.1/", Version: "1", Started: started, Procs: []view.Proc{{Name: "READ", Program: "NFS", Calls: calls}}}
	}})
	go s.v.Run(ctx)
}

// RoundTrip implements http.RoundTripper: the network is left out.
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	s.asked = append(s.asked, r.URL.RequestURI())
	w := httptest.NewRecorder()
	switch fail := int(s.fail.Load()); {
	case fail == 1:
		return nil, fmt.Errorf("connection refused\x1b[2J")
	case fail > 0:
		http.Error(w, "no", fail)
	default:
		s.v.ServeHTTP(w, r)
	}
	return w.Result(), nil
}

func newServer(ctx context.Context) (*server, *http.Client) {
	s := new(server)
	s.begin(ctx)
	return s, &http.Client{Transport: s}
}

// plain is text without the escape sequences that Lines writes.
func plain(text string) string {
	return strings.NewReplacer("\x1b[1m", "", "\x1b[31;1m", "", "\x1b[0m", "").Replace(text)
}
