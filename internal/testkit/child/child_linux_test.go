package child_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/child"
)

// TestThreadEnds: a process outlives the thread on which somebody asked for it.
func TestThreadEnds(t *testing.T) {
	cmd := exec.Command("sh", "-c", "trap 'echo terminated; exit' TERM; echo up; read line; echo $line")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }() // it was read
	cmd.Stdout = w
	out := bufio.NewReader(r)

	type begun struct {
		thread int
		ended  <-chan struct{}
		err    error
	}
	c, end := make(chan begun), make(chan struct{})
	var start func()
	start = func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine
		if syscall.Gettid() == os.Getpid() {
			go start() // on another: the first thread of a process never ends
			<-t.Context().Done()
			return
		}
		ended, err := child.Start(cmd, syscall.SIGTERM)
		c <- begun{syscall.Gettid(), ended, errors.Join(err, w.Close())}
		<-end
	}
	go start()
	b := <-c
	if b.err != nil {
		t.Fatal(b.err)
	}
	expect := func(want string) {
		t.Helper()
		if got, err := out.ReadString('\n'); err != nil || got != want+"\n" {
			t.Fatalf("it says %q, %v", got, err)
		}
	}
	expect("up")
	close(end)
	for late := time.Now().Add(30 * time.Second); gone(b.thread) == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatal("the thread does not end")
		}
	}
	if _, err := io.WriteString(in, "still here\n"); err != nil {
		t.Fatal(err)
	}
	expect("still here")
	<-b.ended
	if s := cmd.ProcessState.String(); s != "exit status 0" {
		t.Error(s)
	}
}

// gone is an error when a thread of this process has ended.
func gone(thread int) error {
	_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", thread))
	return err
}

// TestNoProgram: what cannot be started is no process, and nothing is left of it.
func TestNoProgram(t *testing.T) {
	ended, err := child.Start(exec.Command("/nonexistent"), syscall.SIGTERM)
	if err == nil {
		t.Error("started")
	}
	<-ended
}
