package main

import (
	"slices"
	"testing"
)

// TestAgain has an interrupted copy done again to the same place, with a record.
func TestAgain(t *testing.T) {
	for _, x := range []struct {
		what         string
		source, dest string
		made         bool
		args, want   []string
	}{
		{"DEST was made", "a", "b", true, []string{"cp", "-r", "a", "b"}, []string{"cp", "--job", "NAME", "-r", "a/.", "b"}},
		{"it was there", "a", "b", false, []string{"cp", "-r", "a", "b"}, []string{"cp", "--job", "NAME", "-r", "a", "b"}},
		{"a slash", "a/", "b", true, []string{"cp", "-r", "a/", "b"}, []string{"cp", "--job", "NAME", "-r", "a/.", "b"}},
		{"contents", "a/..", "b", true, []string{"cp", "-r", "a/..", "b"}, []string{"cp", "--job", "NAME", "-r", "a/..", "b"}},
		{"arguments of a URL", "nfs://h/e?uid=0", "b", true, []string{"cp", "-r", "nfs://h/e?uid=0", "b"}, []string{"cp", "--job", "NAME", "-r", "nfs://h/e/.?uid=0", "b"}},
		{"a root", "nfs://h/", "b", true, []string{"cp", "-r", "nfs://h/", "b"}, []string{"cp", "--job", "NAME", "-r", "nfs://h/.", "b"}},
		{"a flag's value", "3", "b", true, []string{"cp", "-r", "--parallel", "3", "3", "b"}, []string{"cp", "--job", "NAME", "-r", "--parallel", "3", "3/.", "b"}},
		{"flags behind", "3", "b", true, []string{"cp", "3", "b", "-r", "--parallel", "3"}, []string{"cp", "--job", "NAME", "3/.", "b", "-r", "--parallel", "3"}},
		{"no flags", "-r", "b", true, []string{"cp", "-R", "--", "-r", "b"}, []string{"cp", "--job", "NAME", "-R", "--", "-r/.", "b"}},
	} {
		c := cpCmd{Places: []string{x.source, x.dest}, madeDest: x.made}
		given := slices.Clone(x.args)
		if got := c.again(x.args); !slices.Equal(got, x.want) || !slices.Equal(x.args, given) {
			t.Errorf("%s: %q, want %q", x.what, got, x.want)
		}
	}
}
