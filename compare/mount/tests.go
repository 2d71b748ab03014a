package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/compare/internal/serve"
)

const (
	piece       = 1 << 20 // of what is read and written in order
	small       = 4096    // of what is read here and there
	smallReads  = 20_000
	smallAtOnce = 16
)

// test is something that is done in a mounted directory. It returns how many units it did, and the processor time of the
// programs that it has run; its own is counted besides.
type test struct {
	name, unit string
	do         func(ctx context.Context, o *options) (units float64, cpu time.Duration, err error)
}

func tests() []test {
	return []test{
		{"read in order", "MB", readAll},
		{"write in order, and fsync", "MB", writeAll},
		{"4 KiB here and there", "reads", func(ctx context.Context, o *options) (float64, time.Duration, error) { return readSmall(o, 1) }},
		{fmt.Sprintf("4 KiB here and there, %d at once", smallAtOnce), "reads", func(ctx context.Context, o *options) (float64, time.Duration, error) {
			return readSmall(o, smallAtOnce)
		}},
		{"ls -lR", "names", func(ctx context.Context, o *options) (float64, time.Duration, error) {
			return programs(ctx, o, "ls", "-lR", filepath.Join(o.at, "tree"))
		}},
		{"tar c", "names", func(ctx context.Context, o *options) (float64, time.Duration, error) {
			return programs(ctx, o, "tar", "-cf", filepath.Join(o.home, "out.tar"), "-C", filepath.Join(o.at, "tree"), ".")
		}},
		{"untar", "names", untar},
		{"git status", "names", gitStatus},
	}
}

// The names below what is served.
const (
	large = "large"    // the large file
	tree  = "tree"     // the tree, and a git repository
	ready = "some.tar" // beside it, on this host: a part of the tree, packed
	part  = "net"      // which
	fresh = "unpacked" // where it is unpacked
)

// prepare makes what is served.
func prepare(ctx context.Context, o *options) error {
	if o.tree == "" {
		out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
		if err != nil {
			return err
		}
		o.tree = filepath.Join(string(out[:len(out)-1]), "src")
	}
	f, err := os.Create(filepath.Join(o.data, large))
	if err != nil {
		return err
	}
	p := make([]byte, piece)
	for i := range p {
		p[i] = byte(i * 7)
	}
	for n := 0; n < o.size && err == nil; n += piece {
		_, err = f.Write(p)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	at := filepath.Join(o.data, tree)
	from := filepath.Join(o.tree, part)
	if _, err := os.Stat(from); err != nil {
		from = o.tree
	}
	for _, args := range [][]string{
		{"cp", "-r", o.tree, at},
		{"tar", "-cf", filepath.Join(o.home, ready), "-C", from, "."},
		git(at, "init", "-q"), git(at, "add", "."), git(at, "commit", "-q", "-m", "all of it"),
	} {
		if out, err := command(ctx, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w: %s", args, err, out)
		}
	}
	unix.Sync()
	var err2 error
	o.names, err = names(at)
	o.partNames, err2 = names(from)
	return errors.Join(err, err2)
}

// git is a command of git in a tree. Sizes and times alone say whether a file has changed: fuse-nfs has inode numbers of
// its own, by which git would read all files.
func git(dir string, args ...string) []string {
	return append([]string{"git", "-C", dir, "-c", "user.name=compare", "-c", "user.email=compare@localhost", "-c", "safe.directory=*",
		"-c", "gc.auto=0", "-c", "core.checkStat=minimal"}, args...)
}

func command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "GIT_OPTIONAL_LOCKS=0", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "LC_ALL=C")
	return cmd
}

// programs runs one, which has to do with each name of the tree.
func programs(ctx context.Context, o *options, args ...string) (units float64, cpu time.Duration, err error) {
	cmd := command(ctx, args...)
	if err := cmd.Run(); err != nil {
		return 0, 0, fmt.Errorf("%v: %w", args, err)
	}
	return o.names, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

func names(dir string) (n float64, err error) {
	err = filepath.WalkDir(dir, func(_ string, _ os.DirEntry, err error) error {
		n++
		return err
	})
	return n, err
}

func gitStatus(ctx context.Context, o *options) (float64, time.Duration, error) {
	return programs(ctx, o, git(filepath.Join(o.at, tree), "status", "--porcelain")...)
}

func untar(ctx context.Context, o *options) (units float64, cpu time.Duration, err error) {
	to := filepath.Join(o.at, fresh)
	if err := os.Mkdir(to, 0o755); err != nil {
		return 0, 0, err
	}
	_, cpu, err = programs(ctx, o, "tar", "-xf", filepath.Join(o.home, ready), "-C", to)
	return o.partNames, cpu, err
}

func readAll(_ context.Context, o *options) (float64, time.Duration, error) {
	f, err := os.Open(filepath.Join(o.at, large))
	if err != nil {
		return 0, 0, err
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, make([]byte, piece))
	if err == nil && n != int64(o.size) {
		err = io.ErrUnexpectedEOF
	}
	return float64(n) / 1e6, 0, errors.Join(err, f.Close())
}

func writeAll(_ context.Context, o *options) (float64, time.Duration, error) {
	f, err := os.Create(filepath.Join(o.at, "new"))
	if err != nil {
		return 0, 0, err
	}
	p := make([]byte, piece)
	for n := 0; n < o.size && err == nil; n += piece {
		_, err = f.Write(p)
	}
	return float64(o.size) / 1e6, 0, errors.Join(err, f.Sync(), f.Close())
}

// readSmall reads pieces of the large file, each once, in an order by chance that is the same for everybody.
func readSmall(o *options, atOnce int) (float64, time.Duration, error) {
	f, err := os.Open(filepath.Join(o.at, large))
	if err != nil {
		return 0, 0, err
	}
	err = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_RANDOM) // the kernel is not to read ahead
	order := rand.New(rand.NewPCG(1, 2)).Perm(o.size / small)
	order = order[:min(len(order), smallReads)]
	ends := make(chan error, atOnce)
	for i := range atOnce {
		go func() {
			var err error
			p := make([]byte, small)
			for n := i; n < len(order) && err == nil; n += atOnce {
				_, err = f.ReadAt(p, int64(order[n])*small)
			}
			ends <- err
		}()
	}
	for range atOnce {
		err = errors.Join(err, <-ends)
	}
	return float64(len(order)), 0, errors.Join(err, f.Close())
}

// figure is what one turn came to, in seconds.
type figure struct{ wall, units, cpu, user, server float64 }

// run has each mount its turn in each round.
func (t *test) run(ctx context.Context, o *options, all []mounter, server *serve.Process) ([]row, error) {
	figures := make([][]figure, len(all))
	for round := range o.rounds {
		for _, i := range serve.Turns(len(all), round) {
			f, err := t.turn(ctx, o, &all[i], server)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", all[i].name, err)
			}
			figures[i] = append(figures[i], f)
		}
	}
	rows := make([]row, len(all))
	for i := range rows {
		median := func(of func(*figure) float64) float64 { return serve.Median(figures[i], of) }
		rows[i] = row{
			Test: t.name, Mount: all[i].name, Unit: t.unit,
			Seconds: median(func(f *figure) float64 { return f.wall }),
			Rate:    median(func(f *figure) float64 { return f.units / f.wall }),
			CPU:     median(func(f *figure) float64 { return f.cpu }),
			User:    median(func(f *figure) float64 { return f.user }),
			Server:  median(func(f *figure) float64 { return f.server }),
		}
	}
	return rows, nil
}

// turn mounts, does the test once, and unmounts.
func (t *test) turn(ctx context.Context, o *options, m *mounter, server *serve.Process) (f figure, err error) {
	pid, err := m.up(ctx, o)
	if err != nil {
		return f, err
	}
	before, mine, theirs := serve.CPU(pid), serve.CPU(0), server.CPU()
	start := time.Now()
	units, cpu, err := t.do(ctx, o)
	f.wall, f.units = time.Since(start).Seconds(), units
	f.user = (serve.CPU(0) - mine + cpu).Seconds()
	used, err2 := m.down(o, pid)
	f.cpu, f.server = (used - before).Seconds(), (server.CPU() - theirs).Seconds()
	// The next turn begins without what this one has made.
	clean := errors.Join(os.RemoveAll(filepath.Join(o.data, fresh)), os.RemoveAll(filepath.Join(o.data, "new")), os.RemoveAll(filepath.Join(o.home, "out.tar")))
	unix.Sync()
	return f, errors.Join(err, err2, clean)
}
