//go:build linux

package outsider

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestIntoItselfMakesNothing: a copy into its own source is refused before anything is made, on
// any combination of sides, however deep DEST lies, and by any way to it.
func TestIntoItselfMakesNothing(t *testing.T) {
	for _, sides := range []string{"local to local", "local to nfs", "nfs to local", "nfs to nfs"} {
		t.Run(sides, func(t *testing.T) {
			b := newBox(t)
			b.write(b.path("srv", "a", "b", "f"), "text")
			b.write(b.path("srv", "a", "b", "c", "d", "g"), "text")
			b.no(os.Symlink("a/b/c", b.path("srv", "link")))
			s := b.serve(b.path("srv"))
			from, to, _ := strings.Cut(sides, " to ")
			at := map[string]string{"local": b.path("srv") + "/", "nfs": s.url}
			state := func() string {
				var all strings.Builder
				for _, name := range b.names(b.path("srv")) {
					all.WriteString(name + " " + b.mtime(b.path("srv", name)).String() + "\n")
				}
				return all.String()
			}
			before := state()
			for _, dest := range []string{"a", "a/n", "a/b", "a/b/n", "a/b/c/d", "a/b/c/d/n", "a/b/c/d/n/", "link", "link/n", "link/d/n"} {
				for _, source := range []string{"a", "a/.", "a/b/.."} {
					if source == "a/b/.." && from == "nfs" {
						continue // no URL has that
					}
					r := b.run("cp", "-r", at[from]+source, at[to]+dest)
					if r.status != 1 || !strings.Contains(r.stderr, "lies within") {
						t.Errorf("cp -r %s %s: exit status %d\n%s", source, dest, r.status, r.stderr)
					}
					if after := state(); after != before {
						t.Fatalf("cp -r %s %s has made something:\n%s\nbefore:\n%s", source, dest, after, before)
					}
				}
			}
			b.must(0, "cp", "-r", at[from]+"a/b/c", at[to]+"a/n")
			b.must(0, "cp", "-r", at[from]+"a/b/c/", at[to]+"a/b/n")
			b.same(b.path("srv", "a", "b", "c"), b.path("srv", "a", "b", "n"))
		})
	}
}

// TestIntoItselfWhereNothingMayBeMade: the directories above DEST belong to another user, so that
// only DEST shows what it is.
func TestIntoItselfWhereNothingMayBeMade(t *testing.T) {
	root(t, "to be two users")
	b := newBox(t)
	b.write(b.path("srv", "a", "b", "f"), "text")
	b.no(os.Mkdir(b.path("srv", "a", "b", "mine"), 0o755))
	b.no(os.Chown(b.path("srv", "a", "b", "mine"), 65534, 65534))
	s := b.serve(b.path("srv"))
	before := strings.Join(b.names(b.path("srv")), "\n")
	for _, source := range []string{b.path("srv") + "/a", s.url + "a?uid=65534&gid=65534"} {
		for _, dest := range []string{b.path("srv") + "/a/b/mine/n", s.url + "a/b/mine/n?uid=65534&gid=65534"} {
			r := b.finish(b.asNobody("cp", "-r", source, dest))
			if after := strings.Join(b.names(b.path("srv")), "\n"); after != before || r.status != 1 {
				t.Errorf("cp -r %s %s: exit status %d\n%s\n%s", source, dest, r.status, after, r.stderr)
			}
		}
	}
}

// TestSpecialDestIsNotReplaced: cp(1) writes into a device, a pipe or a socket that is named. A copy
// neither does so nor replaces it. In a tree, names are those of the source.
func TestSpecialDestIsNotReplaced(t *testing.T) {
	b := newBox(t)
	b.write(b.path("f"), "text")
	at := func(name string) string { return b.path("srv", name) }
	b.no(os.MkdirAll(at("into"), 0o755))
	b.no(syscall.Mkfifo(at("pipe"), 0o644))
	b.no(syscall.Mkfifo(at("into/f"), 0o644))
	b.no(os.Symlink("pipe", at("link")))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: at("socket"), Net: "unix"})
	b.no(err)
	defer func() { _ = l.Close() }()
	dests := []string{"pipe", "socket", "into", "into/f", "link"}
	if err := syscall.Mknod(at("null"), syscall.S_IFCHR|0o644, 1<<8|3); err == nil {
		dests = append(dests, "null")
	}
	types := func() string {
		var all strings.Builder
		for _, name := range b.names(b.path("srv")) {
			info, err := os.Lstat(at(name))
			b.no(err)
			all.WriteString(name + " " + info.Mode().String() + "\n")
		}
		return all.String()
	}
	before := types()
	s := b.serve(b.path("srv"))
	for _, place := range []string{b.path("srv") + "/", s.url} {
		for _, dest := range dests {
			r := b.run("cp", b.path("f"), place+dest)
			if r.status != 1 || !strings.Contains(r.stderr, "neither replaced nor written into") {
				t.Errorf("%s%s: exit status %d\n%s", place, dest, r.status, r.stderr)
			}
		}
	}
	if after := types(); after != before {
		t.Errorf("something has changed:\n%s\nbefore:\n%s", after, before)
	}
	b.write(b.path("tree", "f"), "text")
	b.must(0, "cp", "-r", b.path("tree")+"/.", b.path("srv", "into"))
	if got := b.text(at("into/f")); got != "text" {
		t.Errorf("in a tree the pipe was not replaced: %q", got)
	}
}

// TestDestKeepsItsTime: a DEST that was there has its mtime after a copy that has changed none of
// its names, and another after one that has.
func TestDestKeepsItsTime(t *testing.T) {
	b := newBox(t)
	b.write(b.path("src", "dir", "f"), "text")
	b.no(os.MkdirAll(b.path("empty"), 0o755))
	b.no(os.MkdirAll(b.path("srv", "d"), 0o755))
	s := b.serve(b.path("srv"))
	old := b.before()
	for _, place := range []string{b.path("srv") + "/d", s.url + "d"} {
		for _, c := range []struct {
			source  string
			changes bool
		}{{"empty/.", false}, {"src/.", true}, {"src/.", false}, {"src/dir/.", true}} {
			b.no(os.Chtimes(b.path("srv", "d"), old, old))
			b.must(0, "cp", "-r", b.path(c.source[:len(c.source)-2])+"/.", place)
			if now := b.mtime(b.path("srv", "d")); now.Equal(old) == c.changes {
				t.Errorf("cp -r %s %s: DEST has the time %v", c.source, place, now)
			}
		}
		b.no(os.RemoveAll(b.path("srv", "d")))
		b.no(os.Mkdir(b.path("srv", "d"), 0o755))
	}
}

// TestKilledFileCopy: the copy of a file is killed. The same command removes the temporary that it
// has left, and no other one does.
func TestKilledFileCopy(t *testing.T) {
	b := newBox(t)
	b.write(b.path("f"), string(pattern(8<<20, 1)))
	b.no(os.Mkdir(b.path("srv"), 0o755))
	p := b.slowDisk(b.serve(b.path("srv")))
	temps := func() []string {
		found, err := filepath.Glob(b.path("srv", ".nfsbox-*"))
		b.no(err)
		return found
	}
	for _, dest := range []string{"", "g"} {
		args := []string{"cp", b.path("f"), p.url() + dest}
		r := b.begin(args...)
		status := b.dying(r, b.path("srv"), func() {}, syscall.SIGKILL)
		left := temps()
		if status != -1 || len(left) != 1 {
			t.Fatalf("exit status %d, and %q is left", status, left)
		}
		other := b.path("srv", ".nfsbox-0123456789abcdef.tmp") // as of another copy
		b.write(other, "another's")
		b.must(0, "cp", b.path("f"), p.url()+"h")
		if now := temps(); len(now) != 2 {
			t.Errorf("another command has left %q of %q", now, left)
		}
		b.must(0, args...)
		if now := temps(); len(now) != 1 || now[0] != other {
			t.Errorf("the same command has left %q", now)
		}
		b.no(os.Remove(other))
	}
	if list := b.unfinished(); len(list) > 0 {
		t.Errorf("records are left: %q", list)
	}
}

// TestInterruptedFileCopy: the copy of a file is interrupted while its server does not answer. It
// says that the same command removes what it has left, and that does.
func TestInterruptedFileCopy(t *testing.T) {
	heeds(t, os.Interrupt)
	b := newBox(t)
	b.write(b.path("f"), string(pattern(8<<20, 1)))
	b.no(os.Mkdir(b.path("srv"), 0o755))
	s := b.serve(b.path("srv"))
	args := []string{"cp", b.path("f"), b.slowDisk(s).url() + "g"}
	r := b.begin(args...)
	status := b.dying(r, b.path("srv"), func() { s.signal(syscall.SIGSTOP) }, os.Interrupt)
	s.signal(syscall.SIGCONT)
	if text := r.err.String(); status != 130 || !strings.Contains(text, "the same command removes them") {
		t.Errorf("exit status %d\n%s", status, text)
	}
	b.must(0, args...)
	if names := b.names(b.path("srv")); len(names) != 1 {
		t.Errorf("it has left %q", names)
	}
}
