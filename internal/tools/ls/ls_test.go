package ls

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/nfsbox/nfsbox/vfs"
)

// TestSize rounds as ls -h does: up.
func TestSize(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0", 1: "1", 1023: "1023", 1024: "1.0K", 1025: "1.1K", 1536: "1.5K", 10189: "10K", 10240: "10K", 10241: "11K",
		1047552: "1023K", 1047553: "1.0M", 1 << 20: "1.0M", 5 << 30: "5.0G", 1<<64 - 1: "16E",
	} {
		if got := Size(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

func named(names ...string) (entries []Entry) {
	for _, name := range names {
		entries = append(entries, Entry{Name: name, Attr: vfs.Attr{Type: vfs.TypeReg}})
	}
	return entries
}

// TestSort sorts by each key, and equal ones by name.
func TestSort(t *testing.T) {
	at := time.Unix(1000, 0)
	made := []Entry{
		{Name: "b", Attr: vfs.Attr{Size: 1, Mtime: at}}, {Name: "a", Attr: vfs.Attr{Size: 1, Mtime: at}},
		{Name: "c", Attr: vfs.Attr{Size: 3, Mtime: at.Add(-time.Second)}}, {Name: "d", Attr: vfs.Attr{Mtime: at.Add(time.Second)}},
	}
	for _, tt := range []struct {
		by      Key
		reverse bool
		want    string
	}{
		{ByName, false, "abcd"}, {ByName, true, "dcba"}, {ByTime, false, "dabc"}, {BySize, false, "cabd"}, {BySize, true, "dbac"},
		{AsIs, false, "bacd"}, {AsIs, true, "dcab"},
	} {
		entries, got := append([]Entry{}, made...), ""
		Sort(entries, tt.by, tt.reverse)
		for _, e := range entries {
			got += e.Name
		}
		if got != tt.want {
			t.Errorf("by %s (reverse %v): %s, want %s", tt.by, tt.reverse, got, tt.want)
		}
	}
}

// TestColumns fills rows downwards, as many columns as fit, and one where nothing else does.
func TestColumns(t *testing.T) {
	s := &Style{}
	if got, want := s.Columns(named("a", "bb", "ccc", "d", "e"), 10), "a   ccc  e\nbb  d\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := s.Columns(named("longer", "than", "this"), 3), "longer\nthan\nthis\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	// A character may take two columns, or none.
	if got, want := s.Columns(named("世界", "e\u0301e\u0301", "cccc", "d"), 10), "世界  cccc\ne\u0301e\u0301    d\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := s.Columns(nil, 80); got != "" {
		t.Errorf("%q of nothing", got)
	}
	var names []string
	for i := range 500 {
		names = append(names, strings.Repeat("ü", i%23)+fmt.Sprint(i))
	}
	for _, width := range []int{0, 1, 20, 50, 80, 200} {
		text := s.Columns(named(names...), width)
		if got := len(strings.Fields(text)); got != len(names) {
			t.Errorf("%d columns: %d names, want %d", width, got, len(names))
		}
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > max(width, 26) {
				t.Errorf("a line of %d characters in %d columns", n, width)
			}
		}
	}
}

// TestLine lets no name or target steer the terminal, and shows what ls -l shows.
func TestLine(t *testing.T) {
	e := &Entry{Name: "a\x1b[2J", Target: "b\x1b", Attr: vfs.Attr{Type: vfs.TypeSymlink, Mode: 0o777, Nlink: 1, UID: 5, GID: 6, Size: 2048, Mtime: time.Unix(0, 0)}}
	for _, s := range []*Style{{}, {Human: true}} {
		line := s.Line(e)
		if !strings.HasPrefix(line, "lrwxrwxrwx   1     5     6 ") || !strings.HasSuffix(line, `a\x1b[2J -> b\x1b`) || strings.Contains(line, "2.0K") != s.Human {
			t.Errorf("%q", line)
		}
	}
	if got := (&Style{}).Total([]Entry{{Attr: vfs.Attr{Used: 1}}, {Attr: vfs.Attr{Used: 4096}}}); got != "total 5" {
		t.Error(got)
	}
	if line := (&Style{}).Line(&Entry{Name: "n", Attr: vfs.Attr{Type: vfs.TypeChar, Mode: 0o4755, Rdev: 5<<32 | 1}}); !strings.HasPrefix(line, "crwsr-xr-x") || !strings.Contains(line, " 5, 1 ") {
		t.Error(line)
	}
}

// TestColours paints by kind and by the end of a name, and takes nothing but numbers.
func TestColours(t *testing.T) {
	c := ParseColours("di=1;35:*.TAR=31:ln=target:ex=\x1b[0m:bad:*.x=5;x:fi=0")
	for _, tt := range []struct {
		name string
		attr vfs.Attr
		want string
	}{
		{"d", vfs.Attr{Type: vfs.TypeDir, Mode: 0o755}, "1;35"}, {"d", vfs.Attr{Type: vfs.TypeDir, Mode: 0o1777}, "30;42"},
		{"a.tar", vfs.Attr{Type: vfs.TypeReg}, "31"}, {"a.x", vfs.Attr{Type: vfs.TypeReg}, ""}, {"l", vfs.Attr{Type: vfs.TypeSymlink}, "01;36"},
		{"x", vfs.Attr{Type: vfs.TypeReg, Mode: 0o755}, "01;32"}, {"s", vfs.Attr{Type: vfs.TypeReg, Mode: 0o4755}, "37;41"}, {"plain", vfs.Attr{Type: vfs.TypeReg}, ""},
	} {
		want := tt.name
		if tt.want != "" {
			want = "\x1b[" + tt.want + "m" + tt.name + "\x1b[0m"
		}
		if got := (&Style{Colours: c}).Name(&Entry{Name: tt.name, Attr: tt.attr}); got != want {
			t.Errorf("%s %v: %q, want %q", tt.name, tt.attr.Type, got, want)
		}
	}
}

// FuzzColours: nothing but numbers of SGR reaches a terminal.
func FuzzColours(f *testing.F) {
	f.Add("di=01;34:*.tar=01;31:ln=target")
	f.Fuzz(func(t *testing.T, env string) {
		c := ParseColours(env)
		for _, kind := range []vfs.Type{vfs.TypeReg, vfs.TypeDir, vfs.TypeSymlink} {
			got := (&Style{Colours: c}).Name(&Entry{Name: "n.tar", Attr: vfs.Attr{Type: kind, Mode: 0o777}})
			sgr, painted := strings.CutPrefix(got, "\x1b[")
			if sgr = strings.TrimSuffix(sgr, "mn.tar\x1b[0m"); painted && strings.Trim(sgr, "0123456789;") != "" || !painted && got != "n.tar" {
				t.Errorf("%q paints %q", env, got)
			}
		}
	})
}
