package near

import (
	"slices"
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	long := strings.Repeat("a", maxLength+1)
	for _, c := range []struct {
		wrong, word string
		want        int
	}{
		{"listen", "listen", 0},
		{"listne", "listen", 1},
		{"lsten", "listen", 1},
		{"lisstten", "listen", 2},
		{"maximum-connections", "connections", Far},
		{"listening", "listen", 1},
		{"io-p", "io-pool", 1},
		{"io", "io-pool", Far},
		{"ab", "cd", Far},
		{"abc", "abd", 1},
		{"abc", "xyc", Far}, // more than half
		{"abcdef", "ghijkl", Far},
		{"", "", 0},
		{"abcdef", "", Far},
		{long, "b" + long[1:], Far},
	} {
		if got := Distance(c.wrong, c.word); got != c.want {
			t.Errorf("from %q to %q: %d, want %d", c.wrong, c.word, got, c.want)
		}
	}
}

func TestOf(t *testing.T) {
	for wrong, want := range map[string]string{"verfy": "verify", "verify": "", "json": "", "progres": "progress", "quite": "quiet"} {
		if got := Of(wrong, slices.Values([]string{"verify", "progress", "quiet"})); got != want {
			t.Errorf("%q is %q, want %q", wrong, got, want)
		}
	}
}
