package worker

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/wait"
	"github.com/nfsbox/nfsbox/internal/tools/hands"
	"github.com/nfsbox/nfsbox/internal/tools/hands/wire"
	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/queue"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestAllowed: a job's place is allowed, or is not.
func TestAllowed(t *testing.T) {
	for _, c := range []struct {
		allow, place string
		below        string // "-": it is not allowed
	}{
		{"nfs://h/e?uid=1&gid=1", "nfs://h/e/a/b?uid=1&gid=1", "a/b"},
		{"nfs://h/e?uid=1&gid=1", "nfs://H/e/?uid=1&gid=1", ""},
		{"nfs://h/e?uid=1&gid=1", "nfs://h/e?uid=2&gid=1", "-"},
		{"nfs://h/e?uid=1&gid=1", "nfs://h/e?uid=1&gid=0", "-"},
		{"nfs://h/e?uid=1&gid=1", "nfs://h/ee?uid=1&gid=1", "-"},
		{"nfs://h/e?uid=1&gid=1", "nfs://h/?uid=1&gid=1", "-"},
		{"nfs://h/e?uid=1&gid=1", "nfs://g/e?uid=1&gid=1", "-"},
		{"nfs://h/e?uid=1&gid=1", "nfs://h:99/e?uid=1&gid=1", "-"},
		{"nfs://h/e?uid=1&gid=1", "nfs://h/e?uid=1&gid=1&nfsport=7", "-"},
		{"nfs://h/e?uid=1&gid=1", "nfs://h/e?uid=1&gid=1&export=/", "-"},
		{"nfs://h/?uid=1&gid=1", "nfs://h/x?uid=1&gid=1", "x"},
	} {
		a, err := Allow(c.allow)
		if err != nil {
			t.Fatal(err)
		}
		p, err := PlaceOf(c.place)
		if err != nil {
			t.Fatal(err)
		}
		names, err := a.below(&p)
		if got := strings.Join(names, "/"); (err != nil) != (c.below == "-") || err == nil && got != c.below {
			t.Errorf("%s in %s: %q, %v", c.place, c.allow, got, err)
		}
		back, err := PlaceOf(Text(&p))
		if err != nil || back != p {
			t.Errorf("%s, read again: %+v, %v", Text(&p), back, err)
		}
	}
	for _, path := range []string{"", "e", "/e/../x", "/e/./x", "/e//x", "/e/", "/e/x\x00", "/..", "/e/" + strings.Repeat("x", 256), "/e" + strings.Repeat("/x", 2048)} {
		a, _ := Allow("nfs://h/e?uid=1&gid=1")
		if names, err := a.below(&hands.Place{Host: "h", UID: 1, GID: 1, Path: path}); err == nil {
			t.Errorf("%.20q leads to %q", path, names)
		}
	}
	for _, arg := range []string{"/tmp/x", "x", "nfs://h/e/..", "nfs:///e", "http://h/e", ""} {
		if a, err := Allow(arg); err == nil {
			t.Errorf("%q is allowed: %+v", arg, a)
		}
	}
}

// forge puts a batch into the queue of a run as a stranger would.
func (x *rig) forge(j queue.Job, id uint64, b *wire.Batch) {
	b.Speaks = wire.VERSION
	body, err := b.AppendXDR(nil)
	if err != nil {
		x.t.Fatal(err)
	}
	x.broker.Forge(j, queue.Item{ID: id, Body: body})
}

// liar answers all questions with GO, as a coordinator that somebody has forged.
func (x *rig) liar(s hands.Spec) queue.Job {
	x.t.Helper()
	b, err := s.Encode()
	if err != nil {
		x.t.Fatal(err)
	}
	j := queue.Job{Name: "lie", Run: fmt.Sprintf("%032x", x.runs.Add(1)), Spec: b}
	ctx := x.t.Context()
	d, err := x.broker.Connect().Open(ctx, j)
	if err != nil {
		x.t.Fatal(err)
	}
	go func() {
		_ = d.Answer(ctx, func(_ context.Context, q []byte) []byte {
			a := wire.Answer{Speaks: wire.VERSION, Verdict: wire.GO, Attempt: 1}
			if question, err := wire.Decode[wire.Question](q); err == nil && question.Matter.Ask == wire.REPORT {
				for _, res := range question.Matter.Report.Results {
					x.heard.Store(string(res.Outcome.Failed.Text)+string(res.Outcome.Why)+res.Outcome.End.String(), true)
				}
				a.Verdict = wire.DROP
			}
			text, _ := a.AppendXDR(nil)
			return text
		})
	}()
	return j
}

// TestForgedBatches: whatever stands in the queue, even with a coordinator that vouches for it, nothing changes
// but below the allowed places.
func TestForgedBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		x.write("src/a", "stolen")
		x.write("other/precious", "stays")
		ctx := t.Context()
		for _, l := range []struct{ at, to string }{{"src/way", "../other"}, {"dst/way", "../other"}, {"src/link", "../other/precious"}} {
			if _, _, _, err := x.fs.Create(ctx, x.mkdir(l.at[:3]), l.at[4:], &vfs.CreateHow{Type: vfs.TypeSymlink, Target: l.to}); err != nil {
				t.Fatal(err)
			}
		}
		spec := x.spec()
		spec.Dest.Path = "/dst"
		j := x.liar(spec)
		path := func(names ...string) (p [][]byte) {
			for _, n := range names {
				p = append(p, []byte(n))
			}
			return p
		}
		file := func(name string) []wire.File { return []wire.File{{Name: []byte(name), Size: 5}} }
		for i, b := range []wire.Batch{
			{Work: wire.COPY, Path: path("way"), Files: file("precious")},
			{Work: wire.COPY, Path: path(".."), Files: file("a")},
			{Work: wire.COPY, Path: path("../other"), Files: file("precious")},
			{Work: wire.COPY, Path: path(""), Files: file("a")},
			{Work: wire.COPY, Files: file("../other/precious")},
			{Work: wire.COPY, Files: file("link")},
			{Work: wire.COPY, Files: file("way")},
			{Work: wire.REMOVE, Path: path("way"), Files: file("precious")},
			{Work: wire.REMOVE, Path: path("..", "other"), Files: file("precious")},
			{Work: wire.REMOVE, Files: file("../other/precious")},
			{Work: wire.REMOVE, Files: file("..")},
			{Work: wire.COMPARE, Path: path("way"), Files: file("precious")},
			{Work: wire.COPY, Path: path("none"), Files: file("x"), Source: wire.Identity{Known: true}},
		} {
			x.forge(j, uint64(i+1), &b)
		}
		x.broker.Forge(j, queue.Item{ID: 99, Body: []byte("no batch at all")})
		before := x.names(".")
		x.worker(srcURL, dstURL)
		time.Sleep(time.Minute)
		if after := x.names("."); !slices.Equal(before, after) {
			t.Errorf("%q, and before %q", after, before)
		}
		if n := x.broker.Held(); n != 0 {
			t.Errorf("%d items are left in the queue", n)
		}
		n := 0
		x.heard.Range(func(k, _ any) bool {
			n++
			if strings.Contains(k.(string), "COPIED") || strings.Contains(k.(string), "REMOVED") || strings.Contains(k.(string), "COMPARED") {
				t.Errorf("done: %q", k)
			}
			return true
		})
		if n < 3 {
			t.Errorf("only %d outcomes were reported", n)
		}
	})
}

// heard is what the coordinator has said next, or "" if it has said nothing: workers look for jobs for ever, so that a bubble
// in which a test waited for it would not end.
func heard(said <-chan string) string {
	select {
	case s := <-said:
		return s
	default:
		return ""
	}
}

// TestNotDealt: a batch in the queue that the coordinator has not dealt is dropped, though it has the number of one
// that it has.
func TestNotDealt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		x.fill(3, 20)
		x.slowly(20*time.Millisecond, func(string) {}) // the last batch is not done when what was forged is claimed
		x.write("dst/copy/precious", "stays")
		said := make(chan string, 100)
		c := x.coordinate(func(s string) { said <- s })
		done := make(chan error)
		go func() {
			_, err := x.copy(t.Context(), c, nil)
			done <- err
		}()
		time.Sleep(time.Second) // the batches are dealt
		for id := range uint64(4) {
			x.forge(c.Job(), id, &wire.Batch{Work: wire.REMOVE, Files: []wire.File{{Name: []byte("precious")}}})
		}
		x.worker(srcURL, dstURL)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if !slices.Contains(x.names("dst/copy"), "precious") {
			t.Error("a batch was worked at that nobody has dealt")
		}
		if s := heard(said); !strings.Contains(s, "has not dealt") {
			t.Errorf("said %q", s)
		}
	})
}

// TestRefused: a job that works elsewhere, as another user, or in another version, is refused, and the coordinator hears
// why.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ name, allow, why string }{
		{"elsewhere", "nfs://mem/src?uid=0&gid=0", "nfs://mem/dst/copy?uid=0&gid=0: not allowed here"},
		{"another user", "nfs://mem/?uid=7&gid=0", "the job works there with uid=0 and gid=0, and --allow has uid=7 and gid=0"},
		{"no such place", "nfs://mem/none?uid=0&gid=0", "not allowed here"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newRig(t)
				x.fill(2, 2)
				said := make(chan string, 10)
				co := x.coordinate(func(s string) { said <- s })
				x.worker(c.allow)
				ctx, stop := context.WithTimeout(t.Context(), 40*time.Second)
				defer stop()
				if _, err := x.copy(ctx, co, nil); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("copied: %v", err)
				}
				if s := heard(said); !strings.Contains(s, "does not take part") || !strings.Contains(s, c.why) {
					t.Errorf("said %q", s)
				}
				if s := heard(said); !strings.Contains(s, "no worker takes part") {
					t.Errorf("said %q", s)
				}
				if err := co.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// ask asks a coordinator as a stranger.
func ask(t *testing.T, x *rig, c *hands.Coordinator, q *wire.Question) wire.Answer {
	t.Helper()
	text, err := q.AppendXDR(nil)
	if err != nil {
		t.Fatal(err)
	}
	taker, err := x.broker.Connect().Join(t.Context(), c.Job())
	if err == nil {
		text, err = taker.Ask(t.Context(), text)
	}
	if err != nil {
		t.Fatal(err)
	}
	a, err := wire.Decode[wire.Answer](text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestShares: what a job may do is divided among the workers that have been heard of lately. A killed one's share
// is the others' after three quarters of a lease.
func TestShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		x.pace = func() (int, uint64) { return 30, 12 << 20 }
		c := x.coordinate(nil)
		share := func(who byte) (load uint32, rate uint64) {
			a := ask(t, x, c, &wire.Question{Speaks: wire.VERSION, Worker: [16]byte{who}, Matter: wire.Matter{Ask: wire.HELLO}})
			return a.Load, a.Rate
		}
		synctest.Wait() // it answers
		share(1)
		share(2)
		if load, rate := share(3); load != 7 || rate != 4<<20 {
			t.Errorf("of three each has %d and %d", load, rate)
		}
		time.Sleep(queue.LeaseTime * 4 / 5)
		share(1)
		if load, rate := share(2); load != 10 || rate != 6<<20 {
			t.Errorf("when one is gone each has %d and %d", load, rate)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestForgedReports: reports of the wrong batch, the wrong attempt, the wrong worker and of what cannot be are not
// believed, and the tree is copied whole.
func TestForgedReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		x.fill(2, 20)
		c := x.coordinate(nil)
		done := make(chan job.Summary)
		go func() {
			s, err := x.copy(t.Context(), c, nil)
			if err != nil {
				t.Error(err)
			}
			done <- s
		}()
		taker, err := x.broker.Connect().Join(t.Context(), c.Job())
		if err != nil {
			t.Fatal(err)
		}
		l, err := taker.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		me, other := [16]byte{1}, [16]byte{2}
		claim := wire.Question{Speaks: wire.VERSION, Worker: me, Matter: wire.Matter{Ask: wire.CLAIM, Claim: wire.Claim{Batch: l.ID, Digest: sha256.Sum256(l.Body), Once: 1}}}
		first := ask(t, x, c, &claim)
		if again := ask(t, x, c, &claim); again != first || first.Verdict != wire.GO || first.Attempt != 1 {
			t.Fatalf("%+v, and then %+v", first, again)
		}
		claim.Worker, claim.Matter.Claim.Once = other, 9
		if a := ask(t, x, c, &claim); a.Verdict != wire.DROP {
			t.Errorf("two workers have one batch: %+v", a)
		}
		report := func(who [16]byte, batch uint64, attempt uint32, results ...wire.Result) wire.Verdict {
			return ask(t, x, c, &wire.Question{Speaks: wire.VERSION, Worker: who, Matter: wire.Matter{Ask: wire.REPORT, Report: wire.Report{Batch: batch, Attempt: attempt, Results: results}}}).Verdict
		}
		removed := wire.Result{Outcome: wire.Outcome{End: wire.REMOVED}}
		if report(other, l.ID, 1, removed) != wire.DROP || report(me, l.ID, 2, removed) != wire.DROP || report(me, 777, 1, removed) != wire.DROP {
			t.Error("a report was taken of what its worker does not have")
		}
		if report(me, l.ID, 1) != wire.GO {
			t.Error("a report that says nothing was not taken")
		}
		if report(me, l.ID, 1, removed) != wire.DROP { // nothing is to be removed
			t.Error("a report was taken that cannot be true")
		}
		if report(me, l.ID, 1) != wire.DROP {
			t.Error("who has lied still has the batch")
		}
		x.worker(srcURL, dstURL)
		if s := <-done; s.Files != 40 || s.Errors != 0 {
			t.Errorf("%+v", s)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		x.same()
	})
}

// TestOtherVersion: a worker of another version is told so, and a job of another version is refused.
func TestOtherVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		said := make(chan string, 10)
		c := x.coordinate(func(s string) { said <- s })
		synctest.Wait() // until it answers
		defer func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}()
		if a := ask(t, x, c, &wire.Question{Speaks: 7, Matter: wire.Matter{Ask: wire.LEAVE}}); a.Verdict != wire.OTHER {
			t.Errorf("%+v", a)
		}
		if s := heard(said); !strings.Contains(s, "version 7") {
			t.Errorf("said %q", s)
		}
	})
	_, err := hands.ParseSpec([]byte(`{"version":99,"new":true}`))
	if _, ok := errors.AsType[*wire.VersionError](err); !ok {
		t.Error(err)
	}
}

// TestBusy: a job has one coordinator. When that is killed, the next one may be.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		c := x.coordinate(nil)
		synctest.Wait() // until it answers
		j := c.Job()
		j.Run = strings.Repeat("f", 32)
		if _, err := hands.Open(t.Context(), hands.Options{Broker: x.broker.Connect(), Job: j, Tell: func(string) {}}); !errors.Is(err, hands.ErrBusy) {
			t.Errorf("error %v", err)
		}
		x.abandon(c)
		if err := x.coordinate(nil).Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestGivenUp: workers begin with a batch again and again, and die. Its files have failed in the end, and all
// others are copied.
func TestGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		for i := range 3 {
			x.write(fmt.Sprintf("src/deadly/f%d", i), "x")
			x.write(fmt.Sprintf("src/good/f%d", i), "x")
		}
		c := x.coordinate(nil)
		done := make(chan job.Summary)
		go func() {
			s, _ := x.copy(t.Context(), c, nil)
			done <- s
		}()
		taker, err := x.broker.Connect().Join(t.Context(), c.Job())
		if err != nil {
			t.Fatal(err)
		}
		going, stop := context.WithCancel(t.Context())
		defer stop()
		var dying sync.WaitGroup
		dying.Go(func() { // beside one that lives
			for wait.For(going, beat) == nil {
				ask(t, x, c, &wire.Question{Speaks: wire.VERSION, Worker: [16]byte{0xff}, Matter: wire.Matter{Ask: wire.HELLO}})
			}
		})
		dying.Go(func() { // workers that die of deadly, one after the other
			for n := byte(1); going.Err() == nil; n++ {
				l, err := taker.Take(going)
				if err != nil {
					return
				}
				b, err := wire.Decode[wire.Batch](l.Body)
				if err != nil {
					t.Error(err)
				}
				if string(b.Path[0]) == "deadly" {
					ask(t, x, c, &wire.Question{Speaks: wire.VERSION, Worker: [16]byte{n}, Matter: wire.Matter{Ask: wire.CLAIM, Claim: wire.Claim{Batch: l.ID, Digest: sha256.Sum256(l.Body)}}})
				} else if err := taker.Settle(going, l, false); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		})
		time.Sleep(5 * time.Minute)
		stop()
		dying.Wait()
		x.worker(srcURL, dstURL)
		s := <-done
		if s.Files != 3 || s.Errors != 3 {
			t.Errorf("%+v", s)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// FuzzSpec: whatever a broker says of a job, it is refused or has what a worker judges.
func FuzzSpec(f *testing.F) {
	s := hands.Spec{Command: "cp", Source: &hands.Place{Host: "h", Path: "/a"}, Dest: hands.Place{Host: "h", Path: "/b"}, Tag: "ab-", MapUID: []string{"1:2"}}
	b, err := s.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"version":2,"dest":{"path":"/../x"}}`))
	a, err := Allow("nfs://h/a?uid=0&gid=0")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := hands.ParseSpec(b)
		if err != nil {
			return
		}
		for _, p := range []*hands.Place{s.Source, &s.Dest} {
			if p == nil {
				continue
			}
			names, err := a.below(p)
			if err != nil {
				continue
			}
			if p.Host != "h" || p.UID != 0 || p.GID != 0 || p.Path != "/a" && !strings.HasPrefix(p.Path, "/a/") {
				t.Errorf("%+v is allowed", p)
			}
			for _, name := range names {
				if vfs.CheckName(name) != nil {
					t.Errorf("%+v leads by %q", p, name)
				}
			}
		}
	})
}
