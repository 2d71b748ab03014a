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
