package progress

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// part is a part of the line. Where there is no room for all, those of the lowest rank go.
type part struct {
	text     string
	rank     int
	estimate bool // is not shown in the end
}

// minName is the fewest columns in which a name is shown.
const minName = 10

// parts are the parts of the line, from left to right.
func (l *line) parts(s *Snapshot) []part {
	atLeast, items := "≥ ", 9
	var parts []part
	if s.Closed {
		atLeast, items = "", 4
		parts = append(parts, part{fmt.Sprintf("%d%%", percent(s)), 9, true})
	}
	rate, each := l.speed.rates(s)
	if l.items {
		return append(append(append(itemParts(s, each), teamParts(s.Team)...), loadParts(s.Loads)...), part{text: clock(s.Elapsed), rank: 2})
	}
	bytes, ofBytes := s.bytes()
	parts = append(parts,
		part{text: Count(s.Items()) + " of " + atLeast + Count(max(s.Counts[FoundItems], s.Items())) + " items", rank: items},
		part{text: Size(bytes) + " of " + atLeast + Size(max(ofBytes, bytes)), rank: 5},
		part{text: Size(rate) + "/s", rank: 7},
		part{Count(each) + " items/s", 1, true},
	)
	if left, ok := left(s, rate); ok {
		parts = append(parts, part{"ETA " + clock(left), 6, true})
	}
	parts = append(append(append(parts, failedParts(s)...), teamParts(s.Team)...), loadParts(s.Loads)...)
	return append(parts, part{text: clock(s.Elapsed), rank: 2})
}

// loadParts say how many calls each server has of those that it may have, of the class that has the most, and how often servers
// were too busy. Loads of one server stand side by side.
func loadParts(all []Load) (parts []part) {
	var busy []string
	var backOffs uint64
	for i := 0; i < len(all); {
		most := &all[i]
		for at := all[i].Server; i < len(all) && all[i].Server == at; i++ {
			if backOffs += all[i].BackOffs; all[i].InFlight > most.InFlight {
				most = &all[i]
			}
		}
		if most.InFlight == 0 {
			busy = append(busy, "idle")
			continue
		}
		busy = append(busy, fmt.Sprintf("%s %d/%d", most.Class, most.InFlight, most.Limit))
	}
	if len(busy) > 0 {
		parts = append(parts, part{strings.Join(busy, " + "), 3, true})
	}
	if backOffs > 0 {
		parts = append(parts, part{"too busy: " + Count(backOffs), 3, true})
	}
	return parts
}

// itemParts are the parts of a line of items, but for the time.
func itemParts(s *Snapshot, rate uint64) []part {
	parts := []part{{text: Count(s.Items()) + " items", rank: 9}}
	if bytes := s.Counts[Bytes]; bytes > 0 {
		parts = append(parts, part{text: Size(bytes), rank: 5})
	}
	parts = append(parts, part{text: Count(rate) + " items/s", rank: 7})
	return append(parts, failedParts(s)...)
}

// failedParts say what has failed or differs.
func failedParts(s *Snapshot) (parts []part) {
	for _, c := range [...]struct {
		n         uint64
		one, many string
	}{
		{s.Counts[Differences], "difference", "differences"},
		{s.Counts[Errors], "error", "errors"},
	} {
		switch c.n {
		case 0:
		case 1:
			parts = append(parts, part{text: "1 " + c.one, rank: 8})
		default:
			parts = append(parts, part{text: Count(c.n) + " " + c.many, rank: 8})
		}
	}
	return parts
}

// teamParts say how many workers take part.
func teamParts(t *Team) []part {
	switch {
	case t == nil:
		return nil
	case t.Workers == 1:
		return []part{{text: "1 worker", rank: 6}}
	}
	return []part{{text: Count(uint64(t.Workers)) + " workers", rank: 6}}
}

// percent is how much is done: of the bytes, or of the items if there are no bytes. It is 100
// only if both are.
func percent(s *Snapshot) int {
	share := func(n, of uint64) int {
		if of == 0 || n >= of {
			return 100
		}
		return min(int(float64(n)/float64(of)*100), 99)
	}
	done, found := s.bytes()
	bytes, items := share(done, found), share(s.Items(), s.Counts[FoundItems])
	if found == 0 {
		return items
	}
	if items < 100 {
		bytes = min(bytes, 99)
	}
	return bytes
}

// maxLeft is the longest time that is estimated. Beyond it none is shown.
const maxLeft = 100 * time.Hour

// left estimates the time that the task still takes: for the bytes at the rate of the last
// seconds, for items without bytes at that of the whole time.
func left(s *Snapshot, rate uint64) (time.Duration, bool) {
	if !s.Closed {
		return 0, false
	}
	seconds := 0.0
	bytes, items := s.Counts[FoundBytes]-min(s.Counts[Bytes], s.Counts[FoundBytes]), s.Counts[FoundItems]-min(s.Items(), s.Counts[FoundItems])
	switch {
	case bytes > 0 && rate > 0:
		seconds = float64(bytes) / float64(rate)
	case bytes > 0, items == 0, s.Items() == 0:
		return 0, false
	default:
		seconds = s.Elapsed.Seconds() * float64(items) / float64(s.Items())
	}
	if seconds >= maxLeft.Seconds() {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}

// fit is the line in at most width columns: the parts for which there is room, and then the
// name, or its end.
func fit(parts []part, name string, width int) string {
	for Columns(joinParts(parts)) > width && len(parts) > 1 {
		least := 0
		for i, p := range parts {
			if p.rank < parts[least].rank {
				least = i
			}
		}
		parts = append(parts[:least:least], parts[least+1:]...)
	}
	text := Cut(joinParts(parts), width)
	room := width - Columns(text) - len(", ")
	if name = Clean(name); name == "" || room < minName {
		return text
	}
	return text + ", " + tail(name, room)
}

func joinParts(parts []part) string {
	all := make([]string, len(parts))
	for i, p := range parts {
		all[i] = p.text
	}
	return strings.Join(all, ", ")
}

// Cut returns the first characters of s, in at most n columns. A character that is two columns wide
// stays whole or goes, and marks go with the character that they are set on.
func Cut(s string, n int) string {
	for i, r := range s {
		if n -= wide(r); n < 0 {
			return s[:i]
		}
	}
	return s
}

// tail returns s, or its last characters after "...", in at most n columns.
func tail(s string, n int) string {
	const dots = "..."
	if Columns(s) <= n {
		return s
	}
	n -= len(dots)
	at := len(s)
	for at > 0 {
		r, size := utf8.DecodeLastRuneInString(s[:at])
		if n -= wide(r); n < 0 {
			break
		}
		at -= size
	}
	rest := s[at:]
	for i, r := range rest { // marks of a character that is not there would be set on the dots
		if wide(r) > 0 && r != asPicture {
			return dots + rest[i:]
		}
	}
	return dots
}
