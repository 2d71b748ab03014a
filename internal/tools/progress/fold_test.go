package progress

import (
	"strings"
	"testing"
)

// TestFold breaks lines at spaces, and words never.
func TestFold(t *testing.T) {
	for _, c := range []struct {
		line          string
		width, indent int
		want          string
	}{
		{"", 10, 2, ""},
		{"fits in it", 10, 2, "fits in it"},
		{"does not fit", 10, 2, "does not\n  fit"},
		{"does not fit", 0, 2, "does not fit"},
		{"  keeps  gaps in  it", 12, 4, "  keeps\n    gaps in\n    it"},
		{"see nfs://filer/export/path for it", 12, 2, "see\n  nfs://filer/export/path\n  for it"},
		{"nfs://filer/export/path", 12, 2, "nfs://filer/export/path"},
		{"   nfs://filer/export/path x", 12, 2, "   nfs://filer/export/path\n  x"},
		{"漢字 漢字 漢字", 9, 0, "漢字 漢字\n漢字"},
		{"e\u0301e\u0301 e\u0301e\u0301 x", 5, 0, "e\u0301e\u0301 e\u0301e\u0301\nx"},
		{"ends in spaces    ", 8, 1, "ends in\n spaces"},
	} {
		if got := Fold(c.line, c.width, c.indent); got != c.want {
			t.Errorf("%q at %d, %d: %q, want %q", c.line, c.width, c.indent, got, c.want)
		}
	}
}

// FuzzFold: no line is wider than it may be, unless it is one word, and no word is lost or broken.
func FuzzFold(f *testing.F) {
	f.Add("some words, 漢字 and nfs://host/a/long/path", 12, 3)
	f.Fuzz(func(t *testing.T, line string, width, indent int) {
		line = Clean(line)
		width, indent = width&0xff, indent&7
		folded := Fold(line, width, indent)
		if a, b := strings.Fields(line), strings.Fields(folded); strings.Join(a, " ") != strings.Join(b, " ") {
			t.Fatalf("%q has become %q", line, folded)
		}
		for _, one := range strings.Split(folded, "\n") {
			if width > 0 && Columns(strings.TrimRight(one, " ")) > width && len(strings.Fields(one)) > 1 {
				t.Fatalf("at %d: %q in %q", width, one, folded)
			}
		}
	})
}
