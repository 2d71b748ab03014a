package bucket

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// inMemory is a client of a server in memory, which answers each request with answer. end closes it, and waits for the server's end.
func inMemory(t *testing.T, o Options, answer func(conn net.Conn) error) (c *Client, end func()) {
	t.Helper()
	var serving sync.WaitGroup
	o.Bucket, o.Endpoint, o.Credentials = "bucket", "http://memory", Static("key", "secret")
	c, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	c.client.Transport.(*http.Transport).Proxy = nil
	c.client.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		serving.Go(func() {
			defer there.Close() //nolint:errcheck // a pipe
			for r := bufio.NewReader(there); ; {
				req, err := http.ReadRequest(r)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, req.Body)
				if answer(there) != nil {
					return
				}
			}
		})
		return here, nil
	}
	return c, func() {
		c.Close()
		serving.Wait()
	}
}

// drips has a server send n bytes of each answer's body each five seconds, and say that it has length of them.
func drips(length, n int) func(net.Conn) error {
	return func(conn net.Conn) error {
		_, err := fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", length)
		for left := length; left > 0 && err == nil; left -= n {
			time.Sleep(5 * time.Second)
			_, err = conn.Write(make([]byte, min(n, left)))
		}
		return err
	}
}

// TestDripping: an answer that does not get on is given up soon, whatever its length; one that is slow, and gets on, is not.
func TestDripping(t *testing.T) {
	for name, x := range map[string]struct {
		length, n int
		limit     int64
		method    string
		most      time.Duration
		want      string // of the error
	}{
		"a listing by bytes": {1_000_000, 1, maxList, "GET", 2 * time.Minute, "answers too slowly, 3 times: its answer does not get on: "},
		"a short answer":     {100, 1, MaxBody, "GET", 2 * time.Minute, "its answer does not get on"},
		"just too slowly":    {1_000_000, 4 << 10, maxList, "GET", 20 * time.Minute, "answers too slowly, 3 times: it was not done after 5m16s"},
		"slowly":             {1_000_000, 32 << 10, maxList, "GET", 3 * time.Minute, ""},
		"a copy under way":   {9, 1, MaxError, "PUT", 50 * time.Second, ""},
		"a short reading":    {9, 1, 100, "GET", 2 * time.Minute, "its answer does not get on"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, end := inMemory(t, Options{}, drips(x.length, x.n))
				began := time.Now()
				a, err := c.Do(t.Context(), &Request{Method: x.method, Name: "key", Limit: x.limit})
				if took := time.Since(began); took > x.most {
					t.Errorf("it took %v", took)
				}
				if x.want == "" && (err != nil || len(a.Body) != x.length) || x.want != "" && (!errors.Is(err, ErrSilent) || !strings.Contains(err.Error(), x.want)) {
					t.Errorf("%v", err)
				}
				end()
			})
		})
	}
}
