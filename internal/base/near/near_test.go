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
		{"ab", "ba", 1},
		{"ab", "ac", Far},
		{"abcd", "a", Far},
		{"nope", "home", Far}, // half of it
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

// TestProposals: what is proposed is what people have meant, and for what may be anything there is nothing.
func TestProposals(t *testing.T) {
	words := []string{"home", "data", "export", "exports", "scratch", "src", "ls", "filer", "backup", "a", "max-load", "verify"}
	for wrong, want := range map[string]string{
		// a letter too few, too many, another, or two of them swapped
		"hme": "home", "homee": "home", "hone": "home", "hoem": "home", "dta": "data", "dtaa": "data", "fielr": "filer", "filerr": "filer",
		"sr": "", "scr": "src", "srx": "src", "sl": "ls", "exort": "export", "exporst": "export", "exprot": "export",
		// two of them, in a word that is long enough
		"scrtach": "scratch", "bakcupp": "backup", "max-lod": "max-load", "maxlaod": "max-load", "vreyfi": "",
		// a word that was begun, or goes on
		"scra": "scratch", "back": "backup", "home2": "home", "backups": "backup", "max-": "max-load",
		// nothing in common but chance
		"nope": "", "time": "", "date": "data", "dots": "", "tmp": "", "opt": "", "x": "", "b": "", "ab": "", "cp": "", "abcd": "", "fifth": "",
		"hope": "home", "user": "", "sources": "", "": "",
	} {
		if got := Of(wrong, slices.Values(words)); got != want {
			t.Errorf("%q is taken for %q, want %q", wrong, got, want)
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
