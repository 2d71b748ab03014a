//go:build linux

package fusefs

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/testkit/expect"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs/memfs"
)

// as runs a shell's command as another user, in dir.
func as(t *testing.T, uid uint32, groups []uint32, dir, command string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "cd '"+dir+"' && "+command)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid, Groups: groups}}
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// reach lets other users reach a test's directory.
func reach(t *testing.T, dir string) {
	t.Helper()
	for ; strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
		expect.OK(t, os.Chmod(dir, 0o755))
	}
}

// TestUsers: two users of one mount are told apart, with all their groups, also by what the kernel has in its cache.
func TestUsers(t *testing.T) {
	need.Fuse(t)
	need.Root(t, "a mount for all users")
	served := t.TempDir()
	reach(t, served)
	dir := mount(t, serve(t, served), Options{})
	reach(t, filepath.Dir(dir))
	const ann, ben, team = 10001, 10002, 10009
	for name, uid := range map[string]int{"ann": ann, "ben": ben} {
		expect.OK(t, os.Mkdir(filepath.Join(served, name), 0o700))
		expect.OK(t, os.Chown(filepath.Join(served, name), uid, uid))
	}
	expect.OK(t, os.Mkdir(filepath.Join(served, "team"), 0o770))
	expect.OK(t, errors.Join(os.Chown(filepath.Join(served, "team"), 0, team), syscall.Chmod(filepath.Join(served, "team"), 0o2770)))

	if out, err := as(t, ann, nil, dir, "umask 022; echo secret > ann/open && cat ann/open && stat -c '%u %g %a' ann/open"); err != nil || out != "secret\n10001 10001 644" {
		t.Errorf("ann: %s, %v", out, err)
	}
	// The file is for all to read, and the kernel has seen it; the directory is not.
	for _, command := range []string{"cat ann/open", "ls ann", "cd ann", "stat ann/open", "echo x > ann/new", "echo x >> ann/open", "rm -f ann/open", "mv ann/open ben/", "touch ann/open"} {
		if out, err := as(t, ben, nil, dir, command); err == nil {
			t.Errorf("ben: %s: %s", command, out)
		}
	}
	if out, err := as(t, ann, nil, dir, "cat ann/open"); err != nil || out != "secret" {
		t.Errorf("ann afterwards: %s, %v", out, err)
	}
	// Rights by one of the further groups.
	if out, err := as(t, ann, []uint32{5, team}, dir, "echo ours > team/f && chmod 660 team/f && stat -c %g team/f"); err != nil || out != "10009" {
		t.Errorf("ann in the team: %s, %v", out, err)
	}
	if out, err := as(t, ben, []uint32{team}, dir, "cat team/f && echo more >> team/f && rm team/f"); err != nil || out != "ours" {
		t.Errorf("ben in the team: %s, %v", out, err)
	}
	if out, err := as(t, ben, nil, dir, "ls team"); err == nil {
		t.Errorf("ben without the team: %s", out)
	}
	// Modes that the server judges, not the kernel: what may only be executed, what is read-only to its owner.
	expect.OK(t, os.WriteFile(filepath.Join(served, "run"), []byte("#!/bin/true\n"), 0o711))
	if out, err := as(t, ben, nil, dir, "test -x run && ! test -r run && ! cat run"); err != nil {
		t.Errorf("what may only be executed: %s, %v", out, err)
	}
	if out, err := as(t, ann, nil, dir+"/ann", "echo 1 > ro && chmod 400 ro && ! echo 2 > ro"); err != nil {
		t.Errorf("read-only: %s, %v", out, err)
	}
}

// TestLocks: locks that the file system has hold between mounts, by process (fcntl) and by open (flock); what waits gets
// its lock, and a close frees those of its process.
func TestLocks(t *testing.T) {
	need.Fuse(t)
	tree := memfs.New(memfs.Options{Mode: 0o777})
	a, b := mountFS(t, tree, Options{}), mountFS(t, tree, Options{})
	name := "f"
	expect.OK(t, os.WriteFile(filepath.Join(a, name), []byte("0123456789"), 0o666))
	open := func(dir string) *os.File {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR, 0)
		expect.OK(t, err)
		return f
	}
	fa, fb := open(a), open(b)
	lock := func(f *os.File, typ int16, start, length int64) error {
		l := unix.Flock_t{Type: typ, Start: start, Len: length}
		return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &l)
	}
	expect.OK(t, lock(fa, unix.F_WRLCK, 2, 3))
	expect.Errno(t, lock(fb, unix.F_WRLCK, 4, 1), syscall.EAGAIN)
	expect.Errno(t, lock(fb, unix.F_RDLCK, 0, 0), syscall.EAGAIN)
	expect.OK(t, lock(fb, unix.F_WRLCK, 5, 0))
	l := unix.Flock_t{Type: unix.F_RDLCK, Start: 0, Len: 0}
	expect.OK(t, unix.FcntlFlock(fb.Fd(), unix.F_OFD_GETLK, &l))
	if l.Type != unix.F_WRLCK || l.Start != 2 || l.Len != 3 {
		t.Errorf("held is %+v", l)
	}
	expect.OK(t, lock(fa, unix.F_UNLCK, 0, 0))
	expect.OK(t, lock(fb, unix.F_WRLCK, 0, 0))
	expect.Errno(t, lock(fa, unix.F_RDLCK, 9, 1), syscall.EAGAIN)
	expect.OK(t, fb.Close()) // frees them
	expect.Soon(t, "the lock", func() bool { return lock(fa, unix.F_WRLCK, 0, 0) == nil })
	expect.OK(t, lock(fa, unix.F_UNLCK, 0, 0))

	fb = open(b)
	expect.OK(t, syscall.Flock(int(fa.Fd()), syscall.LOCK_EX))
	expect.Errno(t, syscall.Flock(int(fb.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
	got := make(chan error, 1)
	go func() { got <- syscall.Flock(int(fb.Fd()), syscall.LOCK_EX) }()
	expect.OK(t, fa.Close()) // frees it: the waiting process gets it
	expect.OK(t, <-got)
	expect.OK(t, fb.Close())
}

// TestLocalLocks: with local_lock, and where the file system has none, locks are the kernel's.
func TestLocalLocks(t *testing.T) {
	need.Fuse(t)
	tree := memfs.New(memfs.Options{Mode: 0o777})
	local := Options{LocalPosix: true, LocalFlock: true}
	a, b := mountFS(t, tree, local), mountFS(t, tree, local)
	expect.OK(t, os.WriteFile(filepath.Join(a, "f"), nil, 0o666))
	var files []*os.File
	for _, dir := range []string{a, a, b} {
		f, err := os.Open(filepath.Join(dir, "f"))
		expect.OK(t, err)
		files = append(files, f)
	}
	expect.OK(t, syscall.Flock(int(files[0].Fd()), syscall.LOCK_EX))
	expect.Errno(t, syscall.Flock(int(files[1].Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
	expect.OK(t, syscall.Flock(int(files[2].Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
	for _, f := range files {
		expect.OK(t, f.Close())
	}
}
