//go:build linux

package outsider

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestJobOfALinkGoesOn: a job has copied a link to a directory, and DEST, which it has made,
// is one as well. The same command, run again, makes it again, also where the link leads to
// another directory by then, and touches neither of them.
func TestJobOfALinkGoesOn(t *testing.T) {
	b := newBox(t)
	for _, dir := range []string{"t", "u"} {
		b.write(b.path("srv", dir, "f"), dir)
	}
	b.no(os.Symlink("t", b.path("srv", "l")))
	s := b.serve(b.path("srv"))
	for i, at := range []string{b.path("srv") + "/", s.url} {
		name := fmt.Sprint("n", i)
		for _, leads := range []string{"t", "t", "u", "u"} {
			b.no(os.Remove(b.path("srv", "l")))
			b.no(os.Symlink(leads, b.path("srv", "l")))
			b.must(0, "cp", "-r", "--job", name, b.path("srv", "l"), at+name)
			if got, err := os.Readlink(b.path("srv", name)); err != nil || got != leads {
				t.Errorf("the copy at %s leads to %q, want %q: %v", at, got, leads, err)
			}
		}
	}
	// A name that a server has escaped, and arguments behind it.
	for range 2 {
		b.must(0, "cp", "-r", "--job", "odd", b.path("srv", "l"), s.url+"a%20%3F?timeo=600")
	}
	if got, err := os.Readlink(b.path("srv", "a ?")); err != nil || got != "u" {
		t.Errorf("the copy leads to %q: %v", got, err)
	}
	// A pipe replaces the link, too: it did so where that was none to a directory.
	b.no(os.Remove(b.path("srv", "l")))
	b.no(syscall.Mkfifo(b.path("srv", "l"), 0o644))
	b.must(0, "cp", "-r", "--job", "n0", b.path("srv", "l"), b.path("srv", "n0"))
	if info, err := os.Lstat(b.path("srv", "n0")); err != nil || info.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("the copy is %v: %v", info, err)
	}
	for _, dir := range []string{"t", "u"} {
		if names := b.names(b.path("srv", dir)); len(names) != 1 || b.text(b.path("srv", dir, "f")) != dir {
			t.Errorf("%s holds %q", dir, names)
		}
	}
}

// TestVerifyTellsOfTheCopyInDest: cp has copied into a DEST that was there. verify, with the same
// arguments, says where the copy may be, and says nothing of it where something could be compared.
func TestVerifyTellsOfTheCopyInDest(t *testing.T) {
	b := newBox(t)
	b.write(b.path("srv", "s", "dir", "f"), "text")
	b.write(b.path("srv", "s", "g"), "text")
	s := b.serve(b.path("srv"))
	for i, at := range []string{b.path("srv") + "/", s.url} {
		d := fmt.Sprint("d", i)
		b.write(b.path("srv", d, "other"), "text")
		b.must(0, "cp", "-r", at+"s", at+d)
		b.told(3, "verify SOURCE DEST/s", []string{"verify", at + "s", at + d}, []string{"verify", at + "s/", at + d + "/"})
		b.must(0, "verify", at+"s", at+d+"/s")
		b.must(0, "cp", at+"s/g", at+d)
		for _, source := range []string{"s", "s/dir", "s/."} {
			if r := b.must(3, "verify", at+source, at+d); strings.Contains(r.stderr, "DEST/") {
				t.Errorf("verify %s %s:\n%s", at+source, at+d, r.stderr)
			}
		}
	}
}

// TestJobWhoseSourceIsNoDirectoryNow: a job has made DEST, a directory, and its SOURCE is
// none any more. It says so, and how a link is followed, and changes nothing.
func TestJobWhoseSourceIsNoDirectoryNow(t *testing.T) {
	b := newBox(t)
	b.no(os.MkdirAll(b.path("srv"), 0o755))
	s := b.serve(b.path("srv"))
	for i, at := range []string{b.path("srv") + "/", s.url} {
		from, to := b.path("s"), at+fmt.Sprint("d", i)
		cp := []string{"cp", "-r", "--job", fmt.Sprint("j", i), from, to}
		b.write(b.path("s", "f"), "one")
		b.must(0, cp...)
		b.no(os.Rename(from, b.path("moved")))
		b.write(from, "a file")
		b.told(1, "is a regular file", cp)
		b.no(os.Remove(from))
		b.no(os.Symlink("moved", from))
		before := b.state(b.path("srv"))
		b.told(1, "is a symbolic link", cp)
		if r := b.run(cp...); strings.Contains(r.stderr, "is no directory") || !strings.Contains(r.stderr, "is a directory") || !strings.Contains(r.stderr, from+"/ ") {
			t.Errorf("what is said is not so:\n%s", r.stderr)
		}
		if b.state(b.path("srv")) != before {
			t.Errorf("something has changed:\n%s\nbefore:\n%s", b.state(b.path("srv")), before)
		}
		cp[4] += "/" // as it says
		b.write(b.path("moved", "f"), "changed")
		b.must(0, cp...)
		if got := b.text(b.path("srv", fmt.Sprint("d", i), "f")); got != "changed" {
			t.Errorf("the job has not gone on: %q", got)
		}
		b.no(os.Remove(from))
		b.no(os.RemoveAll(b.path("moved")))
	}
}

// TestJobWhoseLinkIsADirectoryNow: what was a link when a job copied it is a directory now. It is
// not copied to where the copy of the link leads, which was none of the job's, until that is asked for.
func TestJobWhoseLinkIsADirectoryNow(t *testing.T) {
	b := newBox(t)
	b.write(b.path("srv", "t", "f"), "precious")
	s := b.serve(b.path("srv"))
	for i, at := range []string{s.url, b.path("srv") + "/"} {
		name := fmt.Sprint("n", i)
		b.no(os.RemoveAll(b.path("l")))
		b.no(os.Symlink("t", b.path("l")))
		cp := []string{"cp", "-r", "--job", name, b.path("l"), at + name}
		b.must(0, cp...)
		b.no(os.Remove(b.path("l")))
		b.write(b.path("l", "f"), "new")
		b.told(1, name+" is a link to a directory", cp)
		if got := b.text(b.path("srv", "t", "f")); got != "precious" {
			t.Errorf("%s: what the copy leads to is overwritten: %q", at, got)
		}
	}
	cp := []string{"cp", "-r", "--job", "n1", b.path("l"), b.path("srv", "n1") + "/"} // as it says
	b.must(0, cp...)
	if got := b.text(b.path("srv", "t", "f")); got != "new" {
		t.Errorf("the job has not gone on: %q", got)
	}
}

// TestJobOfAFileOntoALinkToADirectory: the link is not followed, as it was none to a directory
// when the job began, and not replaced, as a file is copied through links.
func TestJobOfAFileOntoALinkToADirectory(t *testing.T) {
	b := newBox(t)
	b.write(b.path("f"), "text")
	b.no(os.MkdirAll(b.path("srv", "dir"), 0o755))
	s := b.serve(b.path("srv"))
	for i, at := range []string{b.path("srv") + "/", s.url} {
		name := fmt.Sprint("n", i)
		cp := []string{"cp", "--job", name, b.path("f"), at + name}
		b.must(0, cp...)
		b.no(os.Remove(b.path("srv", name)))
		b.no(os.Symlink("dir", b.path("srv", name)))
		before := b.state(b.path("srv"))
		b.told(1, "is a regular file", cp)
		if b.state(b.path("srv")) != before {
			t.Errorf("something has changed:\n%s\nbefore:\n%s", b.state(b.path("srv")), before)
		}
	}
}
