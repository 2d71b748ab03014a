package ops

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/fileapi"
	"github.com/nfsbox/nfsbox/internal/server/reqlog"
	"github.com/nfsbox/nfsbox/internal/server/view"
	"github.com/nfsbox/nfsbox/internal/testkit/logbuf"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// TestSlowLog tells of calls above the threshold, of so many in a window, and of
// how many were left out.
func TestSlowLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logbuf.Buffer{}
		s := newSlowLog(slog.New(slog.NewTextHandler(log, nil)), time.Now, time.Second)
		call := reqlog.Call{Procedure: nfs3.NFSPROC3_READ, Client: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 700}, Took: 2 * time.Second,
			Object: &object{Object: nfsserver.Object{Path: "/data/x"}}}
		fast := call
		fast.Took = 999 * time.Millisecond
		s.observe(fast)
		synctest.Wait()
		if log.String() != "" {
			t.Errorf("a fast call is told of:\n%s", log)
		}
		for range 3 * slowLines {
			s.observe(call)
			synctest.Wait()
		}
		if n := strings.Count(log.String(), "slow call"); n != slowLines {
			t.Errorf("%d lines in a window, of at most %d", n, slowLines)
		}
		for _, want := range []string{"NFSPROC3_READ", "path=/data/x", "client=192.0.2.1:700", "took=2s"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("no %s in\n%s", want, log)
			}
		}
		time.Sleep(slowWindow) // of the bubble's clock
		s.observe(call)
		synctest.Wait()
		if !strings.Contains(log.String(), "left_out=40") {
			t.Errorf("nothing is said of what was left out:\n%s", log)
		}
		s.set(0)
		s.observe(call)
		s.close()
		if n := s.count.Load(); n != 3*slowLines+1 {
			t.Errorf("%d calls are counted", n)
		}
	})
}

// stuck is a log that takes nothing until it is let go.
type stuck chan struct{}

func (s stuck) Write(p []byte) (int, error) {
	<-s
	return len(p), nil
}

// TestSlowLogNeverWaits goes on while the log does not.
func TestSlowLogNeverWaits(t *testing.T) {
	log := make(stuck)
	s := newSlowLog(slog.New(slog.NewTextHandler(log, nil)), time.Now, time.Second)
	call := reqlog.Call{Procedure: nfs3.NFSPROC3_READ, Client: &net.TCPAddr{}, Took: time.Minute}
	for range 10 * slowQueue {
		s.observe(call)
	}
	if s.lost.Load() == 0 {
		t.Error("nothing is lost")
	}
	close(log)
	s.close()
}

// TestSlowLogEnded is told of calls that outlive it, and minds nothing.
func TestSlowLogEnded(t *testing.T) {
	log := &logbuf.Buffer{}
	s := newSlowLog(slog.New(slog.NewTextHandler(log, nil)), time.Now, time.Second)
	call := reqlog.Call{Procedure: nfs3.NFSPROC3_READ, Took: time.Minute}
	s.observe(call)
	s.close()
	for range 2 * slowQueue {
		s.observe(call)
	}
	if n := strings.Count(log.String(), "slow call"); n != 1 {
		t.Errorf("%d lines of a call before the end, and many after it", n)
	}
}

// TestSlowAPI has calls of the file API in the log and the view, but for those that
// moved many bytes.
func TestSlowAPI(t *testing.T) {
	log := &logbuf.Buffer{}
	l := &Logs{slow: newSlowLog(slog.New(slog.NewTextHandler(log, nil)), time.Now, time.Second)}
	l.slow.view = view.New(view.Options{Source: func() view.Snapshot { return view.Snapshot{} }})
	call := fileapi.Served{Name: "ann", UID: 1000, HasUID: true, Took: time.Minute, BytesIn: 40, BytesOut: maxSlowBytes - 40}
	l.ObserveAPI(call)
	call.BytesIn++
	l.ObserveAPI(call)
	l.slow.close()
	if n := strings.Count(log.String(), "slow call"); n != 1 || !strings.Contains(log.String(), "user=ann uid=1000 took=1m0s") {
		t.Errorf("%d lines:\n%s", n, log)
	}
	if n := l.slow.count.Load(); n != 1 {
		t.Errorf("%d calls are counted", n)
	}
}

// TestSlowClient names clients as text, in JSON too, and where there is none; their
// user where one is known, root included; and what nobody knows.
func TestSlowClient(t *testing.T) {
	log := &logbuf.Buffer{}
	s := newSlowLog(slog.New(slog.NewJSONHandler(log, nil)), time.Now, time.Second)
	s.observe(reqlog.Call{Procedure: nfs3.NFSPROC3_READ, Client: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 700}, Took: time.Minute})
	s.observe(reqlog.Call{Procedure: nfs3.NFSPROC3_READ, Took: time.Minute, HasUID: true})
	s.observe(reqlog.Call{Took: time.Minute, UID: 1000, HasUID: true})
	s.close()
	if n := strings.Count(log.String(), `"uid"`); n != 2 {
		t.Errorf("%d users in\n%s", n, log)
	}
	for _, want := range []string{`"client":"192.0.2.1:700","took"`, `"procedure":"NFSPROC3_READ","uid":0,`, `"procedure":"unknown","uid":1000,`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in\n%s", want, log)
		}
	}
}

// TestSlowView tells the view of what the log does not.
func TestSlowView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := newSlowLog(slog.New(slog.DiscardHandler), time.Now, 0)
		s.view = view.New(view.Options{Source: func() view.Snapshot { return view.Snapshot{} }})
		go s.view.Run(ctx)
		s.observe(reqlog.Call{
			Procedure: nfs3.NFSPROC3_READ, Client: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 700}, XID: 7,
			Took: time.Minute, Waited: time.Second,
		})
		s.observe(reqlog.Call{Procedure: nfs3.NFSPROC3_READ, Took: time.Second})
		told := time.Now()
		time.Sleep(2 * view.DefaultEvery) // of the bubble's clock
		want := []view.SlowFrame{
			{At: told.UTC(), Proc: "READ", Client: "192.0.2.1:700", XID: 7, Took: 60, Waited: 1},
			{At: told.UTC(), Proc: "READ", Took: 1},
		}
		if got := s.view.Frame(0).Slow; !slices.Equal(got, want) {
			t.Errorf("%+v", got)
		}
		if n := s.count.Load(); n != 0 {
			t.Errorf("%d calls are counted, and there is no threshold", n)
		}
		cancel()
		s.close()
	})
}

// TestSlowViewAllocates spends nothing on calls that are not among the slowest.
func TestSlowViewAllocates(t *testing.T) {
	s := newSlowLog(slog.New(slog.DiscardHandler), time.Now, 0)
	s.view = view.New(view.Options{Source: func() view.Snapshot { return view.Snapshot{} }})
	call := reqlog.Call{Procedure: nfs3.NFSPROC3_READ, Client: &net.TCPAddr{}, Took: time.Second}
	for range 100 { // until there is no room
		s.observe(call)
	}
	call.Took = time.Millisecond
	if n := testing.AllocsPerRun(100, func() { s.observe(call) }); n != 0 {
		t.Errorf("a call that is not shown costs %v allocations", n)
	}
	s.close()
}

func TestSlowLogAllocates(t *testing.T) {
	s := newSlowLog(slog.New(slog.DiscardHandler), time.Now, time.Second)
	call := reqlog.Call{Procedure: nfs3.NFSPROC3_READ, Client: &net.TCPAddr{}, Took: time.Millisecond}
	if n := testing.AllocsPerRun(100, func() { s.observe(call) }); n != 0 {
		t.Errorf("a call that is not slow costs %v allocations", n)
	}
	s.close()
}
