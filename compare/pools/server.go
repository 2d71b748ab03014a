package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// patience bounds how long a server may take to end.
const patience = 20 * time.Second

// server is an nfsbox that serves.
type server struct {
	cmd *exec.Cmd
	url *url.URL
	log bytes.Buffer // its stderr, complete once it has ended
}

func serve(ctx context.Context, o *options, home, export, kind string) (*server, error) {
	args := []string{"serve", "--listen", "127.0.0.1:0", "--state-dir", filepath.Join(home, "state"), "--io-pool", kind}
	s := &server{cmd: exec.CommandContext(ctx, o.server, append(append(args, o.flags...), export)...)}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	s.cmd.Stderr = &s.log
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		err = errors.Join(err, s.cmd.Wait())
		return nil, fmt.Errorf("%s serves not: %w: %s", o.server, err, s.log.Bytes())
	}
	if s.url, err = url.Parse(strings.TrimSpace(line)); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// stop ends the server, in good order if it will.
func (s *server) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	timer := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() }) // it had its chance
	defer timer.Stop()
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("the server ended: %w: %s", err, s.log.Bytes())
	}
	return nil
}

// note is what the server said of the kind that it was asked for, if that was
// not to be had.
func (s *server) note() string {
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, "is not possible") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// cpu is the seconds of processor time that the server has used.
func (s *server) cpu() float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	_, rest, ok := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if err != nil || !ok || len(f) < 13 {
		return 0
	}
	const tick = 100 // USER_HZ, on every architecture that Linux and Go share
	user, _ := strconv.ParseFloat(f[11], 64)
	system, _ := strconv.ParseFloat(f[12], 64)
	return (user + system) / tick
}

// watch counts the server's threads now and then until its result is called,
// which is the most seen.
func (s *server) watch() func() float64 {
	stop := make(chan struct{})
	most := 0
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", s.cmd.Process.Pid)) // of one that is gone: none
			most = max(most, len(tasks))
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	return func() float64 {
		close(stop)
		wg.Wait()
		return float64(most)
	}
}

// warn says if dir is in memory.
func warn(dir string) error {
	const tmpfs = 0x01021994 // TMPFS_MAGIC
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return err
	}
	if s.Type == tmpfs {
		fmt.Fprintln(os.Stderr, "WARNING: the directory is in memory (tmpfs), and not on a disk: see -dir")
	}
	return nil
}

// tree makes what is served: a directory of files for each client.
func tree(dir string, clients int) error {
	for i := range clients {
		own := filepath.Join(dir, home(i))
		if err := os.MkdirAll(own, 0o755); err != nil {
			return err
		}
		for j := range files {
			if err := os.WriteFile(filepath.Join(own, name(j)), content[:], 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// clear takes away what was uploaded, and waits until the disk has nothing left to
// do, so that every server finds the same.
func clear(dir string) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*", "added*"))
	for _, path := range paths {
		err = errors.Join(err, os.Remove(path))
	}
	syscall.Sync()
	return err
}

// evict takes the content of all files, which is on the disk, out of memory.
func evict(dir string) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		const dontNeed = 4 // POSIX_FADV_DONTNEED
		if _, _, errno := syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), 0, 0, dontNeed, 0, 0); errno != 0 {
			err = os.NewSyscallError("fadvise64", errno)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}
