package filter

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

func TestParseRules(t *testing.T) {
	all, err := ParseRules("F", strings.NewReader("# a comment\n; another\n\n+ a b \n- *.o\ninclude_x\nexclude /y/\n-  z\n"))
	want := []Rule{{true, "a b ", "F:4"}, {false, "*.o", "F:5"}, {true, "x", "F:6"}, {false, "/y/", "F:7"}, {false, " z", "F:8"}}
	if err != nil || !slices.Equal(all, want) {
		t.Errorf("%v, %v", all, err)
	}
	for line, what := range map[string]string{
		"-": "missing", "- ": "missing", "+": "missing", "include": "missing",
		". other": "not supported", ": .rules": "not supported", ":n- .rules": "not supported", "merge other": "not supported", "dir-merge,- x": "not supported",
		"-! x": "modifiers", "-/ x": "modifiers", "-,s x": "modifiers", "exclude,p x": "modifiers", "+foo": "modifiers",
		"H x": "not supported", "protect x": "not supported", "!": "not supported", "clear": "not supported",
		"foo": "no rule", " - x": "no rule", "*.o": "no rule", "- " + strings.Repeat("x", 2*maxPattern): "more than",
	} {
		_, err := ParseRules("F", strings.NewReader("- ok\n"+line+"\n"))
		if err == nil || !strings.HasPrefix(err.Error(), "F:2: ") || !strings.Contains(err.Error(), what) {
			t.Errorf("%.20q: %v", line, err)
		}
	}
	for _, many := range []string{strings.Repeat("- x\n", maxRules+1), strings.Repeat("\n", maxLines+1)} {
		if _, err := ParseRules("F", strings.NewReader(many)); err == nil {
			t.Error("no error where there are too many")
		}
	}
}

// FuzzParseRules: what is read has one meaning, and a filter can be made of it or not.
func FuzzParseRules(f *testing.F) {
	f.Add([]byte("+ a\n- b\n"))
	f.Add([]byte("include,! x\n:C\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		rules, err := ParseRules("F", bytes.NewReader(text))
		if err != nil {
			return
		}
		for _, r := range rules {
			if r.Pattern == "" || strings.Contains(r.Pattern, "\n") {
				t.Errorf("%q", r.Pattern)
			}
		}
		if f, err := New(Options{Rules: rules}); err == nil {
			chosen(f, "a/b\xff/c")
		}
	})
}

func list(t testing.TB, text string, nul bool) *List {
	t.Helper()
	l, err := ReadList("L", strings.NewReader(text), nul)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestList(t *testing.T) {
	l := list(t, "b/c/file\n./a//x/.\nb/c-d\nb/c/dir/\ngone/x\n\na/x/below\na/x\n#\nno newline", false)
	f := mustNew(t, Options{List: l})
	for path, want := range map[string]bool{
		"a/": true, "a": false, "a/x": true, "a/x/": true, "a/x/deep/y": true, "a/y": false, "a/xx": false, "b/": true, "b/c/": true, "b/c": false,
		"b/c/file": true, "b/c/other": false, "b/c/dir/z": true, "b/c-d": true, "b/c-": false, "c/": false, "#": true, "no newline": true,
	} {
		if got := chosen(f, path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	if got := slices.Collect(f.Missing()); !slices.Equal(got, []string{"a/x/below", "gone/x"}) {
		t.Errorf("missing: %q", got)
	}
	f.LeftOut(&vfs.Entry{Name: []byte("a")})
	f.Anew()
	if left, _ := f.Left(); left != 0 || !chosen(f, "b/c/file") || chosen(f, "c/") {
		t.Errorf("anew: %d are left out", left)
	}
	if got := slices.Collect(f.Missing()); len(got) != 7 || slices.Contains(got, "b/c/file") {
		t.Errorf("missing, anew: %q", got)
	}
}

// TestListOfAll: "." is the whole tree, of which snapshots are left out as ever, unless they are listed.
func TestListOfAll(t *testing.T) {
	f := mustNew(t, Options{List: list(t, ".\x00a\nb\x00y/.snapshot/daily\x00", true)})
	for path, want := range map[string]bool{"x/y": true, "x/.snapshot/": false, "a\nb": true, "y/.snapshot/daily": true, "y/.snapshot/": true} {
		if got := chosen(f, path); got != want {
			t.Errorf("%q: %v", path, got)
		}
	}
}

func TestBadLists(t *testing.T) {
	for text, what := range map[string]string{
		"/etc": "absolute", "a/../b": "..", "..": "..", "a\x00b": "NUL", strings.Repeat("x/", maxListedPath/2+1): "more than",
	} {
		_, err := ReadList("L", strings.NewReader("ok\n"+text+"\n"), false)
		if err == nil || !strings.HasPrefix(err.Error(), "L:2: ") || !strings.Contains(err.Error(), what) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

// FuzzList holds the list to a search of all its paths.
func FuzzList(f *testing.F) {
	f.Add("a\nb/c\nb-d\n", "b/c/d")
	f.Add("a/b\na.b\na\n", "a/b")
	f.Fuzz(func(t *testing.T, text, path string) {
		if len(text) > 200 || len(path) > 40 || strings.ContainsAny(path, "\x00\n") || strings.HasPrefix(path, "/") {
			t.Skip()
		}
		for part := range strings.SplitSeq(path, "/") {
			if part == "" || part == "." || part == ".." || IsSnapshot([]byte(part)) {
				t.Skip()
			}
		}
		l, err := ReadList("L", strings.NewReader(text), false)
		if err != nil {
			return
		}
		want := false
		for line := range strings.SplitSeq(text, "\n") {
			if line == "" {
				continue
			}
			parts, err := parsePath([]byte(line))
			if err != nil {
				t.Fatal(err)
			}
			clean := strings.ReplaceAll(string(parts), "\x00", "/")
			want = want || clean == "" || clean == path || strings.HasPrefix(path, clean+"/")
		}
		if got := chosen(mustNew(t, Options{List: l}), path); got != want {
			t.Errorf("%q of %q: %v", path, text, got)
		}
	})
}

// TestLongList: unsorted paths, and what they take.
func TestLongList(t *testing.T) {
	need.Speed(t, "one goroutine")
	const n = 100_000
	var b strings.Builder
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
		fmt.Fprintf(&b, "dir%d/sub%d/file%d\n", i%100, i%1000, i)
	}
	l := list(t, b.String(), false)
	f := mustNew(t, Options{List: l})
	for i := range n {
		if !chosen(f, fmt.Sprintf("dir%d/sub%d/file%d", i%100, i%1000, i)) {
			t.Fatal(i)
		}
		if i%100 == 0 && chosen(f, fmt.Sprintf("dir%d/sub%d/file%d", i%100, i%1000+1, i)) {
			t.Fatal(i)
		}
	}
	for path := range f.Missing() {
		t.Errorf("missing: %s", path)
	}
	size := 0
	for _, block := range l.blocks {
		size += cap(block)
	}
	if size > b.Len()+blockSize {
		t.Errorf("%d bytes for a text of %d", size, b.Len())
	}
}

func TestFilesAlone(t *testing.T) {
	low, high := uint64(10), uint64(20)
	since := time.Unix(1000, 0)
	f := mustNew(t, Options{MinSize: &low, MaxSize: &high, Newer: since})
	for _, c := range []struct {
		kind vfs.Type
		size uint64
		at   int64
		want bool
	}{
		{vfs.TypeReg, 10, 1001, true}, {vfs.TypeReg, 20, 1001, true}, {vfs.TypeReg, 9, 1001, false}, {vfs.TypeReg, 21, 1001, false},
		{vfs.TypeReg, 15, 1000, false}, {vfs.TypeDir, 0, 0, true}, {vfs.TypeSymlink, 0, 0, true},
	} {
		e := &vfs.Entry{Name: []byte("x"), Attr: vfs.Attr{Type: c.kind, Size: c.size, Mtime: time.Unix(c.at, 0)}}
		if _, got := f.Choose(nil, e); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestSnapshots: directories alone, at any depth, and counted.
func TestSnapshots(t *testing.T) {
	f := mustNew(t, Options{})
	for path, want := range map[string]bool{
		".snapshot/": false, "a/~snapshot/": false, ".zfs/": false, ".ckpt/": false, ".snapshot": true, ".snapshots/": true, "a/.zfs/b": false,
	} {
		if got := chosen(f, path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	if !chosen(mustNew(t, Options{Snapshots: true}), ".snapshot/daily") {
		t.Error("they are left out although they are asked for")
	}
	f.LeftOut(&vfs.Entry{Name: []byte(".zfs"), Attr: vfs.Attr{Type: vfs.TypeDir}})
	f.LeftOut(&vfs.Entry{Name: []byte(".zfs"), Attr: vfs.Attr{Type: vfs.TypeReg}})
	if left, snapshots := f.Left(); left != 2 || snapshots != 1 {
		t.Errorf("%d, %d", left, snapshots)
	}
	var none *Filter
	if _, ok := none.Choose(nil, &vfs.Entry{Name: []byte(".zfs")}); !ok || len(slices.Collect(none.Missing())) > 0 {
		t.Error("no filter leaves something out")
	}
}
