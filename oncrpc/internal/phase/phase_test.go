package phase

import (
	"bufio"
	"os"
	"strings"
	"testing"
)

// TestPhases walks through the table in Phase's comment: of all pairs of phases, may
// allows those that stand in it, and no other.
func TestPhases(t *testing.T) {
	f, err := os.Open("phase.go")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // it was only read
	table := make(map[string][]string)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		row, ok := strings.CutPrefix(lines.Text(), "//\t")
		if words := strings.Fields(row); ok && words[0] != "phase" {
			table[words[0]] = words[1:]
		}
	}
	if len(table) != int(Over)+1 {
		t.Fatalf("the table has %d rows", len(table))
	}
	for p := Resting; p <= Over; p++ {
		follow := make(map[string]bool)
		for _, name := range table[p.String()] {
			follow[name] = true
		}
		for q := Resting; q <= Over; q++ {
			if p.may(q) != follow[q.String()] {
				t.Errorf("%v to %v: %v, and the table says %v", p, q, p.may(q), follow[q.String()])
			}
		}
	}
}

// TestPhaseChecked: with the race detector a forbidden step panics.
func TestPhaseChecked(t *testing.T) {
	defer func() {
		if p := recover(); (p != nil) != checked {
			t.Errorf("it panics with %v", p)
		}
	}()
	p := Over
	p.To(Sent)
}
