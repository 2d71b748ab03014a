package progress

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestServerEvents has the events of a server that does not answer.
func TestServerEvents(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	var b strings.Builder
	silent := Event{Type: "silent", Server: "h:1", Since: at, Until: at.Add(time.Minute), Message: "h:1\x1b is silent"}
	answers := Event{Type: "answers", Server: "h:1", Since: at, Message: "h:1 answers"}
	for _, r := range []Renderer{JSON(&b), Line(&b)} {
		if err := errors.Join(r.Event(at, &silent), r.Event(at, &answers)); err != nil {
			t.Fatal(err)
		}
	}
	want := `{"time":"2026-03-04T05:06:07Z","type":"silent","message":"h:1\u001b is silent","server":"h:1","since":"2026-03-04T05:06:07Z","until":"2026-03-04T05:07:07Z"}
{"time":"2026-03-04T05:06:07Z","type":"answers","message":"h:1 answers","server":"h:1","since":"2026-03-04T05:06:07Z"}
silent: h:1\x1b is silent
answers: h:1 answers
`
	if got := b.String(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// usual is the width of a terminal.
func usual() int { return 80 }

func TestLineOnTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := New(Bar(&out, usual), time.Now)
		p.Add(FoundItems, 2000)
		p.Add(FoundBytes, 3<<20)
		p.Add(Files, 1)
		p.Add(Bytes, 1<<20)
		time.Sleep(time.Second)
		synctest.Wait()
		p.Report(Event{Type: "error", Path: "dir/\x1b[31mred", Message: "no\nspace"})
		p.Add(Errors, 1)
		p.CloseTotals()
		time.Sleep(time.Second)
		synctest.Wait()
		p.Add(Bytes, 2<<20)
		if err := p.Finish(nil); err != nil {
			t.Error(err)
		}
		frames := strings.Split(out.String(), "\r\x1b[K")
		if len(frames) < 9 || len(frames) > 12 {
			t.Fatalf("%d frames in 2 s: %q", len(frames), frames)
		}
		for what, want := range map[string]string{
			"first":   "1 of ≥ 2,000 items, 1.0 MiB of ≥ 3.0 MiB, 5.0 MiB/s, 5 items/s, 0:00",
			"message": "error: dir/\\x1b[31mred: no\\nspace\n",
			"closed":  "2 of 2,000 items, 1.0 MiB of 3.0 MiB, ",
			"last":    "2 of 2,000 items, 3.0 MiB of 3.0 MiB, 1.5 MiB/s, 1 error, 0:02\n",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in %q", what, want, frames)
			}
		}
		if !strings.HasPrefix(out.String(), "1 of") || !strings.HasSuffix(out.String(), "0:02\n") {
			t.Errorf("begins and ends %q", out.String())
		}
	})
}

func TestLineInLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := New(Line(&out), time.Now)
		p.Add(FoundItems, 1)
		time.Sleep(35 * time.Second)
		synctest.Wait()
		if err := p.Finish(nil); err != nil {
			t.Error(err)
		}
		if n := strings.Count(out.String(), "\n"); n != 4 || strings.Contains(out.String(), "\x1b") {
			t.Errorf("%d lines: %q", n, out.String())
		}
	})
}

// TestResultsTo: what would be done goes elsewhere, without the word that it was, and all else stays. The line is erased for it.
func TestResultsTo(t *testing.T) {
	for _, bar := range []bool{false, true} {
		var out, results bytes.Buffer
		r := Line(&out)
		if bar {
			r = Bar(&out, usual)
		}
		r = ResultsTo(r, &results)
		if err := r.Progress(&Snapshot{}); err != nil {
			t.Fatal(err)
		}
		for _, e := range []Event{{Type: "done", Kind: "gone", Path: "a\n"}, {Type: "would", Kind: "copy", Path: "b"}, {Type: "note", Message: "c"}} {
			if err := r.Event(time.Time{}, &e); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := results.String(), "gone: a\\n\nwould: copy: b\n"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got := out.String(); !strings.HasSuffix(got, "note: c\n") || bar != strings.Contains(got, "\x1b[K") {
			t.Errorf("%q", got)
		}
	}
}

// TestNotBegun: a task that failed before it found anything gets no line.
func TestNotBegun(t *testing.T) {
	var out bytes.Buffer
	for _, r := range []Renderer{Line(&out), Bar(&out, usual)} {
		if err := New(r, time.Now).Finish(nil); err != nil || out.Len() != 0 {
			t.Errorf("%q, %v", out.String(), err)
		}
	}
}

// TestRate: the rate is that of the last seconds, not of the whole time.
func TestRate(t *testing.T) {
	var v speed
	s := &Snapshot{}
	var got, items uint64
	for range 100 { // 20 s at 1 MB/s, and 10 files a second
		s.Elapsed += terminalInterval
		s.Counts[Bytes] += 200_000
		s.Counts[Files] += 2
		got, items = v.rates(s)
	}
	if got != 1_000_000 || items != 10 {
		t.Errorf("steady: %d, %d", got, items)
	}
	for range 30 { // 6 s of nothing
		s.Elapsed += terminalInterval
		got, items = v.rates(s)
	}
	if got != 0 || items != 0 || len(v.past) > rateSamples {
		t.Errorf("at rest: %d; %d samples", got, len(v.past))
	}
	s.Counts[Bytes] = 0 // an attempt was taken back
	if got, _ = v.rates(s); got != 0 {
		t.Errorf("backwards: %d", got)
	}
}

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		in   string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abcd", 3, "abc"}, {"≥≥≥≥", 2, "≥≥"}, {"", 5, ""}, {"世界", 3, "世"}, {"世界", 1, ""}, {"e\u0301e\u0301", 1, "e\u0301"}} {
		if got := Cut(tt.in, tt.n); got != tt.want {
			t.Errorf("Cut(%q, %d) = %q", tt.in, tt.n, got)
		}
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 12345678: "12,345,678", 1<<64 - 1: "18,446,744,073,709,551,615"} {
		if got := Count(n); got != want {
			t.Errorf("Count(%d) = %q", n, got)
		}
	}
	for n, want := range map[uint64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1<<20 - 1: "1.0 MiB", 3 << 29: "1.5 GiB", 1<<64 - 1: "16.0 EiB"} {
		if got := Size(n); got != want {
			t.Errorf("Size(%d) = %q", n, got)
		}
	}
	for us, want := range map[float64]string{0: "0.0 µs", 999.94: "999.9 µs", 1000: "1.00 ms", 999_994: "999.99 ms", 3e6: "3.00 s"} {
		if got := Micros(us); got != want {
			t.Errorf("Micros(%v) = %q", us, got)
		}
	}
	for x, want := range map[float64]string{0: "0", 0.5: "0.50", 1.2345: "1.234", 2: "2.00", 12.34: "12.3", 123.4: "123", 98765: "98,765"} {
		if got := Number(x); got != want {
			t.Errorf("Number(%v) = %q", x, got)
		}
	}
	for d, want := range map[time.Duration]string{0: "0:00", 61 * time.Second: "1:01", 3*time.Hour + 62*time.Second: "3:01:02"} {
		if got := clock(d); got != want {
			t.Errorf("clock(%v) = %q", d, got)
		}
	}
}

func TestJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := New(JSON(&out), time.Now)
		p.Add(Files, 7)
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		p.Report(Event{Type: "difference", Kind: "mode", Path: "a\u009b\xff", Message: "x"})
		if err := p.Finish(struct {
			Files int `json:"files"`
		}{7}); err != nil {
			t.Error(err)
		}
		p.Report(Event{Type: "error", Message: "too late"})
		if err := p.Finish(nil); !errors.Is(err, ErrFinished) {
			t.Errorf("a second Finish: %v", err)
		}
		want := []string{
			`{"time":"2000-01-01T00:00:01Z","type":"progress","files":7,"dirs":0,"symlinks":0,"hardlinks":0,"nodes":0,"bytes":0,` +
				`"skipped":0,"skipped_bytes":0,"verified":0,"differences":0,"errors":0,"vanished":0,"found_items":0,"found_bytes":0,"seconds":1.000,"totals_final":false,"items_per_second":7,"bytes_per_second":0}`,
			`{"time":"2000-01-01T00:00:01.5Z","type":"difference","kind":"mode","path":"a\u009b\ufffd","message":"x","path_base64":"YcKb/w=="}`,
			`{"time":"2000-01-01T00:00:01.5Z","type":"summary","files":7}`,
		}
		got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if len(got) != len(want) {
			t.Fatalf("%d lines: %q", len(got), got)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("line %d:\n%s\nwant\n%s", i, got[i], want[i])
			}
			if !json.Valid([]byte(got[i])) {
				t.Errorf("line %d is no JSON", i)
			}
		}
	})
}

func TestJSONSummary(t *testing.T) {
	for _, tt := range []struct {
		v    any
		want string
		ok   bool
	}{
		{nil, `"totals_final":false}`, true},
		{struct{}{}, `"type":"summary"}`, true},
		{map[string]int{"a": 1}, `"type":"summary","a":1}`, true},
		{5, "", false},
		{make(chan int), "", false},
	} {
		var out bytes.Buffer
		err := New(JSON(&out), time.Now).Finish(tt.v)
		if (err == nil) != tt.ok || !strings.HasSuffix(strings.TrimSpace(out.String()), tt.want) {
			t.Errorf("%v: %q, %v", tt.v, out.String(), err)
		}
	}
}

// TestOutputFails: the first error is kept, and nothing more is written.
func TestOutputFails(t *testing.T) {
	w := &failing{}
	p := New(JSON(w), time.Now)
	p.Report(Event{Type: "error"})
	p.Report(Event{Type: "error"})
	if err := p.Finish(nil); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("error %v", err)
	}
	if w.n != 1 {
		t.Errorf("%d writes", w.n)
	}
}

type failing struct{ n int }

func (w *failing) Write([]byte) (int, error) { w.n++; return 0, io.ErrClosedPipe }

// TestConcurrent counts and reports from many goroutines.
func TestConcurrent(t *testing.T) {
	var out bytes.Buffer
	p := New(Bar(&out, usual), time.Now)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				p.Add(Files, 1)
				p.Add(Bytes, 10)
			}
			p.Report(Event{Type: "note", Message: "done"})
		})
	}
	wg.Wait()
	if err := p.Finish(nil); err != nil {
		t.Error(err)
	}
	if p.Get(Files) != 8000 || p.Get(Bytes) != 80_000 || strings.Count(out.String(), "note: done\n") != 8 {
		t.Errorf("%d files, %d bytes, %q", p.Get(Files), p.Get(Bytes), out.String())
	}
	if n := testing.AllocsPerRun(100, func() { p.Add(Bytes, 1) }); n != 0 {
		t.Errorf("%v allocations to count", n)
	}
}

// TestFinishTogether: of several who finish, one does.
func TestFinishTogether(t *testing.T) {
	for range 100 {
		p := New(Bar(io.Discard, usual), time.Now)
		var wg sync.WaitGroup
		var finished atomic.Int32
		for range 4 {
			wg.Go(func() {
				if err := p.Finish(nil); err == nil {
					finished.Add(1)
				} else if !errors.Is(err, ErrFinished) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := finished.Load(); n != 1 {
			t.Fatalf("%d have finished it", n)
		}
	}
}

// TestJSONLoads: the loads of servers, and the time that is left where it can be told, are in the line.
func TestJSONLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := New(Both(JSON(&out), JSON(io.Discard)), time.Now)
		p.SetLoads(func() []Load {
			return []Load{{Server: "h", Class: "read", InFlight: 3, Limit: 8, Waiting: 1, BackOffs: 2}}
		})
		p.Add(FoundBytes, 3000)
		p.Add(Bytes, 1000)
		p.CloseTotals()
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		if err := p.Finish(nil); err != nil {
			t.Error(err)
		}
		want := `"items_per_second":0,"bytes_per_second":1000,"seconds_left":2,` +
			`"servers":[{"server":"h","class":"read","in_flight":3,"limit":8,"waiting":1,"back_offs":2}]}`
		if line, _, _ := strings.Cut(out.String(), "\n"); !strings.HasSuffix(line, want) {
			t.Errorf("%s\nwant\n%s", line, want)
		}
	})
}

// TestLineLoads: on a line each server has the calls of its busiest class, and what it may have of them, and back-offs are counted; the
// last line has neither.
func TestLineLoads(t *testing.T) {
	for _, r := range []func(w io.Writer) Renderer{
		Line, func(w io.Writer) Renderer { return Bar(w, func() int { return 150 }) },
		func(w io.Writer) Renderer { return Both(Grouped(OfItems(Line(w)), ""), JSON(io.Discard)) },
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			p := New(r(&out), time.Now)
			p.SetLoads(func() []Load {
				return []Load{
					{Server: "a", Class: "metadata", InFlight: 3, Limit: 8, BackOffs: 2}, {Server: "a", Class: "read", InFlight: 12, Limit: 16},
					{Server: "b", Class: "metadata", Limit: 4}, {Server: "b", Class: "write", InFlight: 8, Limit: 9, BackOffs: 1},
					{Server: "c", Class: "metadata", Limit: 4}, {Server: "c", Class: "read", Limit: 4},
				}
			})
			p.Add(FoundItems, 50)
			p.Add(Files, 40)
			time.Sleep(10 * time.Second)
			synctest.Wait()
			during := out.Len()
			if err := p.Finish(nil); err != nil {
				t.Error(err)
			}
			const want = "read 12/16 + write 8/9 + idle, too busy: 3, 0:"
			if !strings.Contains(out.String()[:during], " items/s, "+want) || strings.Contains(out.String()[during:], "read") {
				t.Errorf("no %q in %q", want, out.String())
			}
		})
	}
}

// TestNil: a nil Tracker does nothing.
func TestNil(t *testing.T) {
	var p *Tracker
	p.Add(Files, 1)
	p.CloseTotals()
	p.Report(Event{})
	if p.Get(Files) != 0 || !reflect.DeepEqual(p.Snapshot(), Snapshot{}) || p.Finish(nil) != nil {
		t.Error("it does something")
	}
}

func TestCounterNames(t *testing.T) {
	seen := map[string]bool{}
	for c := range numCounters {
		if c.String() == "" || seen[c.String()] {
			t.Errorf("counter %d is called %q", c, c)
		}
		seen[c.String()] = true
	}
}
