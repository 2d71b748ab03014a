package bench_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/bench"
)

// TestPlainFailures counts what a server answers to a PUT by its kind.
func TestPlainFailures(t *testing.T) {
	s := serve(t, memfs.Options{})
	_, api := s.api()
	for status, kind := range map[int]string{403: "HTTP 403", 404: "NOENT", 507: "NOSPC"} {
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPut {
				w.WriteHeader(status)
				return
			}
			api.ServeHTTP(w, r)
		}))
		o := s.options("upload", "")
		o.URL, o.Count, o.API.Plain = h.URL, 10, true
		res, err := bench.Run(t.Context(), o)
		if err != nil || res.Ops != 0 || len(res.Faults) != 1 || res.Faults[0].Kind != kind {
			t.Errorf("%d: %+v, %v", status, res, err)
		}
		h.Close()
	}
	o := s.options("upload", "")
	o.URL, o.API = "http://127.0.0.1:1/", bench.API{Plain: true, Checksum: "blake3"}
	if _, err := bench.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "blake3") {
		t.Errorf("a checksum that HTTP has no name for: %v", err)
	}
}
