//go:build linux

package outsider

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestMetricsForAll: a user who takes every connection to the metrics keeps no other
// user from asking how the server is.
func TestMetricsForAll(t *testing.T) {
	b := newBox(t)
	at := b.crowded(b.shared("--metrics=127.0.0.1:0"), "metrics", 80)
	for range 5 {
		b.asks(func(c *http.Client) (*http.Response, error) { return c.Get(at + "/healthz") })
	}
}

// TestFilesForAll: a user who takes every connection to the file API keeps no other user from the files.
func TestFilesForAll(t *testing.T) {
	b := newBox(t)
	at := b.crowded(b.shared("--api=127.0.0.1:0", "--api-loopback=0:0", "--api-max-connections=64"), "api", 80)
	for range 5 {
		b.asks(func(c *http.Client) (*http.Response, error) {
			return c.Post(at+"/nfsbox.fileapi.v1.FileService/List", "application/json", strings.NewReader(`{"path":"/"}`))
		})
	}
}

// crowded is the URL of a server's HTTP of that name in its log, after alice has
// opened n connections to it.
func (b *box) crowded(s *server, name string, n int) string {
	b.Helper()
	at := regexp.MustCompile(name + ` url=(http://127\.0\.0\.1:(\d+))`)
	var found []string
	b.until("the address in the log", func() bool {
		found = at.FindStringSubmatch(s.log.String())
		return found != nil
	})
	port, err := strconv.Atoi(found[2])
	b.no(err)
	web := &server{b: b, port: port}
	for range n {
		web.as(alice, "127.0.0.1")
	}
	return found[1]
}

// asks expects an answer on a connection of its own.
func (b *box) asks(ask func(*http.Client) (*http.Response, error)) {
	b.Helper()
	res, err := ask(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}})
	b.no(err)
	b.no(res.Body.Close())
	if res.StatusCode != http.StatusOK {
		b.Errorf("status %d", res.StatusCode)
	}
}
