package fileapi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

// wiretap counts the bytes of bodies on the client's side, by the path of the request.
type wiretap struct {
	*http.Transport
	mu    sync.Mutex
	calls map[string]*tapped // guarded by mu
	last  string             // guarded by mu; path
}

type tapped struct{ in, out atomic.Uint64 }

func tap(c *http.Client) *wiretap {
	t := &wiretap{Transport: c.Transport.(*http.Transport), calls: make(map[string]*tapped)}
	c.Transport = t
	return t
}

// RoundTrip implements http.RoundTripper.
func (t *wiretap) RoundTrip(r *http.Request) (*http.Response, error) {
	t.mu.Lock()
	t.last = r.URL.Path
	n := t.calls[t.last]
	if n == nil {
		n = &tapped{}
		t.calls[t.last] = n
	}
	t.mu.Unlock()
	if r.Body != nil {
		r = r.Clone(r.Context())
		r.Body = &counting{r.Body, &n.in}
	}
	answer, err := t.Transport.RoundTrip(r)
	if err == nil {
		answer.Body = &counting{answer.Body, &n.out}
	}
	return answer, err
}

type counting struct {
	io.ReadCloser
	n *atomic.Uint64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(uint64(n))
	return n, err
}

// wait waits until all calls have ended.
func (r *rig) wait() {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := r.s.Wait(ctx); err != nil {
		r.Fatal(err)
	}
}

// TestCounts makes every call in every encoding, and holds what the server has counted
// against what its clients have done: both ways to the procedures count the same.
func TestCounts(t *testing.T) {
	for _, encoding := range encodings {
		t.Run(encoding, func(t *testing.T) {
			r := newRig(t, nil, nil)
			one, two := tap(r.http), tap(r.h2)
			want := make(map[string]map[string]uint64)
			for _, s := range steps {
				if _, err := s.do(t.Context(), r.client[encoding]); connect.CodeOf(err) != s.code && (err != nil || s.code != 0) {
					t.Fatalf("%s: %v", s.name, err)
				}
				w := one
				if one.last == "" {
					w = two
				}
				name := procedureOf(http.MethodPost, w.last).String()
				if want[name] == nil {
					want[name] = make(map[string]uint64)
				}
				want[name][Code(s.code).String()]++
			}
			r.wait()
			s := r.s.Snapshot()
			for _, name := range procedures {
				r.checkCall(name, s.Calls[name], want[name], one, two)
			}
			r.denied(TooLarge, 3) // an echo, an upload, and a range
			if s.Slow != 0 {
				t.Errorf("%d were slow", s.Slow)
			}
		})
	}
}

// checkCall holds what was counted of a procedure against what was done.
func (r *rig) checkCall(name string, c Call, codes map[string]uint64, taps ...*wiretap) {
	r.Helper()
	var n, failed, in, out uint64
	for code, k := range codes {
		if n += k; code != "ok" {
			failed += k
		}
	}
	for _, t := range taps {
		if b := t.calls["/"+pb.FileServiceName+"/"+name]; b != nil {
			in, out = in+b.in.Load(), out+b.out.Load()
		}
	}
	if c.Time.Count != n || c.Errors != failed || !maps.Equal(c.Codes, codes) || c.InProgress != 0 {
		r.Errorf("%s: %d calls, %d errors, %v, %d in progress; want %d, %d, %v", name, c.Time.Count, c.Errors, c.Codes, c.InProgress, n, failed, codes)
	}
	// An upload that was refused has not been read to its end.
	if read := c.BytesIn == in || name == "Upload" && c.BytesIn < in; !read || c.BytesOut != out {
		r.Errorf("%s: %d bytes came in and %d went out; the clients say %d and %d", name, c.BytesIn, c.BytesOut, in, out)
	}
	if n > 0 && (in == 0 || out == 0 && name != "Echo") {
		r.Errorf("%s: nothing was moved", name)
	}
}

// TestCountsOfOdd makes requests that no procedure gets to see, in every way, and looks
// for what they are counted as.
func TestCountsOfOdd(t *testing.T) {
	grpc := http.Header{"Content-Type": {"application/grpc+proto"}, "Te": {"trailers"}}
	web := http.Header{"Content-Type": {"application/grpc-web+proto"}}
	json := http.Header{"Content-Type": {"application/json"}}
	proto := http.Header{"Content-Type": {"application/proto"}}
	with := func(h http.Header, key, value string) http.Header {
		h = h.Clone()
		h.Set(key, value)
		return h
	}
	broken := prefixed("\xff")
	long := strings.Repeat("x", maxMessage+1)
	const cutOff = "\x00\x00"
	for _, c := range []struct {
		name, method, path string
		header             http.Header
		body               string
		procedure, code    string
		reason             Reason
	}{
		{"protobuf that is none", "", "Get", proto, "\xff", "Get", "invalid_argument", 0},
		{"protobuf that is none, the other way", "", "Get", with(proto, "Content-Encoding", "identity"), "\xff", "Get", "invalid_argument", 0},
		{"JSON that is none", "", "Get", json, "{", "Get", "invalid_argument", 0},
		{"gRPC that is none", "", "Get", grpc, broken, "Get", "invalid_argument", 0},
		{"gRPC-Web that is none", "", "Get", web, broken, "Get", "invalid_argument", 0},
		{"a stream that is none", "", "Download", with(json, "Content-Type", "application/connect+json"), broken, "Download", "invalid_argument", 0},
		{"a message too long", "", "Put", proto, long, "Put", "resource_exhausted", TooLarge},
		{"JSON too long", "", "Put", json, long, "Put", "resource_exhausted", TooLarge},
		{"gRPC too long", "", "Put", grpc, prefixed(long), "Put", "resource_exhausted", TooLarge},
		{"a stream's message too long", "", "Upload", with(json, "Content-Type", "application/connect+proto"), prefixed(long), "Upload", "resource_exhausted", TooLarge},
		{"protobuf that is cut off", "", "Get", proto, cutOff, "Get", "invalid_argument", 0},
		{"JSON that is cut off", "", "Get", json, cutOff, "Get", "invalid_argument", 0},
		{"gRPC that is cut off", "", "Get", grpc, cutOff, "Get", "invalid_argument", 0},
		{"compressed", "", "Get", with(proto, "Content-Encoding", "gzip"), "", "Get", "unimplemented", 0},
		{"no timeout", "", "Get", with(proto, "Connect-Timeout-Ms", "x"), "", "Get", "invalid_argument", 0},
		{"no timeout, in JSON", "", "Get", with(json, "Connect-Timeout-Ms", "x"), "{}", "Get", "invalid_argument", 0},
		{"another method", http.MethodDelete, "Get", proto, "", "Get", "unimplemented", 0},
		{"another type", "", "Get", with(proto, "Content-Type", "text/plain"), "", "Get", "unimplemented", 0},
		{"another procedure", "", "unknown", proto, "", "unknown", "unimplemented", 0},
		{"no token", "", "Get", with(proto, "Authorization", "Bearer x"), "", "", "unauthenticated", Unauthenticated},
	} {
		t.Run(c.name, func(t *testing.T) {
			var served []Served
			r := newRig(t, nil, func(o *Options) {
				o.Observe = func(s Served) { served = append(served, s) }
				o.Sample = func() bool { return true }
			})
			q := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/"+pb.FileServiceName+"/"+c.path, strings.NewReader(c.body))
			if q.Header = c.header; c.method != "" {
				q.Method = c.method
			}
			if c.body == cutOff {
				q.Body = io.NopCloser(io.MultiReader(q.Body, iotest.ErrReader(io.ErrUnexpectedEOF)))
				q.ContentLength++
			}
			q.RemoteAddr = netipLoopback.String()
			r.s.ServeHTTP(httptest.NewRecorder(), q)
			s := r.s.Snapshot()
			for _, name := range procedures {
				got, want := s.Calls[name].Codes, map[string]uint64{}
				if name == c.procedure {
					want[c.code] = 1
				}
				if !maps.Equal(got, want) {
					t.Errorf("%s: %v, want %v", name, got, want)
				}
			}
			r.denied(c.reason, 1)
			if len(served) != 1 || served[0].Code.String() != c.code || served[0].Procedure.String() != c.path || served[0].Client != netipLoopback {
				t.Errorf("it was told of %+v", served)
			}
		})
	}
}

// prefixed is a message in the envelope of a stream.
func prefixed[T []byte | string](message T) T {
	return T(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...))
}

// TestObserve looks at what is told of calls, and of which.
func TestObserve(t *testing.T) {
	var mu sync.Mutex
	var served []Served
	var now atomic.Int64
	sample := true
	r := newRig(t, nil, func(o *Options) {
		o.Callers = callersOf(t, "somebody 1000:1001 token:"+token)
		o.Loopback = nil
		o.Sample = func() bool { return sample }
		o.Slow = time.Minute
		o.Now = func() time.Time { return time.Unix(now.Load(), 0) }
		o.Observe = func(s Served) {
			mu.Lock()
			defer mu.Unlock()
			served = append(served, s)
		}
	})
	ask := func(path, token string, slow time.Duration) Served {
		served = nil
		body := io.Reader(strings.NewReader(`{"path":"` + path + `"}`))
		q := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/"+pb.FileServiceName+"/Stat", readerFunc(func(p []byte) (int, error) {
			now.Add(int64(slow / time.Second))
			slow = 0
			return body.Read(p)
		}))
		q.RemoteAddr = netipLoopback.String()
		q.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + token}}
		w := httptest.NewRecorder()
		r.s.ServeHTTP(w, q)
		if len(served) == 0 {
			return Served{}
		}
		if n := uint64(w.Body.Len()); served[0].BytesOut != n && served[0].HasUID || len(served) > 1 {
			t.Errorf("%s: told of %+v; %d bytes went out", path, served, n)
		}
		served[0].BytesOut = 0
		return served[0]
	}
	stat := Served{Client: netipLoopback, Name: "somebody", UID: 1000, HasUID: true, Sampled: true, BytesIn: 12, Path: "/"}
	missing, slow := stat, stat
	missing.Code, missing.BytesIn, missing.Path = Code(connect.CodeNotFound), 13, "/x"
	slow.Took, slow.Sampled = time.Minute, false
	for _, c := range []struct {
		path, token string
		slow        time.Duration
		sample      bool
		want        Served
	}{
		{"/", token, 0, true, stat},
		{"/x", token, 0, true, missing},
		{"/", other, 0, true, Served{Client: netipLoopback, Code: Code(connect.CodeUnauthenticated), Sampled: true}},
		{"/", token, 0, false, Served{}},
		{"/", other, 0, false, Served{}},
		{"/", token, time.Minute, false, slow},
		{"/", token, time.Minute - time.Second, false, Served{}},
	} {
		sample = c.sample
		if got := ask(c.path, c.token, c.slow); got != c.want {
			t.Errorf("%+v: told of %+v", c, got)
		}
	}
	sample, r.s.o.Slow = false, 0
	if got := ask("/", token, time.Hour); got != (Served{}) {
		t.Errorf("nobody wants to know of slow calls: told of %+v", got)
	}
	q := &request{pacer: &pacer{read: 1, written: 2}, known: true, start: r.s.o.Now()}
	if n := testing.AllocsPerRun(100, func() {
		r.s.begins(q)
		r.s.ended(q)
	}); n != 0 {
		t.Errorf("a call that is not wanted costs %v allocations", n)
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestWait has a call that the disk holds up, and waits for it after everything else
// has ended; then no other begins.
func TestWait(t *testing.T) {
	reading, goOn := make(chan struct{}), make(chan struct{})
	fs := memfs.New(memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
		if op == "read" {
			close(reading)
			<-goOn
		}
		return nil
	}})
	var told atomic.Int64
	r := newRig(t, fs, func(o *Options) {
		o.Sample = func() bool { return true }
		o.Observe = func(Served) { told.Add(1) }
	})
	r.make("/f", aFile, "content")
	r.wait() // for nothing
	failed := make(chan error, 1)
	go func() {
		_, err := r.client["protobuf"].Get(context.Background(), &pb.GetRequest{File: &pb.GetRequest_Path{Path: "/f"}})
		failed <- err
	}()
	<-reading
	if c := r.s.Snapshot().Calls["Get"]; c.InProgress != 1 || c.Time.Count != 0 {
		t.Errorf("%d in progress, %d ended", c.InProgress, c.Time.Count)
	}
	if err := r.s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-failed; err == nil {
		t.Error("the call was answered after Close")
	}
	over, cancel := context.WithCancelCause(t.Context())
	cancel(io.ErrClosedPipe)
	if err := r.s.Wait(over); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Wait, with a call in progress: %v", err)
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(r.wait)
	}
	close(goOn)
	all.Wait()
	if n := told.Load(); n != 1 {
		t.Errorf("it was told of %d calls", n)
	}
	q := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/"+pb.FileServiceName+"/Get", nil)
	q.RemoteAddr = netipLoopback.String()
	w := httptest.NewRecorder()
	r.s.ServeHTTP(w, q)
	s := r.s.Snapshot()
	if w.Code == http.StatusOK || s.Denied[Closing.String()] != 1 || told.Load() != 1 || s.Calls["Get"].Time.Count != 1 {
		t.Errorf("after Close: %d, told of %d, %+v", w.Code, told.Load(), s.Denied)
	}
}

// TestPanic has a call whose handler panics.
func TestPanic(t *testing.T) {
	r := newRig(t, memfs.New(memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
		if op == "readdir" {
			panic(http.ErrAbortHandler)
		}
		return nil
	}}), nil)
	for i, encoding := range encodings {
		if _, err := r.client[encoding].List(t.Context(), &pb.ListRequest{File: &pb.ListRequest_Path{Path: "/"}}); err == nil {
			t.Error("it was answered")
		}
		r.wait()
		if c := r.s.Snapshot().Calls["List"]; c.Codes["internal"] != uint64(i+1) || len(c.Codes) != 1 {
			t.Errorf("%s: %v", encoding, c.Codes)
		}
	}
}

// TestParseIDs reads what names a caller.
func TestParseIDs(t *testing.T) {
	for text, want := range map[string]string{
		"1:2": "1 2 []", "0:4294967294,3,3": "0 4294967294 [3 3]",
		"": "", "1": "", "1:": "", ":1": "", "1:2,": "", "1:4294967295": "", "-1:1": "", "a:b": "", "1:2 ,3": "",
		"1:1" + strings.Repeat(",1", maxGroups+1): "",
	} {
		c, err := ParseIDs(text)
		if got := fmt.Sprint(c.UID, c.GID, c.Groups); err == nil && got != want || (err == nil) != (want != "") {
			t.Errorf("%.20q: %s, %v; want %s", text, got, err, want)
		}
	}
}

// BenchmarkEnded is what the counting of a call costs.
func BenchmarkEnded(b *testing.B) {
	r := newRig(b, nil, func(o *Options) {
		o.Observe = func(Served) {}
		o.Sample = func() bool { return false }
	})
	q := &request{pacer: &pacer{read: 1, written: 2}, known: true, start: r.s.o.Now()}
	b.Run("telling nobody", func(b *testing.B) {
		for b.Loop() {
			r.s.observe(q, 1)
		}
	})
	b.Run("all", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.s.begins(q)
			r.s.ended(q)
		}
	})
}

// cutOff waits until a call of this name has failed.
func (r *rig) cutOff(name string) {
	r.Helper()
	for range 20_000 {
		if r.s.Snapshot().Calls[name].Errors > 0 {
			r.wait()
			return
		}
		time.Sleep(time.Millisecond) // for the server's clock
	}
	r.Fatalf("no %s has failed", name)
}

// TestSlowOverHTTP2 cuts off those who neither send nor take, where a stream shares its
// connection with others.
func TestSlowOverHTTP2(t *testing.T) {
	r := newRig(t, nil, func(o *Options) { o.Limits.Idle = 100 * time.Millisecond })
	r.make("/large", aFile, string(random(8<<20)))
	stream, err := r.client["grpc"].Download(t.Context(), &pb.DownloadRequest{File: &pb.DownloadRequest_Path{Path: "/large"}})
	if err != nil {
		t.Fatal(err)
	}
	r.cutOff("Download") // nothing is taken
	if err := stream.Close(); err != nil {
		t.Log(err) // it was cut off
	}
	up, err := r.client["grpc"].Upload(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := up.Send(&pb.UploadRequest{Part: &pb.UploadRequest_Header{Header: &pb.UploadHeader{File: &pb.UploadHeader_Path{Path: "/f"}}}}); err != nil {
		t.Fatal(err)
	}
	r.cutOff("Upload") // nothing is sent
	if _, err := up.CloseAndReceive(); connect.CodeOf(err) != connect.CodeDeadlineExceeded {
		t.Errorf("an upload that stops: %v", err)
	}
	s := r.s.Snapshot()
	for _, name := range []string{"Download", "Upload"} {
		if c := s.Calls[name].Codes; c["deadline_exceeded"] != 1 || len(c) != 1 {
			t.Errorf("%s: %v", name, c)
		}
	}
	if s.Slow != 2 {
		t.Errorf("%d calls count as slow, want 2", s.Slow)
	}
}
