//go:build linux

package outsider

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
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

// web is the URL of a server's HTTP of that name in its log: api, http, metrics.
func (s *server) web(name string) string {
	s.b.Helper()
	said := regexp.MustCompile(`msg=` + name + ` url=http://(\S+:\d+)`)
	if name == "api" {
		said = regexp.MustCompile(`msg=listening network=tcp address=(\S+) serves="file API over HTTP"`)
	}
	var found []string
	s.b.until("the address in the log", func() bool {
		found = said.FindStringSubmatch(s.log.String())
		return found != nil
	})
	return "http://" + found[1]
}

// crowded is the URL of a server's HTTP of that name in its log, after alice has
// opened n connections to it.
func (b *box) crowded(s *server, name string, n int) string {
	b.Helper()
	at, err := url.Parse(s.web(name))
	b.no(err)
	port, err := strconv.Atoi(at.Port())
	b.no(err)
	web := &server{b: b, port: port}
	for range n {
		web.as(alice, "127.0.0.1")
	}
	return at.String()
}

// TestHalfRequestsForAll: half requests from more addresses than a server has connections, of
// which this host has plenty, keep nobody from the live page, the metrics or the files.
func TestHalfRequestsForAll(t *testing.T) {
	const most = 64 // of the servers for operators
	b := newBox(t)
	w := b.web("--http=127.0.0.1:0", "--metrics=127.0.0.1:0", fmt.Sprintf("--api-max-connections=%d", most))
	for name, paths := range map[string][]string{
		"http": {"/", "/view.json", "/healthz"}, "metrics": {"/metrics", "/healthz"}, "api": {"/keep", "/"},
	} {
		at := w.server.web(name)
		for i := range 2 * most {
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, 1, byte(1+i))}}
			c, err := d.Dial("tcp", strings.TrimPrefix(at, "http://"))
			b.no(err)
			b.Cleanup(func() { _ = c.Close() })
			_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: local")
			b.no(err)
		}
		for _, path := range append(paths, paths...) {
			b.asks(func(c *http.Client) (*http.Response, error) { return c.Get(at + path) })
		}
	}
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
