package job

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/nfsbox/nfsbox/internal/base/filter"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
)

// rules is a filter of rules, one a line.
func rules(t *testing.T, text string) *filter.Filter {
	t.Helper()
	all, err := filter.ParseRules("rules", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	f, err := filter.New(filter.Options{Rules: all})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// chosenTree is a tree of which some is left out.
func chosenTree(tr *tree) {
	for _, path := range []string{"a", "a.o", "dir/b", "dir/b.o", "cache/x", "dir/cache/y", "dir/.snapshot/daily/a"} {
		tr.file(path, 0o644, []byte(path))
	}
}

const someRules = "- *.o\n- /cache/\n"

// TestCopyChosen: what is left out is neither made nor counted as done, and what the
// destination has of that name stays. Verify takes the copy as the same.
func TestCopyChosen(t *testing.T) {
	for _, sync := range []*SyncOptions{nil, {}} {
		synctest.Test(t, func(t *testing.T) {
			src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
			chosenTree(src)
			dst.file("a.o", 0o644, []byte("mine"))
			o, v := options(t, src, dst, "")
			o.Filter, o.Sync = rules(t, someRules), sync
			s, err := Copy(t.Context(), o)
			if err != nil || s.Errors > 0 || s.Files != 3 {
				t.Fatalf("%v, %+v\n%s", err, s, v)
			}
			var got []string
			for path := range dst.list(dst.root) {
				got = append(got, path)
			}
			for _, not := range []string{"dir/b.o", "cache", "dir/.snapshot"} {
				if slices.Contains(got, not) {
					t.Errorf("%s was copied: %q", not, got)
				}
			}
			if text := string(dst.read(dst.at("a.o"), 4)); text != "mine" {
				t.Errorf("a.o is %q", text)
			}
			if left, snapshots := o.Filter.Left(); left != 4 || snapshots != 1 {
				t.Errorf("%d were left out, %d of snapshots", left, snapshots)
			}
			if sum, diffs := verify(t, src, dst, func(o *VerifyOptions) { o.Filter = rules(t, someRules) }); sum.ExitCode(nil) != ExitDone {
				t.Errorf("verify: %+v %q", sum, diffs)
			}
		})
	}
}

// TestVerifyChosen: what is left out of the source is not missing in the destination, and what would be left out of
// the destination is not extra there, whether its listing says what it is or not. What is chosen is compared.
func TestVerifyChosen(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	chosenTree(src)
	for _, path := range []string{"a", "dir/b", "dir/cache/y"} {
		dst.file(path, 0o644, []byte(path))
	}
	for _, path := range []string{"more.o", "dir/more.o", "cache/z", "dir/cache/z", ".zfs/a"} {
		dst.file(path, 0o644, nil)
	}
	src.settle()
	dst.settle()
	sum, got := verify(t, src, dst, func(o *VerifyOptions) { o.Filter = rules(t, someRules) })
	got = slices.DeleteFunc(got, func(line string) bool { return strings.HasPrefix(line, "mtime ") }) // nobody has kept them
	if want := []string{"extra dir/cache/z"}; !slices.Equal(got, want) || sum.Extra != 1 || sum.Files != 3 {
		t.Errorf("%q, %+v", got, sum)
	}
}

// TestDeleteChosen: what would be left out of the source is not deleted, with the directories above it, and does not
// count among what is to be deleted.
func TestDeleteChosen(t *testing.T) {
	for name, c := range map[string]struct {
		rules, list string
		stay, gone  []string
	}{
		"rules": {rules: someRules, stay: []string{"mine.o", "gone/keep.o", "cache/z", ".zfs/a", "gone/.ckpt/b"}, gone: []string{"extra", "gone/x", "gonedir/y", "gonedir"}},
		"list":  {list: "a\ndir\n", stay: []string{"mine.o", "gone/x", "listed/other"}, gone: []string{"dir/more"}},
	} {
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
		chosenTree(src)
		for _, path := range append(slices.Clone(c.stay), c.gone...) {
			if path != "gonedir" { // it is the directory of another
				dst.file(path, 0o644, []byte(path))
			}
		}
		dst.file("a", 0o644, []byte("a"))
		o, v := options(t, src, dst, "")
		o.Filter = rules(t, c.rules)
		if c.list != "" {
			all, err := filter.ReadList("list", strings.NewReader(c.list), false)
			if err != nil {
				t.Fatal(err)
			}
			if o.Filter, err = filter.New(filter.Options{List: all}); err != nil {
				t.Fatal(err)
			}
		}
		most := uint64(len(c.gone))
		o.Sync = &SyncOptions{Delete: &DeleteOptions{Max: &most}}
		s, err := Copy(t.Context(), o)
		if err != nil || s.Errors > 0 || s.Deleted != most || s.ToDelete != most {
			t.Errorf("%s: %v, %+v\n%s", name, err, s, v)
		}
		there := dst.list(dst.root)
		for _, path := range c.stay {
			if _, ok := there[path]; !ok {
				t.Errorf("%s: %s was deleted", name, path)
			}
		}
		for _, path := range c.gone {
			if _, ok := there[path]; ok {
				t.Errorf("%s: %s stays", name, path)
			}
		}
	}
}
