package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/compare/internal/serve"
)

// patience bounds how long a mount may take to come and to go.
const patience = 30 * time.Second

// mounter is a program that mounts.
type mounter struct {
	name string
	comm string // of its process in the background, as proc_pid_comm(5) has it: ours is begun as /proc/self/exe
	args []string
}

// mounts are those that are here; ours is the first.
func mounts(o *options, url string) []mounter {
	ours := func(name, binary string) mounter {
		return mounter{name, "exe", []string{binary, "mount", "-o", "localio=off", url, o.at}}
	}
	all := []mounter{ours("nfsbox mount", o.binary)}
	if before := os.Getenv("NFSBOX_BEFORE"); before != "" {
		all = append(all, ours("nfsbox mount, before", before))
	}
	peer := os.Getenv("FUSE_NFS")
	if peer == "" {
		fmt.Fprintln(os.Stderr, "LEFT OUT: fuse-nfs, which $FUSE_NFS would name")
		return all
	}
	return append(all, mounter{"fuse-nfs", filepath.Base(peer), []string{peer, "-n", url, "-m", o.at, "-W", "131072"}})
}

// up mounts, and returns the process that serves the mount.
func (m *mounter) up(ctx context.Context, o *options) (pid int, err error) {
	if isMounted(o.at) {
		return 0, fmt.Errorf("%s: something is mounted there already", o.at)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// Its process in the background would hold a pipe open.
	cmd := exec.CommandContext(ctx, m.args[0], m.args[1:]...)
	cmd.Stderr = os.Stderr
	err = cmd.Run()
	for err == nil && !isMounted(o.at) {
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	if err == nil {
		pid, err = m.find(o.at)
	}
	if err != nil {
		return 0, errors.Join(fmt.Errorf("%s: %w", strings.Join(m.args, " "), err), abort(o.at))
	}
	return pid, nil
}

// find finds the process that has mounted dir. Only the names of others are read.
func (m *mounter) find(dir string) (int, error) {
	list, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return 0, err
	}
	for _, path := range list {
		name, err := os.ReadFile(path)
		if err != nil || strings.TrimSpace(string(name)) != m.comm {
			continue
		}
		line, err := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if err == nil && strings.Contains(string(line), "\x00"+dir+"\x00") {
			return strconv.Atoi(filepath.Base(filepath.Dir(path)))
		}
	}
	return 0, fmt.Errorf("no process of %s", dir)
}

// down unmounts, and returns the processor time that the mount has taken by then: all that was written has been sent.
func (m *mounter) down(o *options, pid int) (used time.Duration, err error) {
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		used = max(used, serve.CPU(pid))
		if isMounted(o.at) {
			err = unix.Unmount(o.at, unix.UMOUNT_NOFOLLOW)
		}
		// A process that has gone has used nothing more.
		if gone := syscall.Kill(pid, 0) != nil; gone && !isMounted(o.at) {
			return used, nil
		}
		if time.Now().After(end) {
			return used, errors.Join(fmt.Errorf("%s does not unmount", m.name), err, abort(o.at))
		}
	}
}

// abort has whatever waits in a mount fail, and takes it away.
func abort(dir string) error {
	for range 5 {
		if !isMounted(dir) {
			return nil
		}
		_ = unix.Unmount(dir, unix.MNT_FORCE|unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) // looked at below
	}
	if isMounted(dir) {
		return fmt.Errorf("%s cannot be unmounted", dir)
	}
	return nil
}

// isMounted reports whether something is mounted at dir, without touching it.
func isMounted(dir string) bool {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return true
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 4 && f[4] == dir {
			return true
		}
	}
	return false
}
