package scan

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// scanned scans a tree from its root.
func scanned(t testing.TB, s *Scan, f vfs.FS, root vfs.Handle, parallel int) *Report {
	t.Helper()
	v := s.Tree()
	v.Spell = func(d *walk.Dir, name []byte) string { return d.Path(string(name)) }
	v.Failed = func(*walk.Dir, string, error) {}
	if err := walk.Tree(t.Context(), f, root, walk.Options{Parallel: parallel, Descend: v.Descend}, v); err != nil {
		t.Fatal(err)
	}
	return s.Report()
}

func newScan(t testing.TB, o Options) *Scan {
	t.Helper()
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// table is the table of a report by its name.
func (r *Report) table(t testing.TB, name string) *Table {
	t.Helper()
	for i := range r.Tables {
		if r.Tables[i].Name == name {
			return &r.Tables[i]
		}
	}
	t.Fatalf("no table %s", name)
	return nil
}

// sum adds up a table.
func (t *Table) sum() (c Cell) {
	for _, r := range t.Rows {
		c.add(Cell{r.Count, r.Bytes})
	}
	return c
}

// row is the row with a label, or a path.
func (t *Table) row(label string) Row {
	for _, r := range t.Rows {
		if r.Label == label || r.Path == label {
			return r
		}
	}
	return Row{}
}

// TestSums: of trees by chance the rows of each table add up to the totals, and a walk by many finds what a walk by one
// does.
func TestSums(t *testing.T) {
	for seed := range uint64(5) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		f := newTree(t, memfs.Options{MaxBytes: 1 << 50})
		dirs, files := []vfs.Handle{f.root}, []vfs.Handle(nil)
		for i := range 600 {
			in := dirs[rnd.IntN(len(dirs))]
			name := fmt.Sprintf("%s%d.%s", strings.Repeat("n", rnd.IntN(200)), i, []string{"txt", "JPG", "x", "much-too-long-for-one"}[rnd.IntN(4)])
			switch k := rnd.IntN(10); {
			case k < 2:
				dirs = append(dirs, f.dir(in, name))
			case k == 2 && len(files) > 0:
				f.link(files[rnd.IntN(len(files))], in, name)
			case k == 3:
				f.make(in, name, vfs.CreateHow{Type: vfs.TypeSymlink, Target: "x"})
			default:
				files = append(files, f.file(in, name, rnd.Uint64N(1<<uint(rnd.IntN(40)))))
			}
		}
		var last Totals
		for i, parallel := range []int{1, 8, 8} {
			r := scanned(t, newScan(t, Options{Depth: 1, Top: MaxTop}), f, f.root, parallel)
			objects := r.Files + r.Dirs + r.Symlinks + r.Nodes
			for name, want := range map[string]Cell{
				"size": {r.Files, r.Bytes}, "mtime": {r.Files, r.Bytes}, "atime": {r.Files, r.Bytes}, "type": {objects, r.Used},
				"owner": {objects, r.Bytes}, "group": {objects, r.Bytes}, "extension": {r.Files, r.Bytes},
				"depth": {r.Entries, 0}, "entries": {r.Dirs, 0}, "name_length": {r.Entries - 1, 0}, // the root has no name
				"most_entries": {r.Entries - 1, r.Bytes}, "largest_files": {0, r.Bytes},
			} {
				if got := r.table(t, name).sum(); got != want {
					t.Errorf("seed %d: the rows of %s add up to %+v, want %+v", seed, name, got, want)
				}
			}
			if r.Entries != 601 || r.Entries != objects+r.Hardlinks || !r.Complete {
				t.Errorf("seed %d: %+v", seed, r.Totals)
			}
			if i > 0 && r.Totals != last {
				t.Errorf("seed %d: %+v by many, %+v by one", seed, r.Totals, last)
			}
			last = r.Totals
		}
	}
}

// TestDirectories: the table has each directory of a depth with all below it.
func TestDirectories(t *testing.T) {
	f := newTree(t, memfs.Options{})
	for i := range 3 {
		d := f.dir(f.root, fmt.Sprint("d", i))
		h := f.file(f.dir(f.dir(d, "x"), "y"), "f", uint64(10*i))
		f.file(d, "g", 1)
		f.link(h, d, "again")
	}
	table := scanned(t, newScan(t, Options{Depth: 1}), f, f.root, 4).table(t, "directories")
	for i := range 3 {
		if r := table.row(fmt.Sprint("d", i)); r.Count != 6 || r.Bytes != uint64(10*i+1) {
			t.Errorf("%+v, want 6 names, %d bytes", r, 10*i+1)
		}
	}
	s := newScan(t, Options{Depth: 1})
	s.table.max = 1
	if table = scanned(t, s, f, f.root, 4).table(t, "directories"); len(table.Rows) != 2 || table.Rows[0].Path != "d2" || table.Rows[1] != (Row{Label: others, Count: 12, Bytes: 12}) {
		t.Errorf("%+v", table.Rows)
	}
}

// TestAges: at which step of the histogram a time is.
func TestAges(t *testing.T) {
	now := time.Now()
	a := newAges(now)
	for age, want := range map[time.Duration]int{
		-time.Hour: 0, 0: 1, 23 * time.Hour: 1, 25 * time.Hour: 2, 20 * 24 * time.Hour: 3, 80 * 24 * time.Hour: 4, 300 * 24 * time.Hour: 5,
		500 * 24 * time.Hour: 6, 1000 * 24 * time.Hour: 7, 10000 * 24 * time.Hour: 8,
	} {
		if got := a.of(now.Add(-age).Unix()); got != want {
			t.Errorf("%v is %q, want %q", age, ageNames[got], ageNames[want])
		}
	}
}

// TestFindings: names that other systems would not take are counted, each with where it is.
func TestFindings(t *testing.T) {
	f := newTree(t, memfs.Options{})
	d := f.dir(f.root, "d")
	for i, name := range []string{
		"plain", "Readme", "README", "readme", "Ä", "ä", "a:b", "end.", "end ", "con", "Nul.txt", "com1", "com0", "console", "lpt9.x.y", "a\nb", "a\\b", "x\xff", "50%",
	} {
		f.file(d, name, uint64(i))
	}
	deep := d
	for range 5 {
		deep = f.dir(deep, strings.Repeat("e", 250))
	}
	f.make(f.root, "setid", vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o6755}})
	table := scanned(t, newScan(t, Options{Depth: -1}), f, f.root, 1).table(t, "findings")
	for part, want := range map[string]uint64{
		"equal but for case": 3, "Windows refuses": 9, "longer than 259": 4, "cannot be keys of S3": 2, "better avoided": 3, "control characters, such": 1,
		"not UTF-8": 1, "longer than 255": 0, "set-user-ID": 1, "set-group-ID": 1,
	} {
		for i, r := range table.Rows {
			// Two labels speak of UTF-8.
			if r.Path != "" || !strings.Contains(r.Label, part) || part == "not UTF-8" && strings.Contains(r.Label, "S3") || part == "control characters, such" && strings.Contains(r.Label, "Windows") {
				continue
			}
			if r.Count != want {
				t.Errorf("%s: %d, want %d: %+v", r.Label, r.Count, want, table.Rows[i:min(i+4, len(table.Rows))])
			}
			if want > 0 && (i+1 == len(table.Rows) || table.Rows[i+1].Path == "") {
				t.Errorf("%s: no example", r.Label)
			}
		}
	}
}

// TestNamesAtTheBound: a directory whose names are not all compared is counted as such, and the room comes back.
func TestNamesAtTheBound(t *testing.T) {
	f := newTree(t, memfs.Options{})
	for i := range 3 {
		d := f.dir(f.root, fmt.Sprint("d", i))
		for j := range 40 * (i + 1) {
			f.file(d, fmt.Sprint("F", j), 0)
		}
	}
	s := newScan(t, Options{Depth: -1})
	s.most = 96 // 32 for the root, 64 for another
	r := scanned(t, s, f, f.root, 1)
	if r.CaseUnsee != 2 || s.names.Load() != 0 {
		t.Errorf("%d directories were not compared, and %d names are kept", r.CaseUnsee, s.names.Load())
	}
}

// TestHitters: below the bound all counts are right; above it each is short by no more than is said, and nothing is lost.
func TestHitters(t *testing.T) {
	h, want := newHitters[uint32](100), make(map[uint32]uint64)
	rnd := rand.New(rand.NewPCG(1, 2))
	n := uint64(0)
	for range 20000 {
		key := uint32(rnd.ExpFloat64() * 40)
		h.of(key).add(Cell{1, 10})
		want[key]++
		n++
	}
	for _, key := range []uint32{0, 5, 20} {
		if c := h.cells[key]; c == nil || c.Count > want[key] || c.Count+h.short < want[key] {
			t.Errorf("%d: %+v, short by up to %d; want %d", key, c, h.short, want[key])
		}
	}
	if h.short == 0 || len(h.cells) > 100 {
		t.Errorf("%d keys, short by %d: the bound was not reached", len(h.cells), h.short)
	}
	rows, rest := largest(&h, 10)
	sum := rest
	for _, r := range rows {
		sum.add(r.Cell)
	}
	if sum != (Cell{n, 10 * n}) || len(rows) != 10 {
		t.Errorf("all rows add up to %+v, want %d", sum, n)
	}
	exact := newHitters[string](100)
	for i := range 1000 {
		ofName(&exact, fmt.Append(nil, i%100)).add(Cell{1, 0})
	}
	if exact.short != 0 || len(exact.cells) != 100 || exact.cells["7"].Count != 10 {
		t.Errorf("%d keys, short by %d", len(exact.cells), exact.short)
	}
}

// TestTop keeps the largest, whatever their order.
func TestTop(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for n := range 30 {
		l := top{max: 10}
		for _, v := range rnd.Perm(n) {
			if l.wants(int64(v)) {
				l.add(item{value: int64(v), path: fmt.Sprint(v)})
			}
		}
		got := l.sorted()
		if len(got) != min(n, 10) {
			t.Fatalf("%d of %d", len(got), n)
		}
		for i, x := range got {
			if x.value != int64(n-1-i) {
				t.Errorf("%d: %+v", n, got)
			}
		}
	}
}

// TestIncomplete: what cannot be listed, and a name that is too long, make the report one of the least that there is.
func TestIncomplete(t *testing.T) {
	broken := errors.New("broken")
	f := newTree(t, memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
		if op == "readdir" {
			return broken
		}
		return nil
	}})
	if r := scanned(t, newScan(t, Options{Depth: -1}), f, f.root, 1); r.Complete || r.Entries != 1 || r.Dirs != 1 {
		t.Errorf("%+v", r)
	}
}

// hostile is a report with names that want to be more than names.
func hostile(t *testing.T) *Report {
	f := newTree(t, memfs.Options{})
	for i, name := range []string{"<script>alert(1)<", "=cmd|' ' !A0", "+1", "@x", "-2", "\x1b[31m", "\"><img src=x onerror=y>.<b>", "line\nline,comma", "bytes\xff"} {
		f.file(f.root, name, uint64(i+1)<<30)
	}
	r := scanned(t, newScan(t, Options{Depth: 0}), f, f.root, 1)
	for i := range r.Tables {
		for j := range r.Tables[i].Rows {
			r.Tables[i].Rows[j].Path = strings.TrimPrefix(r.Tables[i].Rows[j].Path, "./")
		}
	}
	return r
}

// TestCSV: one row for each, which a reader understands, and no formula.
func TestCSV(t *testing.T) {
	r := hostile(t)
	var out bytes.Buffer
	if err := r.WriteCSV(&out); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	n := 1
	for i := range r.Tables {
		n += len(r.Tables[i].Rows)
	}
	if len(rows) != n {
		t.Errorf("%d rows, want %d", len(rows), n)
	}
	quoted := 0
	for _, row := range rows {
		for _, c := range row {
			if c != "" && strings.ContainsAny(c[:1], "=+-@\t\r") || strings.ContainsAny(c, "\n\x1b") || !utf8.ValidString(c) {
				t.Errorf("a cell is %q", c)
			}
			if strings.HasPrefix(c, "'") {
				quoted++
			}
		}
	}
	if quoted < 4 {
		t.Errorf("%d cells begin with an apostrophe", quoted)
	}
}

// TestHTML: the page is one file that runs nothing and asks for nothing, whatever names say.
func TestHTML(t *testing.T) {
	var out bytes.Buffer
	r := hostile(t)
	r.Complete = false
	about := &About{Places: []string{"<i>place</i>\x1b"}, Began: time.Now(), Took: time.Second, Failures: 7}
	if err := r.WriteHTML(&out, about); err != nil {
		t.Fatal(err)
	}
	page := out.String()
	for _, bad := range []string{"<script", "<img", "<i>", "\x1b", "ZgotmplZ", "src=x>", "http://", "https://", "url("} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for _, good := range []string{"default-src 'none'", "&lt;script&gt;alert(1)&lt;", "at least", "7 items", "<rect class=\"b\""} {
		if !strings.Contains(page, good) {
			t.Errorf("the page lacks %q", good)
		}
	}
	if n := len(regexp.MustCompile(`<section>`).FindAllString(page, -1)); n != len(regexp.MustCompile(`</section>`).FindAllString(page, -1)) || n < 15 {
		t.Errorf("%d sections", n)
	}
}

// listing is a file system with one directory of n made-up files.
type listing struct {
	vfs.FS
	n int
}

func (f *listing) ReadDir(context.Context, vfs.Handle, vfs.Pos, vfs.Mask, uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		h, err := vfs.MakeHandle([]byte("a handle of the usual length"))
		now := time.Now()
		e := vfs.Entry{Handle: h, Attr: vfs.Attr{Valid: vfs.MaskV3, Type: vfs.TypeReg, Nlink: 1, Size: 1000, Used: 4096, Mtime: now, Atime: now}}
		for i := range f.n {
			e.Name = fmt.Appendf(e.Name[:0], "entry-%08d.dat", i)
			e.Next.Cookie, e.Attr.FileID, e.Attr.Size = uint64(i+1), uint64(i+2), uint64(i%5000)
			if !yield(&e, err) {
				return
			}
		}
	}
}

// BenchmarkScan is what an entry costs that its file system has at hand.
func BenchmarkScan(b *testing.B) {
	f := newTree(b, memfs.Options{})
	s := newScan(b, Options{Depth: -1})
	b.ReportAllocs()
	b.ResetTimer()
	if r := scanned(b, s, &listing{f.FS, b.N}, f.root, 1); r.Entries != uint64(b.N+1) {
		b.Fatalf("%d of %d", r.Entries, b.N)
	}
}
