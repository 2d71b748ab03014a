package bench

import (
	"strings"
	"testing"
	"time"
)

// TestParseStat finds the times behind a name that looks like anything.
func TestParseStat(t *testing.T) {
	const behind = " S 1 2 3 4 5 6 7 8 9 10 250 50 13 14 15 16 29"
	for _, name := range []string{"x", "a b", ") S 1 2 3 4 5 6 7 8 9 10 11 12", "(("} {
		got, threads, err := parseStat("stat", []byte("7 ("+name+")"+behind))
		if err != nil || got != 3*time.Second || threads != 29 {
			t.Errorf("%q: %v, %d threads, %v", name, got, threads, err)
		}
	}
	for _, bad := range []string{"", "7 (x) S 1 2", "7 (x)" + strings.Replace(behind, "250", "-1", 1), "7 (x)" + strings.Replace(behind, " 50", " 99999999999999999999", 1), "7 (x)" + strings.Replace(behind, "29", "-29", 1)} {
		if got, _, err := parseStat("stat", []byte(bad)); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}

// FuzzParseStat parses any bytes without trouble.
func FuzzParseStat(f *testing.F) {
	f.Add([]byte("7 (x) S 1 2 3 4 5 6 7 8 9 10 250 50 13 14 15 16 17"))
	f.Add([]byte(")"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if d, threads, err := parseStat("stat", b); err == nil && (d < 0 || threads < 0) {
			t.Errorf("%v", d)
		}
	})
}
