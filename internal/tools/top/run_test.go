package top

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

// TestFeed follows a server through two lives.
func TestFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s, client := newServer(ctx)
		feed, err := NewFeed("view.example:80", client)
		if err != nil {
			t.Fatal(err)
		}
		next := func(points int) {
			t.Helper()
			synctest.Wait()
			f, err := feed.Next(ctx)
			if err != nil || len(f.Points) != points {
				t.Fatalf("%+v, %v", f, err)
			}
			for i, p := range f.Points {
				if p.Seq != uint64(i+1) || p.Rates["READ"] != 10 {
					t.Errorf("point %d: %+v", i, p)
				}
			}
		}
		next(0)
		time.Sleep(4 * time.Second)
		next(2)
		next(2)
		time.Sleep(4 * time.Second)
		next(4)
		s.begin(ctx) // a life of which there is more to tell already than of the last
		time.Sleep(12 * time.Second)
		next(6)
		want := []string{"/view.json?after=0", "/view.json?after=0", "/view.json?after=2", "/view.json?after=2", "/view.json?after=4", "/view.json?after=0"}
		if !slices.Equal(s.asked, want) {
			t.Errorf("%q", s.asked)
		}
		time.Sleep(maxPoints * 4 * time.Second)
		for range 2 {
			if f, err := feed.Next(ctx); err != nil || len(f.Points) > maxPoints {
				t.Errorf("%d points, %v", len(f.Points), err)
			}
		}
		s.end()
	})
}

// TestAddresses makes Feeds of what people type.
func TestAddresses(t *testing.T) {
	for _, c := range []struct{ address, want string }{
		{"127.0.0.1:9100", "http://127.0.0.1:9100/view.json"},
		{"http://h:1", "http://h:1/view.json"},
		{"http://h:1/", "http://h:1/view.json"},
		{"https://h/nfs/", "https://h/nfs/view.json"},
		{"https://h/nfs/view.json", "https://h/nfs/view.json"},
		{"[::1]:80", "http://[::1]:80/view.json"},
		{"", ""}, {"nfs://h/", ""}, {"http://", ""}, {"http://h/?x", ""}, {"http://h/#x", ""}, {"http://h:x/", ""}, {"ftp://h\x1b/", ""},
	} {
		f, err := NewFeed(c.address, nil)
		if c.want == "" {
			if !errors.Is(err, ErrUsage) || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("%q: %v", c.address, err)
			}
		} else if err != nil || f.url.String() != c.want {
			t.Errorf("%q: %v, %v", c.address, f, err)
		}
	}
}

// TestStrangers asks servers that have no figures.
func TestStrangers(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"none":     http.NotFound,
		"text":     func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"another":  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"format":2}`)) },
		"empty":    func(http.ResponseWriter, *http.Request) {},
		"long":     func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, maxFrame+1)) },
		"redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"deep":     func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bytes.Repeat([]byte(`{"url":[`), 1<<18)) },
	} {
		s := httptest.NewServer(h)
		feed, err := NewFeed(s.URL, s.Client())
		if err != nil {
			t.Fatal(err)
		}
		if f, err := feed.Next(t.Context()); !errors.Is(err, ErrUnreachable) {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
		s.Close()
	}
}

// watch runs for a while what shows a server that is gone for a part of it.
func watch(t *testing.T, o Options) (string, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s, client := newServer(ctx)
	out := new(bytes.Buffer)
	o.URL, o.Client, o.Out = "http://view.example/", client, out
	time.Sleep(100 * time.Millisecond) // asks between the server's steps
	done := make(chan error)
	go func() { done <- Run(ctx, o) }()
	time.Sleep(3 * time.Second) // asked at 0 and 2 s
	s.fail.Store(1)
	time.Sleep(2 * time.Second) // at 4 s
	s.fail.Store(http.StatusServiceUnavailable)
	time.Sleep(3 * time.Second) // at 7 s
	s.fail.Store(0)
	time.Sleep(3 * time.Second) // at 10 s
	cancel()
	err := <-done
	s.end()
	return out.String(), err
}

// TestLog shows a server to those who have no terminal.
func TestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, err := watch(t, Options{})
		if err != nil {
			t.Error(err)
		}
		golden(t, "log.txt", out)
	})
}

// TestJSON sees each line be an object, and the last the summary.
func TestJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, err := watch(t, Options{JSON: true})
		if err != nil {
			t.Error(err)
		}
		var kinds []string
		for line := range strings.Lines(out) {
			var v struct {
				Type           string
				URL            string
				Frames, Errors int
			}
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			if kinds = append(kinds, v.Type); v.Type == "summary" && (v.Frames != 3 || v.Errors != 2) || v.Type == "frame" && v.URL == "" {
				t.Errorf("%s", line)
			}
		}
		if want := []string{"frame", "frame", "error", "error", "frame", "summary"}; !slices.Equal(kinds, want) {
			t.Errorf("%q", kinds)
		}
	})
}

// TestScreen shows a server on a terminal, whose size changes.
func TestScreen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resized := make(chan struct{})
		var size atomic.Int32
		size.Store(80)
		time.AfterFunc(time.Second, func() { size.Store(50); resized <- struct{}{}; close(resized) })
		out, err := watch(t, Options{Size: func() (int, int) { return int(size.Load()), 12 }, Resized: resized})
		if err != nil {
			t.Error(err)
		}
		body, ok := strings.CutPrefix(out, enter)
		body, ok2 := strings.CutSuffix(body, leave)
		if !ok || !ok2 {
			t.Errorf("%q", out)
		}
		drawn := strings.Split(strings.TrimPrefix(body, home), home)
		if len(drawn) != 6 || !strings.HasPrefix(drawn[3], "no figures from http://view.example/") {
			t.Errorf("%d drawn: %q", len(drawn), drawn)
		}
		for i, d := range drawn {
			if n := strings.Count(d, "\r\n") + 1; n > 12 || !strings.HasSuffix(d, clearLine+clearRest) {
				t.Errorf("drawing %d has %d lines: %q", i, n, d)
			}
			if n := utf8.RuneCountInString(strings.TrimSuffix(strings.Split(d, "\r\n")[0], clearLine)); i > 0 && n != 50 && i != 3 && i != 4 {
				t.Errorf("drawing %d is %d wide", i, n)
			}
		}
	})
}

// TestOnce shows one Frame, and no escape sequence.
func TestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s, client := newServer(ctx)
		time.Sleep(5 * time.Second)
		for _, size := range []func() (int, int){nil, func() (int, int) { return 60, 5 }} {
			var out bytes.Buffer
			if err := Run(ctx, Options{URL: "h", Client: client, Out: &out, Once: true, Size: size}); err != nil {
				t.Fatal(err)
			}
			if text := out.String(); strings.Contains(text, "\x1b") || !strings.Contains(text, "NFS READ") || strings.Count(text, "\n") < 8 {
				t.Errorf("%q", text)
			}
		}
		s.fail.Store(1)
		var out bytes.Buffer
		for _, once := range []bool{true, false} {
			if err := Run(ctx, Options{URL: "h", Client: client, Out: &out, Once: once}); !errors.Is(err, ErrUnreachable) || out.Len() > 0 {
				t.Errorf("%v, %q", err, &out)
			}
		}
		s.end()
	})
}

// TestBroken sees that an output that takes nothing ends it.
func TestBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s, client := newServer(ctx)
		for _, o := range []Options{{}, {JSON: true}, {Once: true}, {Size: func() (int, int) { return 80, 24 }}} {
			o.URL, o.Client, o.Out = "h", client, broken{}
			if err := Run(ctx, o); !errors.Is(err, errBroken) {
				t.Errorf("%+v: %v", o, err)
			}
		}
		s.end()
	})
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }
