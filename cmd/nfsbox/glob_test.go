package main

import (
	"path"
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
		"nfs://h:1/e/*?uid=0":   "/e *",
		"nfs://h/*/":            "/ * |",
		"nfs://h/e//x*///y/":    "/e x* y |",
		"nfs://h/e/%3F%2a":      `/e ?\*`,
		"nfs://h/e%2Fd/[!a]%5D": `/e/d [^a]\]`,
		"nfs://h/l/../x*":       "/l/.. x*",
		"nfs://h/d%20*/[%5D]":   `/ d * [\]]`,
		"nfs://h?x=*":           "/",
	} {
		got, parts := patternOf(arg)
		for _, p := range parts {
			switch {
			case p.pattern != "":
				got += " " + p.pattern
			case p.name != "":
				got += " " + p.name
			default:
				got += " |"
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", arg, got, want)
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
		raw := escapeArg(name)
		if p := segmentOf(raw); p.name != name || p.pattern != "" && !strings.Contains(name, "?") {
			t.Errorf("%q: %+v", raw, p)
		}
		if ok, err := path.Match(segmentOf("*"+raw).pattern, name); err != nil || !ok && !strings.Contains(name, "/") {
			t.Errorf("*%s does not match %q: %v", raw, name, err)
		}
	})
}
