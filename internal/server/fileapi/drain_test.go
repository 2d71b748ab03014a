package fileapi

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// stopped shuts the server down, and returns how long that has taken.
func (r *rig) stopped() time.Duration {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	began := time.Now()
	if err := r.s.Shutdown(ctx); err != nil {
		r.Errorf("shutdown: %v", err)
	}
	return time.Since(began)
}

// TestDrainStuck: clients that do nothing, in the middle of a request, of its body, or of the
// answer, do not hold up the end.
func TestDrainStuck(t *testing.T) {
	for name, begin := range map[string]struct{ request string }{
		"half a header":    {"GET /f HTTP/1.1\r\nHost: local"},
		"half a body":      {"PUT /g HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf"},
		"no answer":        {"GET /f HTTP/1.1\r\nHost: localhost\r\n\r\n"},
		"half a call":      {rawRequest("POST", "Put", "", make([]byte, 100))[:150]},
		"nothing":          {""},
		"after an answer":  {"HEAD /f HTTP/1.1\r\nHost: localhost\r\n\r\n"},
		"a body, denied":   {"PUT /g HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil\r\nContent-Length: 100\r\n\r\nhalf"},
		"small, no answer": {strings.Repeat("GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n", 4000)},
	} {
		t.Run(name, func(t *testing.T) {
			timed(t, nil, func(r *rig) {
				r.make("/f", aFile, string(make([]byte, 24<<20)))
				r.make("/small", aFile, string(make([]byte, 3000)))
				c := r.conn()
				defer func() { _ = c.Close() }()
				go func() { _, _ = io.WriteString(c, begin.request) }() // the server may not take it all
				time.Sleep(time.Second)
				synctest.Wait()
				if took := r.stopped(); took > 3*drainIdle {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// trickle sends p by pieces, one each second, and returns the answer's status.
func trickle(c net.Conn, p string, piece int) (status string, err error) {
	for len(p) > 0 {
		n := min(piece, len(p))
		if _, err := io.WriteString(c, p[:n]); err != nil {
			return "", err
		}
		p = p[n:]
		time.Sleep(time.Second)
	}
	answer := make([]byte, 12)
	_, err = io.ReadFull(c, answer)
	return string(answer), err
}

// TestDrainProgress: the end waits for an upload that goes on, however slowly for one that
// is to be cut off otherwise. A client that sends a few bytes each second does not go on.
func TestDrainProgress(t *testing.T) {
	const size = 64 << 10
	for piece, want := range map[int]string{progress: "HTTP/1.1 201", 10: ""} {
		timed(t, nil, func(r *rig) {
			c := r.conn()
			defer func() { _ = c.Close() }()
			type end struct {
				status string
				err    error
			}
			ended := make(chan end, 1)
			go func() {
				status, err := trickle(c, fmt.Sprintf("PUT /g HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat("x", size)), piece)
				ended <- end{status, err}
			}()
			time.Sleep(time.Second / 2)
			synctest.Wait()
			took := r.stopped()
			if want == "" {
				_ = c.Close()
			}
			if e := <-ended; e.status != want || (e.err == nil) != (want != "") {
				t.Errorf("%d bytes each second: %q, %v", piece, e.status, e.err)
			}
			if want == "" && took > 3*drainIdle {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestDrainAnswers: a client that takes its answer slowly, and goes on, gets it whole.
func TestDrainAnswers(t *testing.T) {
	timed(t, nil, func(r *rig) {
		const size = 1 << 20
		r.make("/f", aFile, string(make([]byte, size)))
		got := make(chan int, 1)
		first := make(chan struct{})
		go func() {
			answer, err := r.http.Get("http://" + r.addr + "/f")
			if err != nil {
				t.Error(err)
				close(first)
				return
			}
			defer func() { _ = answer.Body.Close() }()
			close(first)
			n, buf := 0, make([]byte, piece)
			for {
				m, err := io.ReadFull(answer.Body, buf)
				n += m
				if err != nil {
					break
				}
				time.Sleep(time.Second)
			}
			got <- n
		}()
		<-first
		r.stopped()
		if n := <-got; n != size {
			t.Errorf("%d bytes have come, of %d", n, size)
		}
	})
}
