//go:build linux

package iogate

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// inChild says that the test runs in a process of its own. Called anywhere else,
// it runs the test there, for the sake of what a process cannot take back.
func inChild(t *testing.T) bool {
	t.Helper()
	const variable = "NFSBOX_TEST_CHILD"
	if os.Getenv(variable) == t.Name() {
		return true
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.v", "-test.run", "^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$")
	cmd.Env = append(os.Environ(), variable+"="+t.Name())
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// TestThreads lets a thousand block in system calls that last, of all classes
// and from several exports, and counts threads. They are never given back, so
// that those counted at the end are the most there were.
func TestThreads(t *testing.T) {
	if !inChild(t) {
		return
	}
	const callers, spare = 1000, 16
	g := gate(t, Options{Patience: time.Minute})
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range callers {
		l, c := g.Export(fmt.Sprint(i%3)), Class(i%int(Classes))
		all.Go(func() {
			if err := l.Enter(t.Context(), c, fmt.Sprint(i%7)); err != nil {
				t.Error(err)
				return
			}
			defer l.Leave(c)
			for { // blocks until there is a byte, without the poller's knowing
				if n, err := unix.Read(pipe[0], make([]byte, 1)); n == 1 {
					return
				} else if err != unix.EINTR {
					t.Error(err)
					return
				}
			}
		})
	}
	for g.Snapshot().Inside < DefaultThreads {
		runtime.Gosched()
	}
	for range callers {
		if _, err := unix.Write(pipe[1], []byte{1}); err != nil {
			t.Fatal(err)
		}
	}
	all.Wait()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d threads for %d callers", len(tasks), callers)
	if len(tasks) > DefaultThreads+spare {
		t.Errorf("%d threads, the bound is %d", len(tasks), DefaultThreads)
	}
}

// TestNoRing asks for io_uring where it is forbidden, as in many containers.
func TestNoRing(t *testing.T) {
	for _, errno := range []unix.Errno{unix.EPERM, unix.ENOSYS} {
		t.Run(fmt.Sprint(uint16(errno)), func(t *testing.T) {
			if !inChild(t) {
				return
			}
			forbid(t, unix.SYS_IO_URING_SETUP, errno)
			g := gate(t, Options{Kind: URing})
			if s := g.Snapshot(); s.Kind != Auto || g.Kind() != Auto || s.Asked != URing || !strings.Contains(s.Reason, errno.Error()) {
				t.Errorf("%+v", s)
			}
			l, fd, p := g.Export("e"), file(t, []byte("content")), make([]byte, 7)
			enter(t, l, Read, 1)
			defer l.Leave(Read)
			if n, err := l.Pread(fd, p, 0); n != len(p) || err != nil {
				t.Errorf("read %d, %v", n, err)
			}
		})
	}
}

// TestRingLost forbids it later, when the ring is in use: calls are made all the
// same.
func TestRingLost(t *testing.T) {
	if !inChild(t) {
		return
	}
	g := gate(t, Options{Kind: URing})
	if g.Kind() != URing {
		t.Log("LEFT OUT: ", g.Snapshot().Reason)
		return
	}
	l, fd, p := g.Export("e"), file(t, []byte("content")), make([]byte, 7)
	enter(t, l, Read, 1)
	defer l.Leave(Read)
	for i := range 3 {
		if n, err := l.Pread(fd, p, 0); n != len(p) || err != nil {
			t.Errorf("read %d, %v", n, err)
		}
		if i == 0 {
			forbid(t, unix.SYS_IO_URING_ENTER, unix.EPERM)
		}
	}
}

// forbid makes a system call fail in this process, for good (seccomp(2)).
func forbid(t *testing.T, call uint32, errno unix.Errno) {
	t.Helper()
	const load, equal, ret = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	const allow, fail = 0x7fff0000, 0x00050000 // SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO
	filter := []unix.SockFilter{
		{Code: load, K: 0}, // the call's number
		{Code: equal, K: call, Jf: 1},
		{Code: ret, K: fail | uint32(errno)},
		{Code: ret, K: allow},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if e != 0 {
		t.Fatal(e)
	}
}
