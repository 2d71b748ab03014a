package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nfsbox/nfsbox/compare/servers/load"
)

// patience bounds how long a server may take to start or to end.
const patience = 20 * time.Second

// kind is a server that can be started.
type kind struct {
	name  string
	start func(context.Context) (*server, error)
}

// names are those of the kinds, in their order.
var names []string

// server is one that runs.
type server struct {
	cmd       *exec.Cmd
	pid       int
	addr, url string
}

// kinds are the servers that can be had here; the first is ours.
func kinds(home, export, binary string, flags []string) []kind {
	all := []kind{{"ours", func(ctx context.Context) (*server, error) { return nfsbox(ctx, home, export, binary, flags) }}}
	if _, err := exec.LookPath("ganesha.nfsd"); err != nil || os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "LEFT OUT: nfs-ganesha, which wants root and the Debian packages nfs-ganesha, nfs-ganesha-vfs, rpcbind")
	} else {
		all = append(all, kind{"ganesha", func(ctx context.Context) (*server, error) { return ganesha(ctx, home, export) }})
	}
	if unfsd := os.Getenv("UNFSD"); unfsd == "" {
		fmt.Fprintln(os.Stderr, "LEFT OUT: unfs3, of which $UNFSD names the binary")
	} else {
		all = append(all, kind{"unfs3", func(ctx context.Context) (*server, error) { return unfs3(ctx, home, export, unfsd) }})
	}
	for _, k := range all {
		names = append(names, k.name)
	}
	return all
}

func nfsbox(ctx context.Context, home, export, binary string, flags []string) (*server, error) {
	args := append([]string{"serve", "--listen", "127.0.0.1:0", "--state-dir", filepath.Join(home, "state")}, flags...)
	cmd := exec.CommandContext(ctx, binary, append(args, export)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("it said nothing: %w", errors.Join(err, cmd.Wait()))
	}
	u, err := url.Parse(strings.TrimSpace(line))
	if err != nil {
		return nil, err
	}
	return &server{cmd: cmd, pid: cmd.Process.Pid, addr: u.Host, url: u.String()}, nil
}

const ganeshaConfig = `
NFS_CORE_PARAM { NFS_Port = %[2]d; MNT_Port = %[3]d; Bind_addr = 127.0.0.1;
	Protocols = 3; Enable_NLM = false; Enable_RQUOTA = false;
	Enable_UDP = false; mount_path_pseudo = false; }
NFSV4 { Graceless = true; }
NFS_KRB5 { Active_krb5 = false; }
EXPORT { Export_Id = 1; Path = %[1]s; Pseudo = /export;
	Protocols = 3; Transports = TCP; SecType = sys;
	Squash = No_Root_Squash; Access_Type = RW; PrivilegedPort = false;
	MaxRead = 1048576; MaxWrite = 1048576; FSAL { Name = VFS; } }
LOG { Default_Log_Level = EVENT; }
`

// ganeshaScript gives nfs-ganesha the rpcbind that it wants, in a network of its
// own, and ends both when it is told to.
const ganeshaScript = `
mount -t tmpfs tmpfs /run && mkdir -p /run/ganesha /run/rpcbind || exit 1
mount -t tmpfs tmpfs /var/lib/nfs && mkdir -p /var/lib/nfs/ganesha || exit 1
unshare -n sh -c 'ip link set lo up; exec rpcbind -f -w' &
rpcbind=$!
trap 'kill $ganesha $rpcbind; wait' TERM
for i in $(seq 100); do [ -S /run/rpcbind.sock ] && break; sleep 0.1; done
ganesha.nfsd -F -L "$1/log" -f "$1/conf" -p "$1/pid" &
ganesha=$!
echo $ganesha >"$1/ganesha"
wait $ganesha
kill $rpcbind; wait`

func ganesha(ctx context.Context, home, export string) (*server, error) {
	dir, err := os.MkdirTemp(home, "ganesha")
	if err != nil {
		return nil, err
	}
	nfs, mount, err := ports()
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "conf"), fmt.Appendf(nil, ganeshaConfig, export, nfs, mount), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "unshare", "-m", "sh", "-c", ganeshaScript, "ganesha", dir)
	s, err := begin(cmd, nfs, mount, export, func() bool {
		log, err := os.ReadFile(filepath.Join(dir, "log"))
		return err == nil && strings.Contains(string(log), "NFS SERVER INITIALIZED")
	})
	if err != nil {
		return nil, err
	}
	pid, err := os.ReadFile(filepath.Join(dir, "ganesha"))
	if err == nil {
		s.pid, err = strconv.Atoi(strings.TrimSpace(string(pid)))
	}
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func unfs3(ctx context.Context, home, export, unfsd string) (*server, error) {
	dir, err := os.MkdirTemp(home, "unfs3")
	if err != nil {
		return nil, err
	}
	nfs, mount, err := ports()
	if err != nil {
		return nil, err
	}
	exports := filepath.Join(dir, "exports")
	if err := os.WriteFile(exports, fmt.Appendf(nil, "%s 127.0.0.1(rw,no_root_squash,insecure)\n", export), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, unfsd, "-d", "-p", "-t", "-l", "127.0.0.1", "-n", fmt.Sprint(nfs), "-m", fmt.Sprint(mount), "-e", exports)
	return begin(cmd, nfs, mount, export, func() bool {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", mount))
		return err == nil && c.Close() == nil
	})
}

// begin starts a server whose process is the command's.
func begin(cmd *exec.Cmd, nfs, mount int, export string, up func() bool) (*server, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{
		cmd: cmd, pid: cmd.Process.Pid, addr: fmt.Sprintf("127.0.0.1:%d", nfs),
		url: fmt.Sprintf("nfs://127.0.0.1%s?nfsport=%d&mountport=%d", export, nfs, mount),
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if up() {
			return s, nil
		}
	}
	return nil, errors.Join(errors.New("it does not start"), s.stop())
}

// ports are two that were free a moment ago.
func ports() (a, b int, err error) {
	var l [2]net.Listener
	for i := range l {
		if l[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return 0, 0, err
		}
	}
	a, b = l[0].Addr().(*net.TCPAddr).Port, l[1].Addr().(*net.TCPAddr).Port
	return a, b, errors.Join(l[0].Close(), l[1].Close())
}

// stop ends the server, in good order if it will.
func (s *server) stop() error {
	if s == nil {
		return nil
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	timer := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() }) // it had its chance
	defer timer.Stop()
	_ = s.cmd.Wait() // by a signal, some of them
	return nil
}

// cpu is the seconds of processor time that the server has used.
func (s *server) cpu() float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
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

// watch looks at the server now and then until its result is called, which is
// the most threads and memory seen.
func (s *server) watch() func() (threads, rss float64) {
	stop := make(chan struct{})
	var threads, rss float64
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			t, r := s.status()
			threads, rss = max(threads, t), max(rss, r)
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	return func() (float64, float64) {
		close(stop)
		wg.Wait()
		return threads, rss
	}
}

func (s *server) status() (threads, rss float64) {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid)) // of one that is gone: nothing
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(line, ":")
		n, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		switch key {
		case "Threads":
			threads = n
		case "VmRSS":
			rss = n / 1024
		}
	}
	return threads, rss
}

// tree makes what is served.
func tree(dir string) error {
	for _, name := range []string{load.File, load.Scratch} {
		if err := fill(filepath.Join(dir, name), load.FileSize); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, load.Small), 0o755); err != nil {
		return err
	}
	for i := range load.SmallFiles {
		if err := fill(filepath.Join(dir, load.Small, load.Name(i)), load.SmallSize); err != nil {
			return err
		}
	}
	return nil
}

func fill(name string, size int) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	for i := range block {
		block[i] = byte(i * 7)
	}
	for ; size > 0 && err == nil; size -= len(block) {
		_, err = f.Write(block[:min(size, len(block))])
	}
	return errors.Join(err, f.Close())
}

// crowd makes a directory of n empty files, if it is not there yet.
func crowd(dir string, n int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, entry(n-1))); err == nil {
		return nil
	}
	for i := range n {
		if err := os.WriteFile(filepath.Join(dir, entry(i)), nil, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func entry(i int) string { return fmt.Sprintf("a-file-of-the-usual-length-%07d", i) }
