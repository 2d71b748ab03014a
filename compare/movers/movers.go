package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/compare/internal/disk"
	"github.com/nfsbox/nfsbox/compare/internal/serve"
)

// mover is a way to copy a tree.
type mover struct {
	name  string
	syncs string
	args  func(from, to string) []string
}

// What the movers sync, by their documentation and by strace.
const (
	syncsAll  = "each file before it has its name, then each directory"
	syncsNone = "nothing"
)

// copies is nfsbox cp of one tree to a name that is not there.
func copies(binary string) func(from, to string) []string {
	return func(from, to string) []string { return []string{binary, "cp", "-q", "-r", from, to} }
}

// movers are those that copy between local directories, as far as they are here; ours is the first.
func movers(o *options) []mover {
	all := []mover{{"nfsbox cp", syncsAll, copies(o.binary)}}
	if before := os.Getenv("NFSBOX_BEFORE"); before != "" {
		all = append(all, mover{"nfsbox cp, before", syncsAll, copies(before)})
	}
	for _, m := range []mover{
		{"cp -a", syncsNone, func(from, to string) []string { return []string{"cp", "-a", from, to} }},
		{"rsync -a", syncsNone, func(from, to string) []string { return []string{"rsync", "-a", from + "/", to} }},
		{"rsync -a --fsync", "each file before it has its name", func(from, to string) []string { return []string{"rsync", "-a", "--fsync", from + "/", to} }},
		{"rclone copy", syncsNone, func(from, to string) []string {
			return []string{"rclone", "copy", "-q", "--config", os.DevNull, from, to}
		}},
	} {
		if program := m.args("", "")[0]; !here(program) {
			fmt.Fprintf(os.Stderr, "LEFT OUT: %s, which is not here\n", m.name)
			continue
		}
		all = append(all, m)
	}
	return all
}

func here(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// turn has one mover copy the tree from one place to another. local is where the copy is on this
// host: its file system is synced behind the mover.
func (m *mover) turn(ctx context.Context, from, to, local string, server *serve.Process) (f figure, err error) {
	used := serverCPU(server)
	args := m.args(from, to)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	start := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return f, fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, out)
	}
	f.Wall = time.Since(start).Seconds()
	if err := disk.Sync(local); err != nil {
		return f, err
	}
	f.Disk = time.Since(start).Seconds()
	f.CPU = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	f.Server = (serverCPU(server) - used).Seconds()
	return f, nil
}

func serverCPU(s *serve.Process) time.Duration {
	if s == nil {
		return 0
	}
	return s.CPU()
}

func command(ctx context.Context, args ...string) error {
	_, err := output(ctx, args...)
	return err
}

func output(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
