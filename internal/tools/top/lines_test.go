package top

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/nfsbox/nfsbox/internal/server/view"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// TestLines draws one Frame on screens of many sizes.
func TestLines(t *testing.T) {
	for _, s := range []Screen{
		{Width: 80, Height: 24}, {Width: 80}, {Width: 120, Height: 60}, {Width: 40, Height: 15}, {Width: 200, Height: 50, Colour: true},
	} {
		golden(t, fmt.Sprintf("%dx%d.txt", s.Width, s.Height), strings.Join(Lines(frame(t), s), "\n")+"\n")
	}
}

// TestIll draws a server that is not well, has no rates yet and next to nothing
// to show.
func TestIll(t *testing.T) {
	golden(t, "ill.txt", strings.Join(Lines(&view.Frame{Health: "draining"}, Screen{Width: 80, Height: 24, Colour: true}), "\n")+"\n")
}

// TestSlowWithoutXID draws nothing for a number that a call does not have.
func TestSlowWithoutXID(t *testing.T) {
	f := &view.Frame{Slow: []view.SlowFrame{{Proc: "READ", Client: "192.0.2.1:700", XID: 0xabc}, {Proc: "Put", Client: "192.0.2.1:701", Detail: "ann"}}}
	text := strings.Join(Lines(f, Screen{Width: 80}), "\n")
	if !strings.Contains(text, "192.0.2.1:700        abc") || !strings.Contains(text, "192.0.2.1:701             ann") {
		t.Error(text)
	}
}

// TestFits holds Lines to their screen, whatever its size.
func TestFits(t *testing.T) {
	f := frame(t)
	for width := 1; width < 230; width += 9 {
		for height := 1; height < 60; height += 3 {
			fits(t, f, Screen{Width: width, Height: height})
		}
	}
}

func fits(t *testing.T, f *view.Frame, s Screen) {
	t.Helper()
	lines := Lines(f, s)
	if len(lines) == 0 || len(lines) > s.Height {
		t.Fatalf("%dx%d: %d lines", s.Width, s.Height, len(lines))
	}
	for _, line := range lines {
		if n := progress.Columns(plain(line)); n > max(s.Width, minWidth) {
			t.Fatalf("%dx%d: a line of %d: %q", s.Width, s.Height, n, line)
		}
		if i := strings.IndexFunc(plain(line), func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			t.Fatalf("%dx%d: what is not printable: %q", s.Width, s.Height, line)
		}
	}
}

// TestWideNames cuts names by the columns that they take: characters of two columns stay whole, and
// marks stay with the character that they are set on. What is beside them stands where it should.
func TestWideNames(t *testing.T) {
	const wide, marked = "漢字仮名交じり文の長い名前", "q\u0301q\u0301q\u0301q\u0301q\u0301q\u0301"
	f := &view.Frame{
		URL: "nfs://" + wide + "/",
		Clients: []view.ClientFrame{
			{Client: "192.0.2.7", User: wide, Rate: 3, File: wide}, {Client: marked + marked, User: marked, Rate: 2, File: marked + wide},
		},
		Files: []view.FileFrame{{File: strings.Repeat(wide, 4), Rate: 7, Client: "c"}, {File: strings.Repeat(marked, 9), Rate: 5, Client: "c"}},
	}
	for width := minWidth; width < 210; width++ {
		s := Screen{Width: width, Height: 60}
		fits(t, f, s)
		lines := Lines(f, s)
		for _, line := range lines {
			if strings.Contains(line, "q…") || strings.Contains(line, " \u0301") || strings.Contains(line, "…\u0301") {
				t.Fatalf("%d columns: a mark is cut off in %q", width, line)
			}
		}
		// Rates are aligned to the right.
		at := func(of string) int {
			for _, line := range lines {
				if before, _, ok := strings.Cut(line, of); ok {
					return progress.Columns(before)
				}
			}
			return -1
		}
		if a, b := at(" 7  "), at(" 5  "); a != b {
			t.Fatalf("%d columns: rates stand at %d and %d:\n%s", width, a, b, strings.Join(lines, "\n"))
		}
	}
}

// TestHostile draws names that want to steer the terminal, and numbers that make
// no sense.
func TestHostile(t *testing.T) {
	const n = "\x1b]0;x\x07\x1b[2J\n\r\u202e\u009b\xff" + `\`
	names, big := strings.Repeat(n, 50), math.MaxFloat64
	f := &view.Frame{
		URL: n, Version: n, Health: n, Started: time.Unix(-1<<60, 0), At: time.Unix(1<<40, 0), Interval: -1, Every: -1,
		Total: view.TotalFrame{Rate: big, Calls: math.MaxUint64, P50: -big, P99: big, In: big, Out: -1},
		Process: view.ProcessFrame{
			Threads: math.MinInt, CPU: -1, Memory: math.MaxUint64,
		},
		Gate:    view.GateFrame{Bound: -1, Inside: math.MinInt, Waiting: math.MaxInt, Lanes: []view.LaneFrame{{Export: names, Name: n, Entered: -big, Wait: big}}},
		Procs:   []view.ProcFrame{{Name: names, Program: n, Rate: -big, P50: big, Max: -1}},
		Limits:  []view.LimitFrame{{Name: names, Used: math.MaxUint64, Max: 1}, {Name: n, Bytes: true, Used: 1, Max: math.MaxUint64}},
		LocalIO: &view.LocalIOFrame{Sessions: math.MinInt, Opened: big},
		Caches:  []view.CacheFrame{{Name: names, Hits: big}},
		Jobs:    []view.JobFrame{{Name: n, State: names, Total: math.MaxUint64}},
		Slow:    []view.SlowFrame{{Proc: n, Client: names, Detail: names, Took: -1}},
		Points:  []view.Point{{P99: -big, Rates: map[string]float64{n: big, "x": big}}, {P99: big, Rates: map[string]float64{"": -big}}},
	}
	for _, s := range []Screen{{Width: 80, Height: 24}, {Width: 0, Height: 1}, {Width: math.MaxInt, Height: math.MaxInt}, {Width: -5, Height: 7}} {
		fits(t, f, s)
	}
}

// FuzzLines draws whatever a server may send.
func FuzzLines(f *testing.F) {
	text, err := os.ReadFile("../../server/view/testdata/frame.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text, 80, 24)
	f.Add([]byte(`{"procedures":[{"name":"\u009b"}],"points":[{},{}],"slow":[{}]}`), -1, 1)
	f.Fuzz(func(t *testing.T, text []byte, width, height int) {
		x := new(view.Frame)
		if json.Unmarshal(text, x) == nil {
			fits(t, x, Screen{Width: width, Height: max(height, 1)})
		}
	})
}

// TestFigures writes numbers at the edges of their units.
func TestFigures(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{number(0), "0"}, {number(0.01), "<0.1"}, {number(0.25), "0.2"}, {number(3), "3"}, {number(9999), "9999"}, {number(10000), "10.0 k"},
		{number(999_999), "1000 k"}, {number(1e6), "1.0 M"}, {number(12.3e6), "12.3 M"}, {number(1e15), "1.0e+15"}, {number(-1), "0"},
		{seconds(0), "-"}, {seconds(15e-6), "15.0 µs"}, {seconds(0.0005), "500 µs"}, {seconds(0.25), "250 ms"}, {seconds(90), "90.0 s"},
		{span(59 * time.Second), "59 s"}, {span(90 * time.Minute), "1 h"}, {span(50 * time.Hour), "2 d"}, {span(-time.Second), "0 s"},
		{cut("äöü", 3), "äöü"}, {cut("äöü", 2), "ä…"}, {cut("äöü", 1), "…"}, {cut("äöü", 0), ""},
		{meter(1, 2), "[##########          ]"}, {meter(9, 2), "[####################]"}, {meter(9, 0), ""},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
