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
