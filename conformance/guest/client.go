//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// itemTime bounds one item of the workload. At the bound the machine says so and stops,
// because a process that hangs in the kernel cannot be killed.
const itemTime = 150 * time.Second

// toolTime bounds one program.
const toolTime = 60 * time.Second

// site is where an item works: the same directory of the server, mounted twice
// without a common cache, and its own directory in it.
type site struct {
	a, b string
}

// item is one thing that the client does, and a verdict on it.
type item struct {
	name  string
	run   func(s site) error
	locks bool // wants locks that the server knows of
	root  bool // wants a server that knows its callers
}

func client(params map[string]string) error {
	locks := !strings.Contains(params["opts"], "nolock")
	if locks {
		if err := statd(); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/mnt/a", "/mnt/b"} {
		options := params["opts"] + ",nosharecache,addr=" + params["server"]
		if err := mount(params["server"]+":/", dir, "nfs", options); err != nil {
			return err
		}
	}
	say("mounted %s", params["opts"])
	for _, it := range items {
		switch {
		case params["only"] != "" && !slices.Contains(strings.Split(params["only"], ","), it.name):
		case it.locks && !locks:
			say("skip %s: the mount has nolock", it.name)
		case it.root && params["identities"] == "":
			say("skip %s: the server runs as an ordinary user", it.name)
		default:
			if hung := judge(it); hung {
				return fmt.Errorf("%s does not end", it.name)
			}
		}
	}
	for _, dir := range []string{"/mnt/a", "/mnt/b"} {
		if err := unix.Unmount(dir, 0); err != nil {
			return fmt.Errorf("umount %s: %w", dir, err)
		}
	}
	return nil
}

func judge(it item) (hung bool) {
	began := time.Now()
	done := make(chan error, 1)
	go func() {
		s := site{a: filepath.Join("/mnt/a", it.name), b: filepath.Join("/mnt/b", it.name)}
		if err := os.Mkdir(s.a, 0o777); err != nil && !os.IsExist(err) {
			done <- err
			return
		}
		done <- it.run(s)
	}()
	select {
	case err := <-done:
		took := time.Since(began).Seconds()
		if err != nil {
			say("FAIL %s (%.1f s): %v", it.name, took, err)
		} else {
			say("ok %s (%.1f s)", it.name, took)
		}
		return false
	case <-time.After(itemTime):
		say("FAIL %s: it has not ended after %v", it.name, itemTime)
		return true
	}
}

// statd starts what the kernel's client wants for locks of version 3.
func statd() error {
	for _, dir := range []string{"/var/lib/nfs/sm", "/var/lib/nfs/sm.bak", "/run/rpcbind"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := tool("/", "rpcbind", "-w"); err != nil {
		return err
	}
	return tool("/", "rpc.statd", "--no-notify")
}

func tool(dir, name string, args ...string) error {
	_, err := output(dir, name, args...)
	return err
}

func output(dir, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), toolTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.WaitDelay = time.Second // daemons keep its output open
	out, err := cmd.CombinedOutput()
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return "", fmt.Errorf("%s %s: %w: %.600s", name, strings.Join(args, " "), err, out)
	}
	return string(out), nil
}
