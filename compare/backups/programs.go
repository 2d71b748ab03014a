package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/nfsbox/nfsbox/compare/internal/disk"
)

// The steps of a turn.
const (
	first = iota
	second
	restore
	steps
)

var stepNames = [steps]string{"first backup", "second backup", "restore"}

// figure is what one step came to: times in seconds, and the most memory, in MiB.
type figure struct{ wall, disk, cpu, memory float64 }

// program makes backups.
type program struct {
	name string
	// restored is where the tree is below the directory that restore was given.
	restored func(dest, tree string) string
	// begin makes a store, where that is a step of its own.
	begin func(store string) []string
	args  [steps]func(tree, store, dest string) []string
}

// programs are those that are here. What restic keeps beside its store is in home.
func programs(binary, home string) []program {
	all := []program{ours("nfsbox", binary)}
	if before := os.Getenv("NFSBOX_BEFORE"); before != "" {
		all = append(all, ours("nfsbox before", before))
	}
	if _, err := exec.LookPath("restic"); err != nil {
		fmt.Fprintln(os.Stderr, "LEFT OUT: restic:", err)
		return all
	}
	restic := func(store string, args ...string) []string {
		return append([]string{"restic", "--quiet", "--repo", store, "--cache-dir", filepath.Join(home, "restic-cache"), "--compression", "off"}, args...)
	}
	backup := func(tree, store, _ string) []string { return restic(store, "backup", tree) }
	return append(all, program{
		name:     "restic",
		restored: func(dest, tree string) string { return filepath.Join(dest, tree) },
		begin:    func(store string) []string { return restic(store, "init") },
		args: [steps]func(tree, store, dest string) []string{backup, backup, func(_, store, dest string) []string {
			return restic(store, "restore", "latest", "--target", dest)
		}},
	})
}

func ours(name, binary string) program {
	backup := func(tree, store, _ string) []string {
		return []string{binary, "backup", "--plain", "--name", "t", tree, store}
	}
	return program{
		name:     name,
		restored: func(dest, _ string) string { return dest },
		args: [steps]func(tree, store, dest string) []string{backup, backup, func(_, store, dest string) []string {
			return []string{binary, "restore", store + "::t", dest}
		}},
	}
}

// turn has the program make its three steps in a directory that is not there yet.
func (p *program) turn(ctx context.Context, t *tree, place string) (fs [steps]figure, err error) {
	store, dest := filepath.Join(place, "store"), filepath.Join(place, "restored")
	if err := os.MkdirAll(place, 0o755); err != nil {
		return fs, err
	}
	if p.begin != nil {
		if _, err := measure(ctx, p.begin(store), place); err != nil {
			return fs, err
		}
	}
	for step, args := range p.args {
		if fs[step], err = measure(ctx, args(t.path, store, dest), place); err != nil {
			return fs, err
		}
	}
	return fs, t.same(p.restored(dest, t.path))
}

// measure runs a command, and syncs the file system of place behind it.
func measure(ctx context.Context, args []string, place string) (f figure, err error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "RESTIC_PASSWORD=compare")
	start := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return f, fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, out)
	}
	f.wall = time.Since(start).Seconds()
	if err := disk.Sync(place); err != nil {
		return f, err
	}
	f.disk = time.Since(start).Seconds()
	f.cpu = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	if used, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		f.memory = float64(used.Maxrss) / 1024
	}
	return f, nil
}
