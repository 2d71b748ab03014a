package progress

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

// midway is a task under way.
func midway(closed bool) *Snapshot {
	s := &Snapshot{Elapsed: 100 * time.Second, Closed: closed, Name: "photos/2024/some-directory/" + strings.Repeat("long-name-", 20) + "end.jpg"}
	s.Counts[Files], s.Counts[FoundItems] = 12_000, 30_000
	s.Counts[Bytes], s.Counts[FoundBytes] = 1<<30, 4<<30
	s.Counts[Errors], s.Counts[MoreErrors] = 2, 2
	return s
}

// TestBarFits: the line fits each width, and keeps what matters most.
func TestBarFits(t *testing.T) {
	for _, c := range []struct {
		width  int
		closed bool
		want   []string
	}{
		{20, true, []string{"25%", "2 errors"}},
		{20, false, []string{"12,000 of ≥ 30,000"}},
		{50, true, []string{"25%", "10.2 MiB/s", "ETA 5:00", "2 errors"}},
		{50, false, []string{"12,000 of ≥ 30,000 items", "10.2 MiB/s", "2 errors"}},
		{80, true, []string{"25%, ", "1.0 GiB of 4.0 GiB, 10.2 MiB/s, ETA 5:00, 2 errors"}},
		{80, false, []string{"12,000 of ≥ 30,000 items, 1.0 GiB of ≥ 4.0 GiB, 10.2 MiB/s, 2 errors"}},
		{200, true, []string{"25%, 12,000 of 30,000 items, 1.0 GiB of 4.0 GiB, 10.2 MiB/s, 120 items/s, ETA 5:00, 2 errors, 1:40, ...", "end.jpg"}},
		{200, false, []string{"12,000 of ≥ 30,000 items, 1.0 GiB of ≥ 4.0 GiB, 10.2 MiB/s, 120 items/s, 2 errors, 1:40, ...", "end.jpg"}},
	} {
		var out bytes.Buffer
		if err := Bar(&out, func() int { return c.width }).Progress(midway(c.closed)); err != nil {
			t.Error(err)
		}
		line := out.String()
		for _, want := range c.want {
			if !strings.Contains(line, want) {
				t.Errorf("%d columns: no %q in %q", c.width, want, line)
			}
		}
		if n := Columns(line); n >= c.width || c.width == 200 && n != 199 {
			t.Errorf("%d columns: %q has %d", c.width, line, n)
		}
	}
}

// TestBarAtAnyWidth: names of any characters fit any width, and do no harm.
func TestBarAtAnyWidth(t *testing.T) {
	for _, name := range []string{"", "a", strings.Repeat("漢字", 100), "\x1b[31mred\n", strings.Repeat("e\u0301", 100), "\xff\xfe"} {
		for width := range 260 {
			s := midway(width%2 == 0)
			s.Name = name
			line := fit((&line{}).parts(s), s.Name, max(width-1, 1))
			if n := Columns(line); n > max(width-1, 1) || strings.ContainsAny(line, "\x1b\n") {
				t.Fatalf("%q at %d: %q has %d", name, width, line, n)
			}
		}
	}
}

// TestPercent: 100% is shown when all is done, and not before; no time is estimated without a
// rate, or before all has been found.
func TestPercent(t *testing.T) {
	for _, c := range []struct {
		bytes, ofBytes, items, ofItems uint64
		want                           int
		left                           string
	}{
		{0, 0, 0, 0, 100, ""},
		{0, 100, 0, 1, 0, ""},
		{999_999, 1_000_000, 1, 1, 99, "0:00"},
		{100, 100, 1, 2, 99, "0:10"},
		{100, 100, 2, 2, 100, ""},
		{0, 0, 1, 4, 25, "0:30"},
		{200, 100, 3, 2, 100, ""},
	} {
		s := &Snapshot{Elapsed: 10 * time.Second, Closed: true}
		s.Counts[Bytes], s.Counts[FoundBytes], s.Counts[Files], s.Counts[FoundItems] = c.bytes, c.ofBytes, c.items, c.ofItems
		text := ""
		if d, ok := left(s, c.bytes/10); ok {
			text = clock(d)
		}
		if got := percent(s); got != c.want || text != c.left {
			t.Errorf("%+v: %d%%, %s left", c, got, text)
		}
		if s.Closed = false; c.bytes > 0 {
			if d, ok := left(s, 1); ok {
				t.Errorf("%v is estimated of what is not all found", d)
			}
		}
	}
}

// TestItems: a line of what is met and not copied has items a second, and no share of what there is.
func TestItems(t *testing.T) {
	s := &Snapshot{Elapsed: 10 * time.Second}
	s.Counts[Files], s.Counts[FoundItems], s.Counts[Bytes], s.Counts[FoundBytes] = 12_000, 12_000, 5<<20, 5<<20
	l := OfItems(Line(nil)).(*line)
	if got := joinParts(l.parts(s)); got != "12,000 items, 5.0 MiB, 1,200 items/s, 0:10" {
		t.Error(got)
	}
	s.Elapsed, s.Counts[Dirs], s.Counts[Errors] = 12*time.Second, 999, 1
	s.Counts[Bytes] = 0
	if got := joinParts(l.parts(s)); got != "13,000 items, 500 items/s, 1 error, 0:12" {
		t.Error(got)
	}
}

// TestSkippedBytes: of a copy that goes on, bytes and items tell the same: what was skipped is done.
func TestSkippedBytes(t *testing.T) {
	s := &Snapshot{Elapsed: 10 * time.Second, Closed: true}
	s.Counts[Skipped], s.Counts[SkippedBytes] = 75, 75<<20
	s.Counts[Files], s.Counts[Bytes] = 5, 5<<20
	s.Counts[FoundItems], s.Counts[FoundBytes] = 100, 25<<20 // which leaves out what was skipped
	const want = "80%, 80 of 100 items, 80.0 MiB of 100.0 MiB, 512.0 KiB/s, 8 items/s, ETA 0:40, 0:10"
	if got := joinParts((&line{}).parts(s)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestNames: the name of what is worked at is asked for only by a line that shows it.
func TestNames(t *testing.T) {
	for r, shown := range map[Renderer]bool{Bar(new(bytes.Buffer), usual): true, Line(new(bytes.Buffer)): false} {
		p := New(Both(Grouped(r, "F has all"), JSON(new(bytes.Buffer))), time.Now)
		asked := 0
		p.Working(func() string { asked++; return fmt.Sprint("name ", asked) })
		if s := p.Snapshot(); (s.Name == "name 1") != shown || (asked > 0) != shown {
			t.Errorf("shown %v: %q, asked %d times", shown, s.Name, asked)
		}
		if err := p.Finish(nil); err != nil {
			t.Error(err)
		}
	}
}
