//go:build linux

package outsider

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// elsewhere moves a directory away, and makes an empty one in its place, as where a file system
// is not mounted any more.
func (b *box) elsewhere(dir string) {
	b.Helper()
	b.no(os.Rename(dir, dir+".away"))
	b.no(os.Mkdir(dir, 0o755))
}

// TestJobOfAnotherSource: the directory SOURCE of a job is not the one that it was. The job copies
// nothing, until it is told to, or the directory is back.
func TestJobOfAnotherSource(t *testing.T) {
	for _, where := range []string{"local", "server"} {
		t.Run(where, func(t *testing.T) {
			b := newBox(t)
			src := b.path("srv", "src")
			b.write(b.path("srv", "src", "f"), "text")
			source := src
			if where == "server" {
				source = b.serve(b.path("srv")).url + "src"
			}
			args := []string{"cp", "-r", "--job=j", source, b.path("copy")}
			b.must(0, args...)
			b.must(0, args...)
			b.elsewhere(src)
			if r := b.must(4, args...); !strings.Contains(r.stderr, "is not the directory that it was") || !strings.Contains(r.stderr, "--other-source") {
				t.Errorf("it says\n%s", r.stderr)
			}
			b.no(os.Remove(src))
			b.no(os.Rename(src+".away", src))
			b.must(0, args...)
			b.elsewhere(src)
			b.write(b.path("srv", "src", "g"), "other")
			b.must(4, args...)
			b.must(0, append(args, "--other-source")...)
			b.must(0, args...) // from now on it is that one
			if b.text(b.path("copy", "g")) != "other" || b.text(b.path("copy", "f")) != "text" {
				t.Error("the copy has not got both")
			}
		})
	}
	b := newBox(t)
	b.must(1, "cp", "-r", "--other-source", b.dir, b.path("copy"))
}

// TestInterruptedOfAnotherSource: the source of a copy that was interrupted is another directory
// when the same command is run again.
func TestInterruptedOfAnotherSource(t *testing.T) {
	b := newBox(t)
	again, _ := b.halfCopy(syscall.SIGKILL)
	have := len(b.names(b.path("copy")))
	b.elsewhere(b.path("srv", "export"))
	if r := b.must(4, again...); !strings.Contains(r.stderr, "is not the directory that it was") || !strings.Contains(r.stderr, "--no-resume") {
		t.Errorf("it says\n%s", r.stderr)
	}
	if n := len(b.names(b.path("copy"))); n != have {
		t.Errorf("there were %d names, and are %d", have, n)
	}
	b.no(os.Remove(b.path("srv", "export")))
	b.no(os.Rename(b.path("srv", "export.away"), b.path("srv", "export")))
	b.must(0, again...)
	b.same(b.path("srv", "export"), b.path("copy"))
}
