//go:build linux

package outsider

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestCopyMeansWhatCpMeans runs the same copies by cp(1) and by the command. Both
// succeed, and leave the same names with the same contents, or both refuse, and
// leave what cp(1) leaves or what was there before. The command may refuse more: to
// merge two directories of one name.
func TestCopyMeansWhatCpMeans(t *testing.T) {
	cp, err := exec.LookPath("cp")
	if err != nil {
		t.Skipf("NOT TESTED beside cp(1): %v", err)
	}
	b := newBox(t)
	for i, args := range [][]string{
		{"f1", "new"},
		{"f1", "f2"},
		{"f1", "dir"},
		{"f1", "dir/"},
		{"f1", "absent/"},
		{"f1", "f2", "dir"},
		{"f1", "f2", "new"},
		{"f1", "f2", "exist"},
		{"f1", "missing", "dir"},
		{"f1", "absent/new"},
		{"f1", "f1"},
		{"a/x", "b/x", "dir"},
		{"-r", "a", "new"},
		{"-r", "a", "dir"},
		{"-r", "a/", "dir/"},
		{"-r", "a", "b", "new"},
		{"-r", "a", "b", "dir"},
		{"-r", "a", "f1"},
		{"-r", "a", "b", "f1"},
		{"-r", "a", "a/sub"},
		{"-r", "a", "a"},
		{"-r", "link", "new"},
		{"f2", "link"},
		{"f1", "link"},
		{"f2", "far"},
		{"f2", "far/"},
		{"-r", "f1", "a", "dir"},
		{"-r", "clash/a", "a", "dir"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			b := *b
			b.T = t
			theirs, ours := b.path("theirs", string(rune('a'+i))), b.path("ours", string(rune('a'+i)))
			b.cpTree(theirs)
			b.cpTree(ours)
			their := exec.Command(cp, args...)
			their.Dir = theirs
			theirOut, theirErr := their.CombinedOutput()
			cmd := b.command(append([]string{"cp"}, args...)...)
			cmd.Dir = ours
			r := b.finish(cmd)
			stricter := args[len(args)-2] == "a" && args[1] == "clash/a"
			if (theirErr == nil) != (r.status == 0) && !stricter {
				t.Errorf("exit status %d; cp(1): %v\n%s\n%s", r.status, theirErr, r.stderr, theirOut)
			}
			pristine := b.path("pristine", string(rune('a'+i)))
			b.cpTree(pristine)
			if r.status != 0 && (stricter || strings.Join(b.names(ours), "\n") == strings.Join(b.names(pristine), "\n")) {
				theirs = ours
			}
			b.sameText(theirs, ours)
		})
	}
}

// cpTree makes what the copies are tried on.
func (b *box) cpTree(dir string) {
	b.Helper()
	for name, text := range map[string]string{
		"f1": "one", "f2": "two", "exist": "precious", "a/x": "a's x", "a/deep/y": "a's y", "b/x": "b's x", "clash/a/z": "another a",
	} {
		b.write(filepath.Join(dir, name), text)
	}
	b.no(os.Mkdir(filepath.Join(dir, "dir"), 0o755))
	b.no(os.Symlink("f1", filepath.Join(dir, "link")))
	b.no(os.Symlink(filepath.Join(dir, "b", "x"), filepath.Join(dir, "far")))
}

// sameText compares names and contents of two trees, and no more: plain cp(1)
// keeps neither times nor modes.
func (b *box) sameText(want, got string) {
	b.Helper()
	left, right := b.names(want), b.names(got)
	if strings.Join(left, "\n") != strings.Join(right, "\n") {
		b.Fatalf("names of cp(1) %q\nours           %q", left, right)
	}
	for _, name := range left {
		l, err := os.Lstat(filepath.Join(want, name))
		b.no(err)
		r, err := os.Lstat(filepath.Join(got, name))
		b.no(err)
		if l.Mode().Type() != r.Mode().Type() {
			b.Errorf("%s is a %v, by cp(1) a %v", name, r.Mode().Type(), l.Mode().Type())
		}
		if l.Mode().IsRegular() && b.text(filepath.Join(want, name)) != b.text(filepath.Join(got, name)) {
			b.Errorf("%s holds %q, by cp(1) %q", name, b.text(filepath.Join(got, name)), b.text(filepath.Join(want, name)))
		}
	}
}

// TestJobWhoseDestinationHasGone: the second run of a job finds its DEST gone. It
// writes nowhere else.
func TestJobWhoseDestinationHasGone(t *testing.T) {
	b := newBox(t)
	b.write(b.path("src", "f"), "new")
	b.no(os.MkdirAll(b.path("out", "dest"), 0o755))
	b.write(b.path("out", "src", "f"), "somebody else's") // of the source's name, beside DEST
	b.must(0, "cp", "-r", "--job", "j", b.path("src"), b.path("out", "dest"))
	b.no(os.RemoveAll(b.path("out", "dest")))
	r := b.run("cp", "-r", "--job", "j", b.path("src"), b.path("out", "dest"))
	if r.status == 0 {
		t.Errorf("exit status 0, though DEST has gone\n%s", r.stderr)
	}
	if got := b.text(b.path("out", "src", "f")); got != "somebody else's" {
		t.Errorf("what lies beside DEST now holds %q", got)
	}
	if _, err := os.Lstat(b.path("out", "dest")); err == nil && r.status != 0 {
		t.Error("DEST was made, though the job was refused")
	}
}

// TestJobWithOtherOptions: a job that is run again with other options does what
// they ask, or refuses; it does not pass over what they have not been done for.
func TestJobWithOtherOptions(t *testing.T) {
	b := newBox(t)
	for i := range 3 {
		b.write(b.path("src", string(rune('a'+i))), "text")
	}
	b.must(0, "cp", "-r", "--job", "j", b.path("src"), b.path("dst"))
	r := b.run("cp", "-r", "--json", "--verify", "--job", "j", b.path("src"), b.path("dst"))
	switch {
	case r.status == 1: // another job, it says
	case r.status != 0:
		t.Errorf("exit status %d\n%s", r.status, r.stderr)
	case r.count(b, "verified") != 3:
		t.Errorf("--verify over a finished job verified %d of 3 files\n%s", r.count(b, "verified"), r.stdout)
	}
}

// TestDestinationThatIsTheSource: nothing is made of a copy into itself.
func TestDestinationThatIsTheSource(t *testing.T) {
	b := newBox(t)
	b.write(b.path("srv", "src", "f"), "text")
	s := b.serve(b.path("srv"))
	local, remote := b.path("srv", "src"), s.url+"src"
	for _, pair := range [][2]string{{local, local + "/sub"}, {remote, local + "/sub"}, {local, remote + "/sub"}, {remote, remote + "/sub"}} {
		if r := b.run("cp", "-r", pair[0], pair[1]); r.status == 0 {
			t.Errorf("cp -r %q: exit status 0", pair)
		}
		if got := b.names(local); len(got) != 1 {
			t.Errorf("cp -r %q leaves %q", pair, got)
		}
	}
	// What lies on the way to DEST may have been made before that is found out. There is
	// nothing to go on with.
	b.no(os.MkdirAll(b.path("srv", "src", "d", "e"), 0o755))
	if r := b.run("cp", "-r", "--job", "j", remote, remote+"/d/e/sub"); r.status != 1 || strings.Contains(r.stderr, "to go on") {
		t.Errorf("exit status %d\n%s", r.status, r.stderr)
	}
}

// TestSmallFilesTakeFourCalls: CREATE, WRITE, SETATTR and RENAME are all that a small
// file costs over the network, and what its directories cost is little beside.
func TestSmallFilesTakeFourCalls(t *testing.T) {
	b := newBox(t)
	const files, dirs = 2000, 10
	for i := range files {
		b.write(b.path("src", strconv.Itoa(i%dirs), strconv.Itoa(i)), string(pattern(2048, byte(i))))
	}
	b.no(os.Mkdir(b.path("srv"), 0o755))
	s := b.serve(b.path("srv"))
	r := b.must(0, "cp", "-r", "--json", b.path("src"), s.url+"dst")
	if calls := r.count(b, "rpcs"); calls > 4*files+20*dirs {
		t.Errorf("%d calls for %d files", calls, files)
	} else {
		t.Logf("%d calls for %d files in %d directories", calls, files, dirs)
	}
	b.same(b.path("src"), b.path("srv", "dst"))
}

// TestMissingHasOneStatus: that nothing is there is told with one status, however much of the
// path is missing, by every command and on either side of the network.
func TestMissingHasOneStatus(t *testing.T) {
	b := newBox(t)
	b.write(b.path("srv", "f"), "text")
	s := b.serve(b.path("srv"), "--export", "/e")
	for _, at := range []string{s.url, b.path("srv") + "/"} {
		for _, name := range []string{"missing", "missing/x", "missing/x/y"} {
			path := at + name
			runs := [][]string{{"cp", path, b.path("to")}, {"cp", "-r", path, b.path("to")}, {"verify", path, b.path("srv")}, {"verify", b.path("srv"), path}}
			if at == s.url {
				runs = append(runs, []string{"ls", path}, []string{"stat", path}, []string{"cat", path})
			}
			if name != "missing" {
				runs = append(runs, []string{"cp", b.path("srv", "f"), path})
			}
			for _, args := range runs {
				if r := b.run(args...); r.status != 2 || !strings.Contains(r.stderr, "no such file") {
					t.Errorf("%q: exit status %d\n%s", args, r.status, r.stderr)
				}
			}
		}
	}
}
