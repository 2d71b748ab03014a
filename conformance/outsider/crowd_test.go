//go:build linux

package outsider

import (
	"net/http"
	"regexp"
	"strconv"
	"testing"
)

// TestMetricsForAll: a user who takes every connection to the metrics keeps no other
// user from asking how the server is.
func TestMetricsForAll(t *testing.T) {
	b := newBox(t)
	s := b.shared("--metrics=127.0.0.1:0")
	at := regexp.MustCompile(`metrics url=http://127\.0\.0\.1:(\d+)`)
	var found []string
	b.until("the metrics' address in the log", func() bool {
		found = at.FindStringSubmatch(s.log.String())
		return found != nil
	})
	port, err := strconv.Atoi(found[1])
	b.no(err)
	metrics := &server{b: b, port: port}
	for range 80 {
		metrics.as(alice, "127.0.0.1")
	}
	for range 5 {
		c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := c.Get("http://127.0.0.1:" + found[1] + "/healthz")
		b.no(err)
		b.no(res.Body.Close())
		if res.StatusCode != http.StatusOK {
			t.Errorf("status %d", res.StatusCode)
		}
	}
}
