//go:build linux

package outsider

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestRecordInUse: another process has the job's record locked. The job says which.
func TestRecordInUse(t *testing.T) {
	b := newBox(t)
	b.write(b.path("src", "f"), "text")
	args := []string{"cp", "-r", "--job", "j", b.path("src"), b.path("dst")}
	b.must(0, args...)
	f, err := os.Open(b.path(".state", "nfsbox", "jobs", "j", "copied"))
	b.no(err)
	defer func() { b.no(f.Close()) }()
	b.no(syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
	if r := b.must(1, args...); !strings.Contains(r.stderr, fmt.Sprintf("in use by another run, process %d", os.Getpid())) {
		t.Errorf("it does not say who has the record:\n%s", r.stderr)
	}
}

// TestRecordIsPipe: what stands in for a job's files is a pipe that nobody writes to. The job
// does not wait, and refuses it where it needs the file. Only people read "places".
func TestRecordIsPipe(t *testing.T) {
	for name, status := range map[string]int{"copied": 1, "target": 1, "places": 0} {
		b := newBox(t)
		b.write(b.path("src", "f"), "text")
		dir := b.path(".state", "nfsbox", "jobs", "j")
		b.no(os.MkdirAll(dir, 0o700))
		b.no(syscall.Mkfifo(filepath.Join(dir, name), 0o600))
		if r := b.must(status, "cp", "-r", "--job", "j", b.path("src"), b.path("dst")); status > 0 && !strings.Contains(r.stderr, name+" is not a regular file") {
			t.Errorf("%s: %s", name, r.stderr)
		}
	}
}

// TestDestOnlyWritable: DEST may be written to and not be read, so that the copy's name cannot
// be synced. The command says so, and what to do.
func TestDestOnlyWritable(t *testing.T) {
	root(t, "to copy as a user to a directory that this user may not read")
	b := newBox(t)
	b.write(b.path("f"), "text")
	b.belongs(b.path("inbox"), "", 0, 0o333)
	b.no(os.Chmod(b.path("inbox"), 0o333))
	cmd := b.command("cp", b.path("f"), b.path("inbox"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: alice, Gid: alice}}
	r := b.finish(cmd)
	if r.status != 2 || !strings.Contains(r.stderr, "make it readable") {
		t.Errorf("exit status %d\n%s", r.status, r.stderr)
	}
}
