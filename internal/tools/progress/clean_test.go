package progress

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

var cleanTests = []struct{ in, want string }{
	{"", ""},
	{"plain name.txt", "plain name.txt"},
	{"Grüße, 世界 🙂", "Grüße, 世界 🙂"},
	{"two\nlines", `two\nlines`},
	{"\x1b[2J\x1b]0;title\a", `\x1b[2J\x1b]0;title\a`},
	{"\xff\xfe", `\xff\xfe`},
	{"cut \xe4\xb8", `cut \xe4\xb8`},
	{"\u009b31m", `\u009b31m`},
	{"exe\u202etxt", `exe\u202etxt`},
	{"tag \U000e0041", `tag \U000e0041`},
	{"\ufffd is no error", "\ufffd is no error"},
	{`back\slash`, `back\\slash`},
	{"no-break\u00a0space", `no-break\u00a0space`},
	{"\x00\x7f", `\x00\x7f`},
}

func TestClean(t *testing.T) {
	for _, tt := range cleanTests {
		if got := Clean(tt.in); got != tt.want {
			t.Errorf("Clean(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { Clean("a name that needs nothing, 世界") }); n != 0 {
		t.Errorf("%v allocations for a clean name", n)
	}
}

// FuzzClean: what comes out can be shown, and says what went in.
func FuzzClean(f *testing.F) {
	for _, tt := range cleanTests {
		f.Add(tt.in)
	}
	f.Fuzz(func(t *testing.T, name string) {
		out := Clean(name)
		if !utf8.ValidString(out) {
			t.Errorf("Clean(%q) = %q is not UTF-8", name, out)
		}
		for _, r := range out {
			if !unicode.IsPrint(r) {
				t.Errorf("Clean(%q) = %q holds %U", name, out, r)
			}
		}
		if back := unescape(t, out); back != name {
			t.Errorf("Clean(%q) = %q stands for %q", name, out, back)
		}
	})
}

// hex are the digits of escapes.
const hex = "0123456789abcdef"

// unescape undoes Clean.
func unescape(t *testing.T, s string) string {
	var b []byte
	for s != "" {
		if s[0] != '\\' {
			b, s = append(b, s[0]), s[1:]
			continue
		}
		r, n := rune(0), map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[1]]
		for _, c := range s[2 : 2+n] {
			r = r<<4 | rune(strings.IndexRune(hex, c))
		}
		switch {
		case n == 2 && r < utf8.RuneSelf || n > 2:
			b = utf8.AppendRune(b, r)
		case n == 2:
			b = append(b, byte(r))
		default:
			i := strings.IndexByte(`abfnrtv\`, s[1])
			if i < 0 {
				t.Fatalf("unknown escape in %q", s)
			}
			b = append(b, "\a\b\f\n\r\t\v\\"[i])
		}
		s = s[2+n:]
	}
	return string(b)
}

// FuzzJSON: what is written is JSON, shows nothing but what is printable, and
// reads as the text that went in.
func FuzzJSON(f *testing.F) {
	for _, tt := range cleanTests {
		f.Add(tt.in)
	}
	f.Add("quote \" and </script>")
	f.Fuzz(func(t *testing.T, s string) {
		line, err := AppendObject(nil, time.Now(), "note", map[string]string{s: s})
		if err != nil {
			t.Fatal(err)
		}
		out, ended := strings.CutSuffix(string(line), "\n")
		for _, r := range out {
			if !unicode.IsPrint(r) {
				t.Errorf("%q is written as %q", s, out)
			}
		}
		var back map[string]string
		if err := json.Unmarshal(line, &back); err != nil || !ended {
			t.Fatalf("%q is written as %q: %v", s, line, err)
		}
		// Invalid bytes are replaced, each by itself.
		want := string([]rune(s))
		if got, ok := back[want]; want != "time" && want != "type" && (!ok || got != want) {
			t.Errorf("%q is read as %q, want %q", s, back, want)
		}
	})
}

// TestAppendObject escapes in JSON what is not printable, and nothing else.
func TestAppendObject(t *testing.T) {
	in := "a\u009b\u202eü\U0001F600\U000E0001\x7f\x1b\x85"
	got, err := AppendObject([]byte("before "), time.Unix(0, 0), "note", struct {
		Text string `json:"text"`
	}{in})
	want := `before {"time":"1970-01-01T00:00:00Z","type":"note","text":"a\u009b\u202eü😀\udb40\udc01\u007f\u001b\ufffd"}` + "\n"
	if err != nil || string(got) != want {
		t.Errorf("%s, want %s; %v", got, want, err)
	}
}

// TestAppendAnew: lines have the time at which they are written, and are else as they were.
func TestAppendAnew(t *testing.T) {
	var lines []byte
	for i, v := range []any{map[string]string{"time": "{\"time\":\"", "x": "a\nb\x1b"}, struct{}{}} {
		var err error
		if lines, err = AppendObject(lines, time.Unix(int64(i), 5), "note", v); err != nil {
			t.Fatal(err)
		}
	}
	want := strings.NewReplacer("1970-01-01T00:00:00.000000005Z", "1970-01-01T01:00:00Z", "1970-01-01T00:00:01.000000005Z", "1970-01-01T01:00:00Z").Replace(string(lines))
	if got := string(AppendAnew([]byte("before "), lines, time.Unix(3600, 0))); got != "before "+want || strings.Count(want, "01:00:00Z") != 2 {
		t.Errorf("%s, want %s", got, want)
	}
}
