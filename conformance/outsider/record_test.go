//go:build linux

package outsider

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// TestNewRecordInUse: another process has the lock of a job that has done nothing yet, as when
// both were started at once. This one writes nothing, neither for the job nor at DEST.
func TestNewRecordInUse(t *testing.T) {
	b := newBox(t)
	b.write(b.path("src", "f"), "text")
	dir := b.path(".state", "nfsbox", "jobs", "j")
	b.write(filepath.Join(dir, "copied"), "")
	f, err := os.Open(filepath.Join(dir, "copied"))
	b.no(err)
	defer func() { b.no(f.Close()) }()
	b.no(syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
	if r := b.must(1, "cp", "-r", "--job", "j", b.path("src"), b.path("dst")); !strings.Contains(r.stderr, fmt.Sprintf("in use by another run, process %d", os.Getpid())) {
		t.Errorf("it does not say who has the record:\n%s", r.stderr)
	}
	if names := b.names(dir); !slices.Equal(names, []string{"copied"}) || b.text(filepath.Join(dir, "copied")) != "" {
		t.Errorf("the job's directory has %q", names)
	}
	if exists(b.path("dst")) {
		t.Error("DEST was made")
	}
}

// TestJobsBegunAtOnce: two commands begin one new job at once. One of them copies; the other
// waits for that, or is refused. Later the job goes on.
func TestJobsBegunAtOnce(t *testing.T) {
	b := newBox(t)
	b.alike(b.path("src"), 20, 1000)
	for i := range 20 {
		dst := b.path(fmt.Sprint("dst", i))
		args := []string{"cp", "-r", "--json", "--job", fmt.Sprint("j", i), b.path("src"), dst}
		first, second := b.begin(args...), b.begin(args...)
		for _, r := range []*running{first, second} {
			if status := r.status(); status != 0 && (status != 1 || !strings.Contains(r.out.String()+r.err.String(), "in use by another run")) {
				t.Errorf("exit status %d\n%s", status, r.err)
			}
		}
		if r := b.must(0, args...); r.count(b, "skipped") != 20 {
			t.Errorf("nothing was left to be copied: %s", r.stdout)
		}
		b.same(b.path("src"), dst)
	}
}

// TestRecordIsPipe: what stands in for a job's files is a pipe that nobody writes to. The job
// does not wait, and refuses it where it needs the file. Only people read "places".
func TestRecordIsPipe(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"copied": 1, "target": 1, "places": 0} {
		b := newBoxAlone(t)
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
