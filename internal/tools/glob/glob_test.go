package glob

import (
	"net/url"
	"strings"
	"testing"
)

// TestPatternOf: what is escaped in a URL stands for itself, but %3F, and a slash behind a
// pattern stands for directories.
func TestPatternOf(t *testing.T) {
	for arg, want := range map[string]string{
		"nfs://h/e/a":           "/e/a",
		"nfs://h/e/a%2Ab":       "/e/a*b",
		"nfs://h/e/%5Ba%5D":     "/e/[a]",
		"nfs://h/e/[a":          "/e/[a",
		"nfs://h:1/e/*?uid=0":   "/e *~",
		"nfs://h/*/":            "/ *~ |",
		"nfs://h/e//x*///y/":    "/e x*~ y |",
		"nfs://h/e/%3F%2a":      `/e ?*~`,
		"nfs://h/e%2Fd/[!a]%5D": `/e/d [!a]]~`,
		"nfs://h/l/../x*":       "/l/.. x*~",
		"nfs://h/d%20*/[%5D]":   `/ d *~ []]~`,
		"nfs://h?x=*":           "/",
	} {
		got, parts := patternOf(arg)
		for _, p := range parts {
			switch {
			case p.name != "":
				got += " " + p.name
				if p.pattern != nil {
					got += "~"
				}
			default:
				got += " |"
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", arg, got, want)
		}
	}
}

// TestSegments: a part of a URL matches as the shell's pattern would, and what is escaped is itself.
func TestSegments(t *testing.T) {
	for _, c := range []struct {
		raw, name string
		want      bool
	}{
		{"[[:alpha:]]*", "a1", true}, {"[[:alpha:]]*", "1a", false}, {"[![:digit:]]", "a", true}, {"[^a]", "a", false}, {"[!a]", "b", true},
		{"[%21a]", "!", true}, {"[%21a]", "b", false}, {"[%5Ea]", "^", true}, {"[[%3Aalpha:]]", "a]", true}, {"[[%3Aalpha:]]", "b", false}, {"[]a]", "]", true},
		{"[a%2Dc]", "b", false}, {"[a-c]", "b", true}, {"%3F%3F", "ab", true}, {"*", "\xff", true}, {"%2A*", "ab", false},
	} {
		if got := segmentOf(c.raw).pattern.Match([]byte(c.name)); got != c.want {
			t.Errorf("%s, %q: %v", c.raw, c.name, got)
		}
	}
}

// FuzzSegment: a name whose every byte is escaped is no pattern, and none in part matches itself,
// unless a question mark says otherwise.
func FuzzSegment(f *testing.F) {
	for _, name := range []string{"a", "*", "[a]", "[!", `\`, "a?b", "\xff%"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		raw := strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
		if p := segmentOf(raw); p.name != name || p.pattern != nil && !strings.Contains(name, "?") {
			t.Errorf("%q: %+v", raw, p)
		}
		if !segmentOf("*" + raw).pattern.Match([]byte(name)) {
			t.Errorf("*%s does not match %q", raw, name)
		}
	})
}
