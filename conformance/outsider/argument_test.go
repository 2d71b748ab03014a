//go:build linux

package outsider

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// told fails unless each run ends with the status, and says why.
func (b *box) told(status int, why string, runs ...[]string) {
	b.Helper()
	for _, args := range runs {
		if r := b.run(args...); r.status != status || !strings.Contains(r.stderr, why) {
			b.Errorf("%q: exit status %d, want %d and %q\n%s", args, r.status, status, why, r.stderr)
		}
	}
}

// uses are the commands with path wherever they take one. file is one that is there.
func (b *box) uses(path, file string) [][]string {
	return [][]string{
		{"cp", path, b.path("new")}, {"cp", "-r", path, b.path("new")}, {"cp", file, path},
		{"verify", path, file}, {"verify", file, path},
		{"ls", path}, {"stat", path}, {"cat", path},
	}
}

// TestPathThroughFileHasOneStatus: a path that needs a directory where a file is has one
// status, in whatever way it needs it, by every command and on either side of the network.
func TestPathThroughFileHasOneStatus(t *testing.T) {
	b := newBox(t)
	b.write(b.path("srv", "f"), "text")
	b.write(b.path("srv", "g"), "text")
	b.no(os.Symlink("f", b.path("srv", "link")))
	for _, at := range []string{b.path("srv") + "/", b.serve(b.path("srv")).url} {
		for _, end := range []string{"/x", "/x/y", "/", "/."} {
			b.told(2, "not a directory", b.uses(at+"f"+end, b.path("srv", "g"))...)
			b.told(2, "not a directory", b.uses(at+"link"+end, b.path("srv", "g"))...)
		}
	}
	if got := b.text(b.path("srv", "f")); got != "text" {
		t.Errorf("the file holds %q", got)
	}
}

// TestLinkInCirclesHasOneStatus: so has a path that no link ever leads to the end of, and
// the message has the link once.
func TestLinkInCirclesHasOneStatus(t *testing.T) {
	b := newBox(t)
	b.write(b.path("srv", "f"), "text")
	b.no(os.Symlink("loop", b.path("srv", "loop")))
	for _, at := range []string{b.path("srv") + "/", b.serve(b.path("srv")).url} {
		for _, end := range []string{"/", "/x"} {
			b.told(2, "too many levels", b.uses(at+"loop"+end, b.path("srv", "f"))...)
		}
		for _, args := range [][]string{{"ls", at + "loop"}, {"cp", b.path("srv", "f"), at + "loop"}} {
			b.told(2, "too many levels", args)
			if r := b.run(args...); strings.Contains(r.stderr, "loop/loop") {
				t.Errorf("%q:\n%s", args, r.stderr)
			}
		}
	}
}

// TestForbiddenHasOneStatus: what the caller may not see has the status of what is not
// there, and not that of a server that is not there.
func TestForbiddenHasOneStatus(t *testing.T) {
	root(t, "another user's directory is closed to root alone by being another user")
	b := newBox(t)
	b.write(b.path("srv", "closed", "f"), "text")
	b.write(b.path("srv", "g"), "text")
	b.no(os.Chmod(b.path("srv", "closed"), 0o700))
	s := b.serve(b.path("srv"))
	for _, path := range []string{b.path("srv", "closed", "f"), b.path("srv", "closed", "f", "x"), b.path("srv", "closed", "f") + "/"} {
		for _, args := range b.uses(path, b.path("srv", "g")) {
			b.forbidden(args)
		}
	}
	for _, path := range []string{"closed/f", "closed/f/x", "closed/f/"} {
		for _, args := range b.uses(s.url+path+"?uid=65534&gid=65534", b.path("srv", "g")) {
			b.forbidden(args)
		}
	}
}

// TestVerifyTellsWhichSideIsForbidden: of two directories that which is closed is named.
func TestVerifyTellsWhichSideIsForbidden(t *testing.T) {
	root(t, "another user's directory is closed to root alone by being another user")
	b := newBox(t)
	b.no(os.Mkdir(b.path("open"), 0o755))
	b.no(os.Mkdir(b.path("closed"), 0o700))
	for side, args := range map[string][]string{"source": {b.path("closed"), b.path("open")}, "destination": {b.path("open"), b.path("closed")}} {
		if r := b.finish(b.asNobody("verify", args[0], args[1])); r.status != 2 || !strings.Contains(r.stderr, side+": permission denied") {
			t.Errorf("verify %q: exit status %d\n%s", args, r.status, r.stderr)
		}
	}
}

// forbidden runs the command as nobody, who may not see what it names.
func (b *box) forbidden(args []string) {
	b.Helper()
	if r := b.finish(b.asNobody(args...)); r.status != 2 || !strings.Contains(r.stderr, "permission denied") {
		b.Errorf("%q: exit status %d, want 2 and \"permission denied\"\n%s", args, r.status, r.stderr)
	}
}

// TestWorstArgumentDecides: where several arguments fail, each is told, and their order
// does not matter for the status.
func TestWorstArgumentDecides(t *testing.T) {
	b := newBox(t)
	b.no(os.MkdirAll(b.path("to"), 0o755))
	b.no(os.MkdirAll(b.path("dir"), 0o755))
	const dead = "nfs://127.0.0.1:1/dead"
	missing, dir := b.path("missing"), b.path("dir")
	for _, c := range []struct {
		status int
		one    string
		other  string
	}{{4, dead, missing}, {2, dir, missing}, {4, dead, dir}} {
		for _, two := range [][2]string{{c.one, c.other}, {c.other, c.one}} {
			runs := [][]string{{"cp", two[0], two[1], b.path("to")}}
			if c.one == dead && c.other == missing {
				runs = append(runs, []string{"verify", two[0], two[1]}, []string{"ls", two[0], two[1]}, []string{"stat", two[0], two[1]})
			}
			for _, args := range runs {
				b.told(c.status, filepath.Base(two[0]), args)
				b.told(c.status, filepath.Base(two[1]), args)
			}
		}
	}
}

// TestLinkWithSlashIsItsDirectory: a link with a slash, or a slash and a dot, behind it is
// the directory that it leads to, as a SOURCE, a DEST and a side of verify; and ".." behind
// it is where that directory is.
func TestLinkWithSlashIsItsDirectory(t *testing.T) {
	b := newBox(t)
	b.write(b.path("srv", "far", "dir", "sub", "f"), "text")
	b.write(b.path("srv", "far", "g"), "right")
	b.write(b.path("srv", "g"), "wrong")
	b.no(os.Symlink("far/dir", b.path("srv", "link")))
	dir := b.path("srv", "far", "dir")
	for i, at := range []string{b.path("srv") + "/", b.serve(b.path("srv")).url} {
		for j, end := range []string{"/", "/.", "/./"} {
			to := b.path("to", string(rune('a'+i)), string(rune('a'+j)))
			b.no(os.MkdirAll(to, 0o755))
			b.must(0, "cp", "-r", at+"link"+end, to+"/new")
			b.same(dir, to+"/new")
			b.must(0, "verify", at+"link"+end, to+"/new")
			b.must(0, "cp", "-r", at+"link"+end, to+"/new")
			into := to + "/new/link" // under its own name
			if end != "/" {
				into = to + "/new" // its contents
			}
			b.same(dir+"/sub", into+"/sub")
			back := "back" + string(rune('a'+j)) + string(rune('a'+i))
			b.must(0, "cp", "-r", dir, at+back+end)
			b.same(dir, b.path("srv", back))
			b.must(0, "cp", b.path("srv", "g"), at+"link"+end)
			b.no(os.Remove(filepath.Join(dir, "g")))
			b.no(os.Chtimes(dir, b.before(), b.before()))
		}
	}
	if b.must(0, "cp", b.path("srv")+"/link/../g", b.path("g")); b.text(b.path("g")) != "right" {
		t.Errorf("what lies above the directory is %q", b.text(b.path("g")))
	}
	if r := b.must(0, "cat", b.path("srv")+"/link/../g"); r.stdout != "right" {
		t.Errorf("what lies above the directory is %q", r.stdout)
	}
}

// destTree makes what TestDestinationThatIsALink copies, and the links that it copies to. It
// is to be had again and again.
func (b *box) destTree(dir string) {
	b.Helper()
	b.no(os.RemoveAll(filepath.Join(dir, "t")))
	for name, text := range map[string]string{"one": "one", "two": "two", "real/file": "old", "real/dir/f": "old", "tree/f": "new"} {
		b.write(filepath.Join(dir, "t", name), text)
	}
	for name, target := range map[string]string{
		"file": "real/file", "by two": "file", "dir": "real/dir", "none": "absent", "loop": "loop", "to one": "one", "link": "two",
	} {
		b.no(os.Symlink(target, filepath.Join(dir, "t", name)))
	}
}

// TestDestinationThatIsALink: a DEST that is a link means the same on either side of the
// network. The links that are asked for what they lead to stay links, and verify with the
// arguments of cp finds no difference, if the copy is all of DEST.
func TestDestinationThatIsALink(t *testing.T) {
	b := newBox(t)
	b.destTree(b.path("srv"))
	t0 := b.path("srv", "t")
	s := b.serve(b.path("srv"))
	for _, at := range []string{b.path("srv", "t") + "/", s.url + "t/"} {
		for _, c := range []struct {
			from, to string
			status   int
			changed  string // below t
			text     string
			link     string // where to leads afterwards; "": where it led
			became   bool
		}{
			{"one", "file", 0, "real/file", "one", "", true},
			{"one", "by%20two", 0, "real/file", "one", "", true},
			{"one", "dir", 0, "real/dir/one", "one", "", false},
			{"one", "dir/", 0, "real/dir/one", "one", "", false},
			{"tree", "dir", 0, "real/dir/tree/f", "new", "", false},
			{"tree/.", "dir", 0, "real/dir/f", "new", "", false},
			{"link", "dir", 0, "real/dir/link", "two", "", false},
			{"link", "file", 0, "file", "two", "two", true},
			{"link", "none", 0, "none", "two", "two", true},
			{"link", "loop", 0, "loop", "two", "two", true},
			{"link", "link", 1, "", "", "", false},
			{"one", "none", 1, "", "", "", false},
			{"one", "loop", 2, "", "", "", false},
			{"one", "to%20one", 1, "", "", "", false},
			{"tree", "file", 2, "", "", "", false},
			{"tree", "none", 2, "", "", "", false},
		} {
			from, to := c.from, c.to
			if at != s.url+"t/" {
				to = strings.ReplaceAll(to, "%20", " ")
			}
			b.destTree(b.path("srv"))
			name := strings.TrimSuffix(strings.ReplaceAll(c.to, "%20", " "), "/")
			led, err := os.Readlink(filepath.Join(t0, name))
			b.no(err)
			before := b.state(t0)
			r := b.run("cp", "-r", at+from, at+to)
			if r.status != c.status {
				t.Errorf("cp -r %s %s: exit status %d, want %d\n%s", at+from, at+to, r.status, c.status, r.stderr)
			}
			if c.link == "" {
				c.link = led
			}
			if leads, err := os.Readlink(filepath.Join(t0, name)); err != nil || leads != c.link {
				t.Errorf("cp -r %s %s: %s leads to %q, want %q: %v", at+from, at+to, name, leads, c.link, err)
			}
			if c.changed == "" && b.state(t0) != before {
				t.Errorf("cp -r %s %s has changed something:\n%s\nbefore:\n%s", at+from, at+to, b.state(t0), before)
			}
			if c.changed != "" && b.holds(filepath.Join(t0, c.changed)) != c.text {
				t.Errorf("cp -r %s %s: %s holds %q, want %q", at+from, at+to, c.changed, b.holds(filepath.Join(t0, c.changed)), c.text)
			}
			if c.became {
				b.must(0, "cp", "-r", at+from, at+to) // again
				b.must(0, "verify", at+from, at+to)
			}
		}
	}
}

// state is what all names below dir are, and hold.
func (b *box) state(dir string) string {
	b.Helper()
	var all strings.Builder
	for _, name := range b.names(dir) {
		path := filepath.Join(dir, name)
		info, err := os.Lstat(path)
		b.no(err)
		all.WriteString(name + " " + info.Mode().String())
		if !info.IsDir() {
			all.WriteString(" " + b.holds(path))
		}
		all.WriteString("\n")
	}
	return all.String()
}

// holds is a file's text, or a link's target.
func (b *box) holds(path string) string {
	b.Helper()
	if target, err := os.Readlink(path); err == nil {
		return target
	}
	return b.text(path)
}

// TestLinkOutAsDestination: a link that leads out of what is known of the server is not
// replaced by whatever comes: it may be a directory.
func TestLinkOutAsDestination(t *testing.T) {
	b := newBox(t)
	b.write(b.path("f"), "text")
	b.no(os.Symlink("f", b.path("link")))
	b.no(os.MkdirAll(b.path("srv", "in"), 0o755))
	b.no(os.MkdirAll(b.path("far"), 0o755))
	b.no(os.Symlink("../../far", b.path("srv", "in", "out")))
	s := b.serve(b.path("srv"))
	for _, source := range []string{"f", "link"} {
		b.told(2, "name what it leads to", []string{"cp", b.path(source), s.url + "in/out"})
		b.must(0, "cp", b.path(source), b.path("srv", "in", "out")) // here it is known
		if _, err := os.Lstat(b.path("far", source)); err != nil {
			t.Error(err)
		}
	}
}

// TestVerifyComparesWhatCpCopies: verify takes its arguments as cp does, whatever they are
// links to.
func TestVerifyComparesWhatCpCopies(t *testing.T) {
	b := newBox(t)
	b.write(b.path("srv", "real", "f"), "text")
	for name, target := range map[string]string{"file": "real/f", "dir": "real", "none": "absent", "loop": "loop"} {
		b.no(os.Symlink(target, b.path("srv", name)))
	}
	s := b.serve(b.path("srv"))
	for i, at := range []string{b.path("srv") + "/", s.url} {
		for j, name := range []string{"file", "dir", "dir/", "dir/.", "none", "loop", "real"} {
			to := b.path("to" + string(rune('a'+i)) + string(rune('a'+j)))
			b.must(0, "cp", "-r", at+name, to)
			b.must(0, "verify", at+name, to)
		}
		for _, side := range []string{"real/f", "real/"} { // no link is what it leads to
			r := b.run("verify", "--json", at+"file", at+side)
			if r.status != 3 || !strings.Contains(r.stdout, `"kind":"type"`) {
				t.Errorf("verify file %s: exit status %d\n%s%s", side, r.status, r.stdout, r.stderr)
			}
		}
	}
}

// TestLinkAndItsDirectoryAreTwoSources: a link, and the directory that it leads to, have one
// name in DEST. The second is refused, and not passed over as the first.
func TestLinkAndItsDirectoryAreTwoSources(t *testing.T) {
	b := newBox(t)
	b.write(b.path("dir", "f"), "text")
	b.no(os.Symlink("dir", b.path("link")))
	for i, two := range [][2]string{{"link", "link/"}, {"link/", "link"}} {
		to := b.path("to" + string(rune('a'+i)))
		b.no(os.Mkdir(to, 0o755))
		b.told(1, "will not overwrite", []string{"cp", "-r", b.path() + "/" + two[0], b.path() + "/" + two[1], to})
	}
	b.no(os.Mkdir(b.path("once"), 0o755))
	b.must(0, "cp", "-r", b.path("dir"), b.path("dir")+"/", b.path("once")) // one source, given twice
	r := b.must(2, "cp", "-r", "--json", b.path("no"), b.path("neither"), b.path("dir"), b.path("once"))
	if n := r.count(b, "errors"); n != 2 {
		t.Errorf("two sources are missing, and %d are counted\n%s", n, r.stdout)
	}
}

// TestArgumentsAreBytes: a name that is not UTF-8 is taken as it is. The name that such bytes
// are often shown as is another file, which was read, or overwritten, in its place.
func TestArgumentsAreBytes(t *testing.T) {
	b := newBox(t)
	odd, shown := "x\xff", "x\ufffd"
	write := func(name, text string) { b.no(os.WriteFile(b.path(name), []byte(text), 0o644)) }
	read := func(name string) string {
		data, err := os.ReadFile(b.path(name))
		b.no(err)
		return string(data)
	}
	b.no(os.Mkdir(b.path("srv"), 0o755))
	write(odd, "right")
	write(shown, "wrong")
	b.must(0, "cp", b.path(odd), b.path("out"))
	if got := read("out"); got != "right" {
		t.Errorf("copied %q", got)
	}
	if r := b.must(0, "cat", b.path(odd)); r.stdout != "right" {
		t.Errorf("cat: %q", r.stdout)
	}
	write("out", "wrong")
	b.must(3, "verify", b.path(odd), b.path("out"))
	write("new", "new")
	b.must(0, "cp", b.path("new"), b.path(odd))
	if read(odd) != "new" || read(shown) != "wrong" {
		t.Errorf("written to: %q and %q", read(odd), read(shown))
	}
	s := b.serve(b.path("srv"))
	b.must(0, "cp", b.path("new"), s.url+odd)
	if got := read(filepath.Join("srv", odd)); got != "new" {
		t.Errorf("uploaded %q", got)
	}
}
