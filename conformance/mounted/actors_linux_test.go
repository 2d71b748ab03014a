package mounted

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/testkit/expect"
)

// What an actor is, and in which directory it acts.
const (
	actorKind = "NFSBOX_MOUNTED_ACTOR"
	actorDir  = "NFSBOX_MOUNTED_DIR"
)

// actorSize is how much an actor reads or writes.
const actorSize = 4 << 20

// actors are what programs do with a mount: first what prepares it, while the server answers, and then what asks the
// server. Each has a directory of its own, in which is a file "old" that this host has no bytes of.
var actors = []struct {
	kind string
	act  func(dir string) (ask func() error, err error)
}{
	{"reader", func(dir string) (func() error, error) {
		f, err := os.Open(filepath.Join(dir, "old"))
		return func() error {
			n, err := io.Copy(io.Discard, f)
			return whole(n, err)
		}, err
	}},
	{"mmap reader", func(dir string) (func() error, error) {
		f, err := os.Open(filepath.Join(dir, "old"))
		if err != nil {
			return nil, err
		}
		m, err := unix.Mmap(int(f.Fd()), 0, actorSize, unix.PROT_READ, unix.MAP_SHARED)
		return func() error {
			var n int64
			for at := 0; at < len(m); at += 4096 {
				if m[at] == 'o' {
					n += 4096
				}
			}
			return whole(n, nil)
		}, err
	}},
	{"writer", func(dir string) (func() error, error) {
		f, err := os.Create(filepath.Join(dir, "new"))
		return func() error {
			_, err := f.Write(make([]byte, actorSize))
			return errors.Join(err, f.Sync())
		}, err
	}},
	{"closer", func(dir string) (func() error, error) {
		f, err := os.Create(filepath.Join(dir, "new"))
		if err == nil {
			_, err = f.Write(make([]byte, actorSize))
		}
		return func() error { return f.Close() }, err
	}},
	{"locker", func(dir string) (func() error, error) {
		f, err := os.OpenFile(filepath.Join(dir, "old"), os.O_RDWR, 0)
		return func() error { return record(f, unix.F_WRLCK) }, err
	}},
	{"lock holder", func(dir string) (func() error, error) {
		f, err := os.OpenFile(filepath.Join(dir, "old"), os.O_RDWR, 0)
		if err == nil {
			err = record(f, unix.F_WRLCK)
		}
		return func() error { return record(f, unix.F_UNLCK) }, err
	}},
	{"lister", func(dir string) (func() error, error) {
		return func() error {
			list, err := os.ReadDir(filepath.Join(dir, "sub"))
			if err == nil && len(list) != 1 {
				err = fmt.Errorf("%d names", len(list))
			}
			return err
		}, nil
	}},
	{"maker", func(dir string) (func() error, error) {
		return func() error { return os.Mkdir(filepath.Join(dir, "made"), 0o755) }, nil
	}},
}

// record asks for a lock of fcntl(2), which is the process's, and waits for it.
func record(f *os.File, typ int16) error {
	return unix.FcntlFlock(f.Fd(), unix.F_SETLKW, &unix.Flock_t{Type: typ})
}

func whole(n int64, err error) error {
	if err == nil && n != actorSize {
		err = fmt.Errorf("%d bytes of %d", n, actorSize)
	}
	return err
}

// prepare makes, on the server, what actors find in their directory.
func prepare(t *testing.T, dir string) {
	t.Helper()
	makeDir(t, dir, "sub", "there")
	expect.OK(t, os.WriteFile(filepath.Join(dir, "old"), []byte(strings.Repeat("o", actorSize)), 0o644))
}

// act is what the process of an actor does: it says "ready", waits for a line, asks, and says how that went.
func act(kind string) int {
	for _, a := range actors {
		if a.kind != kind {
			continue
		}
		ask, err := a.act(os.Getenv(actorDir))
		if err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println("ready")
		if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
			return 1
		}
		fmt.Println("done:", ask())
		return 0
	}
	return 1
}

// actor is the process of one.
type actor struct {
	kind  string
	cmd   *exec.Cmd
	in    io.Writer
	lines chan string // that it says; closed with its stdout
	ended chan struct{}
}

// begin begins an actor, and waits until it is ready.
func begin(t *testing.T, kind, dir string) *actor {
	t.Helper()
	self, err := os.Executable()
	expect.OK(t, err)
	a := &actor{kind: kind, cmd: exec.Command(self), lines: make(chan string, 2), ended: make(chan struct{})}
	a.cmd.Env = append(os.Environ(), actorKind+"="+kind, actorDir+"="+dir)
	a.in, err = a.cmd.StdinPipe()
	expect.OK(t, err)
	r, w, err := os.Pipe()
	expect.OK(t, err)
	a.cmd.Stdout = w
	err = errors.Join(a.cmd.Start(), w.Close())
	expect.OK(t, err)
	go func() {
		defer close(a.lines)
		for s := bufio.NewScanner(r); s.Scan(); {
			a.lines <- s.Text()
		}
		_ = r.Close() // it was read
	}()
	go func() {
		defer close(a.ended)
		_ = a.cmd.Wait() // it may be killed
	}()
	t.Cleanup(a.kill)
	if says := a.says(); says != "ready" {
		t.Fatalf("the %s says %q", kind, says)
	}
	return a
}

// says is what it says next; nothing, if that does not come.
func (a *actor) says() string {
	select {
	case line := <-a.lines:
		return line
	case <-time.After(patience):
		return "nothing"
	}
}

// ask has it ask the server.
func (a *actor) ask() { _, _ = io.WriteString(a.in, "\n") } // it may have been killed

func (a *actor) kill() { _ = a.cmd.Process.Kill() } // it may have ended
