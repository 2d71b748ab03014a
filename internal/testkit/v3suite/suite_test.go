package v3suite

import (
	"strings"
	"testing"
)

// TestDifferences weighs what tests find against what is known: a difference is
// excused as long as it is one.
func TestDifferences(t *testing.T) {
	target := Target{
		Differences: map[string]string{"a/known": "a reason", "a/at-times": "another"},
		Sometimes:   []string{"a/at-times"},
	}
	for _, tt := range []struct {
		name           string
		found          []string
		faults, excuse string
	}{
		{"a/new", []string{"wrong"}, "wrong", ""},
		{"a/new", nil, "", ""},
		{"a/known", []string{"wrong"}, "", "a reason"},
		{"a/known", nil, "no longer occurs", ""},
		{"a/at-times", []string{"wrong"}, "", "another"},
		{"a/at-times", nil, "", ""},
	} {
		faults, excuse := target.weigh(tt.name, tt.found)
		all := strings.Join(faults, " ")
		if !strings.Contains(all, tt.faults) || (tt.faults == "") != (all == "") {
			t.Errorf("%s, %q: faults %q, want %q", tt.name, tt.found, all, tt.faults)
		}
		if !strings.Contains(excuse, tt.excuse) || (tt.excuse == "") != (excuse == "") {
			t.Errorf("%s, %q: excuse %q, want %q", tt.name, tt.found, excuse, tt.excuse)
		}
	}
}

// TestUnknownDifferences reports names that no test has.
func TestUnknownDifferences(t *testing.T) {
	target := Target{
		Differences: map[string]string{"null/answers": "a reason", "null/no-such-test": "a reason"},
		Sometimes:   []string{"null/answers", "rename/dots"},
	}
	faults := strings.Join(target.unknown(groups()), "; ")
	for _, want := range []string{`"null/no-such-test", which is no subtest`, `"rename/dots", which is not in Differences`} {
		if !strings.Contains(faults, want) {
			t.Errorf("%s: want %s", faults, want)
		}
	}
	if strings.Contains(faults, "null/answers") {
		t.Errorf("%s: of what is as it should be", faults)
	}
}

// TestNames: every test has one of its own, for Differences to name.
func TestNames(t *testing.T) {
	seen := make(map[string]bool)
	for _, g := range groups() {
		for _, test := range g.tests {
			name := g.name + "/" + test.name
			if seen[name] || strings.ContainsAny(name, " #") || test.run == nil {
				t.Errorf("%q: a test twice, without a name of use, or that does nothing", name)
			}
			seen[name] = true
		}
	}
}
