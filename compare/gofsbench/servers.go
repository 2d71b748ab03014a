package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// patience bounds how long a server may take to start or to end.
const patience = 20 * time.Second

// contender is a server that can be started.
type contender struct {
	name  string
	peer  bool // GoFsBench
	start func(ctx context.Context, o *options, dir string) (*server, error)
}

// server is one that runs.
type server struct {
	cmd  *exec.Cmd
	log  bytes.Buffer // what it has said, complete once it has ended
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
	for i, kind := range []string{"auto", "none", "go", "c", "uring"} {
		if bin != "" && i < len(peers) {
			p := peers[i]
			all = append(all, contender{p.name, true, func(ctx context.Context, o *options, dir string) (*server, error) {
				return goFsBench(ctx, o, bin, dir, p.pool)
			}})
		}
		for _, encoding := range []string{"protobuf", "JSON"} {
			all = append(all, contender{"nfsbox, " + kind + ", " + encoding, false, func(ctx context.Context, o *options, dir string) (*server, error) {
				return nfsbox(ctx, o, dir, kind, encoding == "JSON")
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

func nfsbox(ctx context.Context, o *options, dir, kind string, asJSON bool) (*server, error) {
	data := filepath.Join(dir, "data")
	if err := os.MkdirAll(filepath.Join(data, folder), 0o755); err != nil {
		return nil, err
	}
	addr, err := freePort()
	if err != nil {
		return nil, err
	}
	args := append([]string{"serve", "--listen", "127.0.0.1:0", "--api", addr, "--api-loopback", fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()), "--state-dir", filepath.Join(dir, "state"), "--io-pool", kind}, serveFlags(o)...)
	s := &server{cmd: exec.CommandContext(ctx, o.server, append(args, data)...)}
	s.load = func(ctx context.Context, verb string, n int) (figure, error) {
		return load(ctx, o, "http://"+addr, asJSON, verb, n)
	}
	return s, s.begin(addr)
}

func goFsBench(ctx context.Context, o *options, bin, dir, pool string) (*server, error) {
	addr, err := freePort()
	if err != nil {
		return nil, err
	}
	_, port, _ := strings.Cut(addr, ":")
	config, err := json.Marshal(map[string]any{
		"Port": port, "UserProtoMsg": true, "PageSize": 4096, "MaxOpenFiles": 102400, "LogCountPerFile": 2000000,
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
	s := &server{cmd: exec.CommandContext(ctx, filepath.Join(bin, "FsServer"))}
	s.cmd.Dir = dir
	s.load = func(ctx context.Context, verb string, n int) (figure, error) {
		return goFsLoad(ctx, o, bin, dir, verb, n)
	}
	return s, s.begin(addr)
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

// begin starts the server and waits until it accepts connections.
func (s *server) begin(addr string) error {
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("tcp", addr); err == nil {
			return c.Close()
		}
	}
	err := s.stop()
	return errors.Join(fmt.Errorf("it does not start: %s", s.log.Bytes()), err)
}

// stop ends the server, in good order if it will.
func (s *server) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	timer := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() }) // it had its chance
	defer timer.Stop()
	_ = s.cmd.Wait() // GoFsBench's dies of the signal
	return nil
}

// freePort is an address that was free a moment ago.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
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
