package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/nfsbox/nfsbox/compare/internal/serve"
)

// start starts nfsbox serve over the export, with a pool of the kind.
func start(ctx context.Context, o *options, home, export, kind string) (*serve.Process, *url.URL, error) {
	args := []string{"serve", "--listen", "127.0.0.1:0", "--state-dir", filepath.Join(home, "state"), "--io-pool", kind}
	return serve.Ours(exec.CommandContext(ctx, o.server, append(append(args, o.flags...), export)...))
}

// note is what the server said, in its log, of the kind that it was asked for, if that
// was not to be had.
func note(log string) string {
	for line := range strings.Lines(log) {
		if strings.Contains(line, "is not possible") {
			return strings.TrimSpace(line)
		}
	}
	return ""
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
