package top

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestKeys finds the keys in what terminals send.
func TestKeys(t *testing.T) {
	for sent, want := range map[string][]Key{
		"o": {KeyCalls}, "bpf": {KeyBytes, KeyLatency, KeyFlight}, "?q": {KeyHelp, KeyQuit}, "": nil, "xAZ\r": nil,
		"\x1b[A\x1b[B": {KeyUp, KeyDown}, "\x1bOC\x1bOD": {KeyRight, KeyLeft}, "\x1b[5~": nil, "\x1b": nil, "\x1b[": nil, "\xff\x00": nil,
	} {
		if got := Keys([]byte(sent)); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", sent, got, want)
		}
	}
}

// TestPress sorts, scrolls and asks for help.
func TestPress(t *testing.T) {
	f := frame(t)
	f.Clients[0].InFlight, f.Clients[1].InFlight = 0, 7
	s := &show{last: f}
	first := func() string {
		for _, table := range []table{(&Screen{Look: s.look}).clients(f)} {
			if table.rows() > 0 {
				return table.columns[0].cells[0]
			}
		}
		return ""
	}
	for _, c := range []struct {
		key   Key
		first string
	}{
		{KeyCalls, "192.0.2.7"}, {KeyBytes, "2001:db8:12:3456:789a:bcde:f012:3456"}, {KeyFlight, "1000@127.0.0.1"}, {KeyRight, "192.0.2.7"},
		{KeyLeft, "1000@127.0.0.1"}, {KeyCalls, "192.0.2.7"}, {KeyDown, "1000@127.0.0.1"}, {KeyUp, "192.0.2.7"}, {KeyUp, "192.0.2.7"},
	} {
		if !s.press(c.key) || first() != c.first {
			t.Errorf("%c: %q, want %q", c.key, first(), c.first)
		}
	}
	for range 100 {
		s.press(KeyDown)
	}
	if first() == "" {
		t.Error("scrolled away")
	}
	s.press(KeyHelp)
	if text := strings.Join(Lines(f, Screen{Width: 80, Height: 24, Look: s.look}), "\n"); !strings.Contains(text, "sort clients and files") {
		t.Errorf("no help:\n%s", text)
	}
	if s.press(KeyQuit) {
		t.Error("it goes on")
	}
	for _, k := range []Key{KeyCalls, KeyBytes, KeyLatency, KeyFlight} {
		heads := 0
		for _, table := range []table{(&Screen{Look: Look{Sort: k}}).clients(f)} {
			for _, col := range table.columns {
				heads += strings.Count(col.head, "▾")
			}
		}
		if heads != 1 {
			t.Errorf("%c: %d headings are marked", k, heads)
		}
	}
}

// TestScreenKeys redraws at once when a key is pressed, and ends when that is q.
func TestScreenKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := make(chan Key)
		time.AfterFunc(100*time.Millisecond, func() { keys <- KeyHelp; keys <- KeyQuit })
		out, err := watch(t, Options{Size: func() (int, int) { return 80, 24 }, Keys: keys})
		if err != nil {
			t.Error(err)
		}
		if n := strings.Count(out, home); n != 2 || !strings.Contains(out, "this help") || !strings.HasSuffix(out, leave) {
			t.Errorf("%d drawn: %q", n, out)
		}
	})
}
