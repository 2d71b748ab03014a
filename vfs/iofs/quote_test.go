package iofs

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestQuote(t *testing.T) {
	for name, want := range map[string]string{
		"plain":                "plain",
		"latin\xe9":            "latin‛E9",
		"\x80\xff":             "‛80‛FF",
		"mark ‛":               "mark ‛‛",
		"‛E9":                  "‛‛E9",
		"\xe9‛\xe9":            "‛E9‛‛‛E9",
		"half a mark \xe2\x80": "half a mark ‛E2‛80",
		"\uFFFD":               "\uFFFD",
	} {
		if got := quote(name); got != want || unquote(got) != name {
			t.Errorf("%q is shown as %q, want %q; which is %q", name, got, want, unquote(got))
		}
	}
	for _, plain := range []string{"one ‛ mark", "‛", "‛2F", "‛e9", "‛F", "‛00"} {
		if got := unquote(plain); got != plain {
			t.Errorf("%q is taken for %q", plain, got)
		}
	}
}

func FuzzQuote(f *testing.F) {
	f.Add("a")
	f.Add("\xff‛‛E9\x00")
	f.Fuzz(func(t *testing.T, name string) {
		shown := quote(name)
		if unquote(shown) != name {
			t.Errorf("%q is shown as %q, which is %q", name, shown, unquote(shown))
		}
		if !utf8.ValidString(shown) || strings.Count(shown, "/") != strings.Count(name, "/") {
			t.Errorf("%q is shown as %q", name, shown)
		}
	})
}
