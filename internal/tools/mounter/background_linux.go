//go:build linux

package mounter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/syslog"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// readyFD is the descriptor by which the process in the background says that the mount answers.
const readyFD = 3

// Background runs the program anew with args, apart from the terminal, and waits until it says that it is ready, or ends.
// It returns the exit status. What it prints until then is the user's to see.
func Background(ctx context.Context, args []string, stdout, stderr *os.File) (status int, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return 0, &SystemError{err}
	}
	defer func() { _ = r.Close() }() // it was read
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Args[0] = "nfsbox"
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = stdout, stderr, []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = w.Close() // the other process has it
	if err != nil {
		return 0, &SystemError{err}
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })() // it may have ended
	var b [1]byte
	if _, err := io.ReadFull(r, b[:]); err == nil {
		return 0, cmd.Process.Release()
	}
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
		return exit.ExitCode(), nil
	}
	if err == nil {
		err = errors.New("it has ended")
	}
	return 0, &SystemError{fmt.Errorf("the mount's process: %w", err)}
}

// Detach says to the first process that the mount is ready, and gives up what is the user's: the terminal and the
// directory. It returns where notes go from then on: to syslog, if there is one.
func Detach() (note func(string), err error) {
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, null.Close()) }()
	note = func(string) {}
	if log, err := syslog.New(syslog.LOG_DAEMON|syslog.LOG_WARNING, "nfsbox-mount"); err == nil {
		note = func(text string) { _ = log.Warning(text) } // there is nowhere else to say it
	}
	if err := os.Chdir("/"); err != nil {
		return nil, err
	}
	ready := os.NewFile(readyFD, "ready")
	if _, err := ready.Write([]byte{1}); err != nil {
		return nil, fmt.Errorf("the process that waits for the mount: %w", err)
	}
	if err := ready.Close(); err != nil {
		return nil, err
	}
	for fd := range 3 {
		if err := unix.Dup3(int(null.Fd()), fd, 0); err != nil {
			return nil, err
		}
	}
	return note, nil
}

// asUser has a process run as the user of the mount; nil: as this one, which is that user, or may not be another.
func (p mountPoint) asUser() *syscall.SysProcAttr {
	if os.Geteuid() != 0 || p.user == 0 {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(p.user), Gid: uint32(p.group)}}
}
