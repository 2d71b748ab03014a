package bucket

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestSilent: a store that answers no request is told of after five seconds, once for each try, with the time at which it is given up; and
// so is that it answers again.
func TestSilent(t *testing.T) {
	const ok, busy = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\n\r\n"
	errCut := errors.New("cut")
	for name, x := range map[string]struct {
		lasts time.Duration // from the first answer on, which is a good one
		wrong func(net.Conn) error
		first [2]time.Duration // when it is told, behind the beginning
		why   string           // what the last tells
		over  bool             // it answers again
	}{
		"refusals for a while":  {20 * time.Second, func(c net.Conn) error { _, err := io.WriteString(c, busy); return err }, [2]time.Duration{time.Second, 7 * time.Second}, "HTTP 503", true},
		"refusals for good":     {time.Hour, func(c net.Conn) error { _, err := io.WriteString(c, busy); return err }, [2]time.Duration{time.Second, 7 * time.Second}, "HTTP 503", false},
		"refusals for a second": {time.Second, func(c net.Conn) error { _, err := io.WriteString(c, busy); return err }, [2]time.Duration{}, "", false},
		"cut answers":           {10 * time.Second, func(net.Conn) error { return errCut }, [2]time.Duration{time.Second, 7 * time.Second}, "EOF", true},
		"no answer": {70 * time.Second, func(c net.Conn) error { _, err := c.Read(make([]byte, 1)); return err },
			[2]time.Duration{5 * time.Second, 5 * time.Second}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var told []Silence
				var when []time.Duration
				c, end := inMemory(t, Options{Silent: func(s Silence) { told, when = append(told, s), append(when, time.Since(began)) }}, func(c net.Conn) error {
					if since := time.Since(began); since > 0 && since < x.lasts {
						return x.wrong(c)
					}
					_, err := io.WriteString(c, ok)
					return err
				})
				defer end()
				head := func() error {
					_, err := c.Do(t.Context(), &Request{Method: "HEAD", Name: "key"})
					return err
				}
				if err := head(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Millisecond)
				err := head()
				ended := time.Now()
				if over := err == nil; over != (x.lasts < time.Hour) {
					t.Errorf("it ends with %v", err)
				}
				if x.first == ([2]time.Duration{}) {
					if len(told) > 0 {
						t.Errorf("told %+v", told)
					}
					return
				}
				if len(told) == 0 || told[len(told)-1].Over != x.over {
					t.Fatalf("told %+v", told)
				}
				if when[0] < x.first[0] || when[0] > x.first[1]+time.Second {
					t.Errorf("told after %v", when[0])
				}
				last := ""
				for i, s := range told {
					if !s.Over {
						last = s.Why
					}
					if s.Server != "memory" || s.Since.Sub(began) > time.Second || s.Over != s.Until.IsZero() || s.Over && i != len(told)-1 {
						t.Errorf("told %+v", s)
					}
				}
				if !strings.Contains(last, x.why) {
					t.Errorf("because of %q", last)
				}
				if until := told[0].Until; !x.over && (until.Before(ended) || until.After(ended.Add(time.Minute))) {
					t.Errorf("given up %v behind what was told", ended.Sub(until))
				}
			})
		})
	}
}

// TestBusyIsNotSilent: a store that refuses some requests, and answers others, is not silent.
func TestBusyIsNotSilent(t *testing.T) {
	s := silence{tell: func(s Silence) { t.Errorf("told %+v", s) }}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		for range 30 {
			time.Sleep(time.Second)
			s.answers("store")
			s.waits("store", began, 3*time.Second, time.Minute, "HTTP 503")
		}
	})
}
