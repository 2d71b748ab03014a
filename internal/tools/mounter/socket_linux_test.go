package mounter

import (
	"errors"
	"net"
	"path/filepath"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// bound is how long a test waits for what it is certain of.
const bound = time.Minute

// listening is the socket of a mount, and its path.
func listening(t *testing.T) (*socket, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	s := listen(path)
	if s.l == nil {
		t.Fatal("it does not listen")
	}
	t.Cleanup(s.close)
	return s, path
}

// asking is an umount that will be told.
func asking(t *testing.T, path string) net.Conn {
	t.Helper()
	c := ask(path, bound)
	if c == nil {
		t.Fatal("it is not heard")
	}
	t.Cleanup(func() { _ = c.Close() }) // the test has read it
	return c
}

// TestReport: each umount that has asked hears what the mount could not make stable. Nobody can ask afterwards.
func TestReport(t *testing.T) {
	s, path := listening(t)
	asks := []net.Conn{asking(t, path), asking(t, path)}
	want := &Report{Bytes: 4096, Files: 2, Problems: []string{"no answer"}}
	s.report(want)
	s.close()
	for _, c := range asks {
		if got, err := hear(c); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("heard: %+v, %v", got, err)
		}
	}
	if ask(path, bound) != nil {
		t.Error("it listens after its end")
	}
}

// TestElsewhere: an umount hears after a while that the mount goes on in another mount namespace. One that still makes
// bytes stable is waited for.
func TestElsewhere(t *testing.T) {
	for _, ended := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := &socket{hurry: make(chan struct{})}
			here, there := net.Pipe()
			s.asks = []net.Conn{there}
			go s.read(there)
			begun := time.Now()
			if _, err := here.Write([]byte{leftWord}); err != nil {
				t.Fatal(err)
			}
			want := &Report{Elsewhere: true}
			if ended {
				s.end()
				want = &Report{Bytes: 7}
				time.AfterFunc(2*busyPatience, func() { s.report(want); s.close() })
			}
			if got, err := hear(here); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("heard: %+v, %v", got, err)
			}
			if took := time.Since(begun); took < busyPatience || took > 3*busyPatience {
				t.Errorf("after %v", took)
			}
		})
	}
}

// TestUnreadWord: a mount may end before it has read what an umount says. Its report is heard all the same.
func TestUnreadWord(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	here, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = here.Close() }()
	there, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := here.Write([]byte{leftWord}); err != nil {
		t.Fatal(err)
	}
	want := &Report{Bytes: 7}
	tell(there, want)
	if err := there.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := hear(here); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("heard: %+v, %v", got, err)
	}
}

// TestNoReport: a mount whose process has died says so by saying nothing.
func TestNoReport(t *testing.T) {
	s, path := listening(t)
	c := asking(t, path)
	s.close()
	if r, err := hear(c); !errors.Is(err, ErrNoReport) {
		t.Errorf("heard: %+v, %v", r, err)
	}
}

// TestHurry: an umount -f has the mount give up at once what is not stable.
func TestHurry(t *testing.T) {
	s, path := listening(t)
	for range 2 {
		if _, err := asking(t, path).Write([]byte{hurryWord}); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-s.hurry:
	case <-time.After(bound):
		t.Error("it goes on waiting")
	}
}

// TestManyAsk: beyond the bound nobody is promised a report.
func TestManyAsk(t *testing.T) {
	_, path := listening(t)
	for range maxAsking {
		asking(t, path)
	}
	if ask(path, bound) != nil {
		t.Errorf("more than %d are promised a report", maxAsking)
	}
}
