package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"github.com/nfsbox/nfsbox/compare/internal/serve"
)

// contender is a server that can be started.
type contender struct {
	name  string
	peer  bool // GoFsBench
	echo  bool // it has a call that echoes
	start func(ctx context.Context, o *options, dir string) (*server, error)
}

// server is one that runs.
type server struct {
	*serve.Process
	load func(ctx context.Context, verb string, n int) (figure, error)
}

// contenders are those that can be had here, GoFsBench's between ours.
func contenders(o *options) (all []contender, err error) {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return nil, err
	}
	bin := os.Getenv("GOFSBENCH")
	if bin == "" {
		fmt.Fprintln(os.Stderr, "LEFT OUT: GoFsBench, of which $GOFSBENCH names the directory of the programs FsServer and FsClient")
	}
	peers := []struct{ name, pool string }{{"GoFsBench, no pool", ""}, {"GoFsBench, Go pool", "G"}, {"GoFsBench, C pool", "C"}}
	for i, kind := range []string{"auto", "none", "go", "c"} {
		if bin != "" && i < len(peers) {
			p := peers[i]
			all = append(all, contender{p.name, true, true, func(ctx context.Context, o *options, dir string) (*server, error) {
				return goFsBench(ctx, o, bin, dir, p.pool)
			}})
		}
		for _, encoding := range []string{"plain", "protobuf", "JSON"} {
			all = append(all, contender{"nfsbox, " + kind + ", " + encoding, false, encoding != "plain", func(ctx context.Context, o *options, dir string) (*server, error) {
				return nfsbox(ctx, o, dir, kind, encoding)
			}})
		}
	}
	return slices.DeleteFunc(all, func(c contender) bool { return !only.MatchString(c.name) }), nil
}

// serveFlags are nfsbox's that matter for what is measured. GoFsBench syncs nothing,
// neither files nor names.
func serveFlags(o *options) []string {
	flags := []string{"--io-threads", strconv.Itoa(o.threads), "--max-open-files", "102400"}
	if !o.sync {
		flags = append(flags, "--async")
	}
	return append(flags, o.flags...)
}

func nfsbox(ctx context.Context, o *options, dir, kind, encoding string) (*server, error) {
	data := filepath.Join(dir, "data")
	if err := os.MkdirAll(filepath.Join(data, folder), 0o755); err != nil {
		return nil, err
	}
	ports, err := serve.Ports(1)
	if err != nil {
		return nil, err
	}
	addr := fmt.Sprintf("127.0.0.1:%d", ports[0])
	args := append([]string{"serve", "--listen", "127.0.0.1:0", "--api", addr, "--api-loopback", fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()), "--state-dir", filepath.Join(dir, "state"), "--io-pool", kind}, serveFlags(o)...)
	p, _, err := serve.Ours(exec.CommandContext(ctx, o.server, append(args, data)...))
	return &server{p, func(ctx context.Context, verb string, n int) (figure, error) {
		if encoding == "plain" {
			return plain(ctx, o, addr, verb, n)
		}
		return calls(ctx, o, "http://"+addr, encoding == "JSON", verb, n)
	}}, err
}

func goFsBench(ctx context.Context, o *options, bin, dir, pool string) (*server, error) {
	ports, err := serve.Ports(1)
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{
		"Port": strconv.Itoa(ports[0]), "UserProtoMsg": true, "PageSize": 4096, "MaxOpenFiles": 102400, "LogCountPerFile": 2000000,
		"DataDir": dir, "UserPoolIoSched": pool, "IoThreads": o.threads, "PriorIoThreads": 0, "SetCpuAffinity": false, "WaitingQueueLen": 1000000,
	})
	// Its programs read their configuration, and write their logs, where they are started.
	err = errors.Join(err, os.WriteFile(filepath.Join(dir, "config.json"), config, 0o600))
	for _, sub := range []string{"stroges", "tmp"} {
		err = errors.Join(err, os.Mkdir(filepath.Join(dir, sub), 0o755))
	}
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "FsServer"))
	cmd.Dir = dir
	p, err := serve.Peer(cmd, func() bool { return serve.Accepts(fmt.Sprintf("127.0.0.1:%d", ports[0])) })
	return &server{p, func(ctx context.Context, verb string, n int) (figure, error) {
		return goFsLoad(ctx, o, bin, dir, verb, n)
	}}, err
}

// goFsLoad runs GoFsBench's own client, and reads what it says at its end.
func goFsLoad(ctx context.Context, o *options, bin, dir, verb string, n int) (f figure, err error) {
	if verb == "echo" {
		verb = "bench"
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "FsClient"), verb, strconv.Itoa(o.clients), strconv.Itoa(n), strconv.Itoa(size))
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return f, fmt.Errorf("%w: %s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		var cost float64
		if _, err := fmt.Sscanf(line, "Total success tasks: %d , cost: %f", &f.done, &cost); err == nil {
			f.PerS = float64(f.done) / cost * 1000
		}
	}
	f.Client = float64(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()) / float64(n) / 1e3
	if f.done == 0 {
		return f, fmt.Errorf("its client says: %s", out)
	}
	return f, nil
}

// scatter has ext4 put each directory in dir somewhere else on the disk (chattr +T). It
// does not give out again an inode that was freed in the last minutes, and searches past
// all of those of files that were deleted nearby: without this a turn would pay for the
// ones before it.
func scatter(dir string) error {
	const setFlags, topDir = 0x40086602, 0x00020000 // FS_IOC_SETFLAGS and FS_TOPDIR_FL
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	flags := int32(topDir)
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), setFlags, uintptr(unsafe.Pointer(&flags)))
	if errno != 0 {
		fmt.Fprintln(os.Stderr, "WARNING: the directory cannot be told to scatter what is in it, as on ext4:", errno)
	}
	return f.Close()
}

// raiseFiles makes room for the connections: as many descriptors as the process may
// have.
func raiseFiles() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	limit.Cur = limit.Max
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
}
