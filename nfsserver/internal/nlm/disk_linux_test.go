package nlm

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/proto/nlm4"
)

// holdFile names the file that a process of the test locks; see TestMain.
const holdFile = "NLM_TEST_HOLD"

func TestMain(m *testing.M) {
	if path := os.Getenv(holdFile); path != "" {
		if err := hold(path); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// hold locks a file as any program does, says so, and keeps it until its input
// ends.
func hold(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLKW, &unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}); err != nil {
		return err
	}
	fmt.Println("locked")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// TestProcess has a process of the server's host and a client contend for a file
// on the disk.
func TestProcess(t *testing.T) {
	dir := t.TempDir()
	fs, err := localfs.New(dir, localfs.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := fs.Close(); err != nil {
			t.Error(err)
		}
	})
	l := newLabOf(t, fs, Options{StateDir: t.TempDir()})
	fh := l.file("f", 0o666)
	a := l.guest("a", "192.0.2.11")
	mine := want{fh: fh, svid: 1, off: 10, len: 10, exclusive: true, block: true}

	first := process(t, filepath.Join(dir, "f"))
	first.locked()
	expect(t, "a does not wait", a.lock(want{fh: fh, svid: 1, exclusive: true}), nlm4.NLM4_DENIED)
	expect(t, "a waits", a.lock(mine), nlm4.NLM4_BLOCKED)
	var res nlm4.Nlm4Testres
	a.call(nlm4.NLMPROC4_TEST, &nlm4.Nlm4Testargs{Alock: a.alock(mine)}, &res)
	if res.TestStat.Stat != nlm4.NLM4_DENIED || !res.TestStat.Holder.Exclusive || len(res.TestStat.Holder.Oh) != 0 {
		t.Errorf("TEST: %+v", res.TestStat)
	}
	first.end()
	select {
	case <-a.grants:
	case <-time.After(time.Minute):
		t.Fatal("the client is not granted the lock that the process has freed")
	}

	second := process(t, filepath.Join(dir, "f"))
	select {
	case <-second.lines:
		t.Fatal("a process locks what the client has locked")
	case <-time.After(100 * time.Millisecond):
	}
	a.state = 3
	a.notify("a")
	second.locked()
	second.end()
}

// child is a process that runs hold.
type child struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.Closer
	lines chan string
}

func process(t *testing.T, path string) *child {
	t.Helper()
	c := &child{t: t, cmd: exec.Command(os.Args[0]), lines: make(chan string, 1)}
	c.cmd.Env = append(os.Environ(), holdFile+"="+path)
	in, err := c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.in = in
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n') // what is cut off is not "locked"
		c.lines <- line
	}()
	t.Cleanup(func() {
		if c.cmd.ProcessState == nil {
			_ = c.cmd.Process.Kill() // the test has failed already
			_ = c.cmd.Wait()
		}
	})
	return c
}

func (c *child) locked() {
	c.t.Helper()
	select {
	case line := <-c.lines:
		if line != "locked\n" {
			c.t.Fatalf("the process says %q", line)
		}
	case <-time.After(time.Minute):
		c.t.Fatal("the process does not get its lock")
	}
}

func (c *child) end() {
	c.t.Helper()
	if err := c.in.Close(); err != nil {
		c.t.Error(err)
	}
	if err := c.cmd.Wait(); err != nil {
		c.t.Error(err)
	}
}
