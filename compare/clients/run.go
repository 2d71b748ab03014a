package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/compare/clients/drive"
	"github.com/nfsbox/nfsbox/compare/internal/serve"
)

const (
	// Sizes of what the server serves.
	fileSize   = 64 << 20
	dirEntries = 20_000

	// One measurement is bounded by runTime, whatever the driver does.
	runTime = 2 * time.Minute

	fileName = "bench.dat"
	dirName  = "entries"
)

// start starts a server, the responder or nfsbox; with a pin it runs on that core alone.
// What it serves is returned with nfsport and mountport, which every client understands.
func start(ctx context.Context, args []string, pin string) (*serve.Process, string, error) {
	if pin != "" {
		args = append([]string{"taskset", "-c", pin}, args...)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	if _, err := cmd.StdinPipe(); err != nil { // whose end is the responder's
		return nil, "", err
	}
	p, u, err := serve.Ours(cmd)
	if err != nil {
		return nil, "", err
	}
	// libnfs remembers what it has listed, unless it is told not to.
	const same = "nfs://%s%s?nfsport=%[3]s&mountport=%[3]s&dircache=0"
	return p, fmt.Sprintf(same, u.Hostname(), u.Path, u.Port()), nil
}

func tree(dir string) error {
	block := bytes.Repeat([]byte("nfsbox compares"), 1<<20/15+1)[:1<<20]
	f, err := os.Create(filepath.Join(dir, fileName))
	if err != nil {
		return err
	}
	for range fileSize / len(block) {
		if _, err := f.Write(block); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(dir, dirName), 0o755); err != nil {
		return err
	}
	for i := range dirEntries {
		name := filepath.Join(dir, dirName, fmt.Sprintf("a-file-of-the-usual-length-%06d", i))
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// peer is a client to be driven.
type peer struct {
	name   string
	driver string
}

// build builds the drivers; those that cannot be built here are named loudly.
func build(ctx context.Context, dir string) ([]peer, error) {
	peers := []peer{{"ours", filepath.Join(dir, "ours")}}
	for _, name := range []string{"ours", "willscott"} {
		if err := command(ctx, "go", "build", "-o", filepath.Join(dir, name), "./clients/"+name); err != nil {
			return nil, err
		}
	}
	if before := os.Getenv("OURS_BEFORE"); before != "" {
		peers = append(peers, peer{"ours before", before})
	}
	cc := []string{"cc", "-O2", "-Wall", "-o", filepath.Join(dir, "libnfs"), "clients/libnfs/driver.c"}
	if err := command(ctx, cc[0], append(cc[1:], "-lnfs")...); err != nil {
		fmt.Fprintln(os.Stderr, "LEFT OUT: libnfs (Debian: libnfs-dev and gcc):", err)
	} else {
		peers = append(peers, peer{"libnfs", filepath.Join(dir, "libnfs")})
	}
	if prefix := os.Getenv("LIBNFS"); prefix != "" {
		driver, lib := filepath.Join(dir, "libnfs-other"), filepath.Join(prefix, "lib")
		err := command(ctx, "cc", "-O2", "-Wall", "-I"+filepath.Join(prefix, "include"), "-o", driver,
			"clients/libnfs/driver.c", "-L"+lib, "-lnfs", "-Wl,-rpath,"+lib)
		if err != nil {
			return nil, fmt.Errorf("libnfs in $LIBNFS: %w", err)
		}
		peers = append(peers, peer{"libnfs in " + filepath.Base(prefix), driver})
	}
	return append(peers, peer{"willscott", filepath.Join(dir, "willscott")}), nil
}

func command(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

func (c *test) drive(ctx context.Context, p peer, url string, seconds float64, count int, before ...string) (drive.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	args := append(before, p.driver, url, c.op, strconv.Itoa(c.depth), fmt.Sprint(seconds), strconv.Itoa(count), c.file)
	if c.pin != "" {
		args = append([]string{"taskset", "-c", c.pin}, args...)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var r drive.Result
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &r)
	}
	if err != nil {
		return r, fmt.Errorf("%s, %s: %w: %s", p.name, c.name, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return r, nil
}

var totalLine = regexp.MustCompile(`(?m)^\s*100\.00\s+[0-9.]+\s+(?:[0-9]+\s+)?([0-9]+)\s.*total$`)

// syscalls counts the system calls of one operation, as the difference between
// doing it many times and twice as many.
func (c *test) syscalls(ctx context.Context, p peer, url, dir string) (float64, error) {
	var totals [2]float64
	for i := range totals {
		file := filepath.Join(dir, "strace.out")
		if _, err := c.drive(ctx, p, url, 0, (i+1)*c.count, "strace", "-f", "-c", "-o", file); err != nil {
			return 0, err
		}
		out, err := os.ReadFile(file)
		if err != nil {
			return 0, err
		}
		m := totalLine.FindSubmatch(out)
		if m == nil {
			return 0, fmt.Errorf("no total in what strace wrote: %s", out)
		}
		if totals[i], err = strconv.ParseFloat(string(m[1]), 64); err != nil {
			return 0, err
		}
	}
	return (totals[1] - totals[0]) / float64(c.count), nil
}
