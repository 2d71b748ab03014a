//go:build linux

package outsider

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// inHands is how many files a worker copies at once.
	inHands = 8
	// shortForm is up to how many files there is a kill every second, and a rate.
	shortForm = 10_000
)

// hub is the address of what all networks reach: the servers, and the broker.
const hub = "10.213.7.1"

// network makes a network namespace that lives as long as the test, and returns its name.
func (b *box) network(name string) string {
	b.Helper()
	name = fmt.Sprintf("nfsbox-%d-%s", os.Getpid(), name)
	b.ip("netns", "add", name)
	b.Cleanup(func() { b.ip("netns", "del", name) })
	b.ip("-n", name, "link", "set", "lo", "up")
	return name
}

// ip runs ip(8).
func (b *box) ip(args ...string) {
	b.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		b.Fatalf("ip %v: %v\n%s", args, err, out)
	}
}

// networks makes the hub's network and n others, each with a line to it.
func (b *box) networks(n int) (all []string) {
	b.Helper()
	all = append(all, b.network("hub"))
	b.ip("-n", all[0], "link", "add", "hub0", "type", "bridge")
	b.ip("-n", all[0], "addr", "add", hub+"/24", "dev", "hub0")
	b.ip("-n", all[0], "link", "set", "hub0", "up")
	for i := range n {
		name := b.network(fmt.Sprint(i))
		far := fmt.Sprint("far", i)
		b.ip("-n", all[0], "link", "add", far, "type", "veth", "peer", "name", "eth0", "netns", name)
		b.ip("-n", all[0], "link", "set", far, "master", "hub0", "up")
		b.ip("-n", name, "addr", "add", fmt.Sprintf("10.213.7.%d/24", 10+i), "dev", "eth0")
		b.ip("-n", name, "link", "set", "eth0", "up")
		all = append(all, name)
	}
	return all
}

// in has a command run in a network. ip becomes the command: signals reach it.
func in(network string, cmd *exec.Cmd) *exec.Cmd {
	ip, err := exec.LookPath("ip")
	if err != nil {
		cmd.Err = err
		return cmd
	}
	cmd.Args = append([]string{"ip", "netns", "exec", network, cmd.Path}, cmd.Args[1:]...)
	cmd.Path, cmd.SysProcAttr = ip, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// dial connects to an address of a network.
func (b *box) dial(network, addr string) net.Conn {
	b.Helper()
	type made struct {
		c   net.Conn
		err error
	}
	done := make(chan made)
	go func() {
		runtime.LockOSThread()
		c, back, err := dialIn(network, addr)
		if back == nil { // else the thread goes with the goroutine, and those that it has started with it: see Pdeathsig
			runtime.UnlockOSThread()
		}
		done <- made{c, errors.Join(err, back)}
	}()
	m := <-done
	b.no(m.err)
	return m.c
}

// dialIn has this thread enter a network, connect, and come back. back says why it has not come back.
func dialIn(network, addr string) (c net.Conn, back, err error) {
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, home.Close()) }()
	there, err := os.Open("/run/netns/" + network)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, there.Close()) }()
	if err := setNetwork(there); err != nil {
		return nil, nil, err
	}
	c, err = net.DialTimeout("tcp", addr, patience)
	return c, setNetwork(home), err
}

// setns is the number of setns(2), which package syscall does not have.
var setns = map[string]uintptr{"amd64": 308, "arm64": 268}

// setNetwork has this thread enter a network.
func setNetwork(network *os.File) error {
	n, ok := setns[runtime.GOARCH]
	if !ok {
		return errors.ErrUnsupported
	}
	if _, _, errno := syscall.RawSyscall(n, network.Fd(), syscall.CLONE_NEWNET, 0); errno != 0 {
		return errno
	}
	return nil
}

// renames is how many files have got their names at a server of the hub: each takes one RENAME.
func (b *box) renames(network, metrics string) int {
	b.Helper()
	c := b.dial(network, metrics)
	defer func() { _ = c.Close() }()
	_, err := io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: "+metrics+"\r\nConnection: close\r\n\r\n")
	b.no(err)
	text, err := io.ReadAll(c)
	b.no(err)
	m := regexp.MustCompile(`(?m)^nfsbox_rpc_calls_total\{procedure="NFSPROC3_RENAME",version="3"\} (\S+)`).FindSubmatch(text)
	if m == nil {
		b.Fatalf("no RENAMEs in %q", text)
	}
	n, err := strconv.ParseFloat(string(m[1]), 64)
	b.no(err)
	return int(n)
}

// plant is what copies a tree from many networks, and its parts that die.
type plant struct {
	*box
	nets    []string // the hub, the coordinator's, the workers'
	url     string   // of the broker
	places  [2]string
	rate    string // of the job
	broker  *exec.Cmd
	job     *exec.Cmd
	workers [3]*exec.Cmd
}

// run starts a command that is killed when the test ends, with a log that is shown if it fails.
func (p *plant) run(cmd *exec.Cmd, name string) *exec.Cmd {
	p.Helper()
	out, err := os.OpenFile(p.path("."+name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	p.no(err)
	cmd.Stdout, cmd.Stderr = out, out
	p.no(cmd.Start())
	p.no(out.Close())
	p.Cleanup(func() { kill(cmd) })
	return cmd
}

func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill() // it may have ended
	_ = cmd.Wait()         // by the kill, or before
}

func (p *plant) startBroker() {
	p.Helper()
	p.broker = p.run(in(p.nets[0], exec.Command("nats-server", "-js", "-sd", p.path(".nats"), "-a", hub, "-p", "4222")), "broker")
	p.until("the broker listens", func() bool {
		text, _ := os.ReadFile(p.path(".broker.log")) // it may not be there yet
		return strings.Count(string(text), "Server is ready") > strings.Count(string(text), "Starting nats-server")-1
	})
}

func (p *plant) startWorker(i int) {
	p.Helper()
	p.workers[i] = p.run(in(p.nets[2+i], p.command("worker", "--join", p.url, "--name", fmt.Sprint("w", i), "--parallel", fmt.Sprint(inHands),
		"--allow", p.places[0], "--allow", p.places[1])), fmt.Sprint("worker", i))
}

func (p *plant) startJob() {
	p.Helper()
	args := []string{"cp", "-r", "--no-progress", "--job", "j", "--workers", p.url}
	if p.rate != "" {
		args = append(args, "--max-rate", p.rate)
	}
	p.job = p.run(in(p.nets[1], p.command(append(args, p.places[0], p.places[1]+"dest")...)), "job")
}

// TestWorkersInNetworks: a coordinator, three workers, and a broker with the servers, each in a network of its own.
// A worker is killed every five seconds, the coordinator and the broker twice, and the broker's files deleted once.
// The copy is identical, and under 0.5% of its files were copied twice. It takes minutes: with NFSBOX_SOAK=1.
//
// NFSBOX_SOAK_FILES=3000 has it take half a minute, most of which batches of killed workers wait for others. There is a kill
// every second then, and its bound is by kills. A killed worker costs what it has done and not reported: the files in its
// hands, and those of the last 25 ms, which at the job's rate are fewer. A killed coordinator costs that of each
// worker, with what it begins before it notices, in the next 50 ms: fewer again. The broker's end costs nothing.
func TestWorkersInNetworks(t *testing.T) {
	if !soak() {
		t.Skip("NOT TESTED without NFSBOX_SOAK=1, as it takes minutes: workers in networks of their own, all of which die")
	}
	b := newBox(t)
	root(t, "networks are namespaces")
	for _, tool := range []string{"nats-server", "ip"} {
		if _, err := exec.LookPath(tool); err != nil {
			if strings.Contains(","+os.Getenv("NFSBOX_REQUIRE")+",", ",nats,") {
				t.Fatalf("NFSBOX_REQUIRE names nats: %v", err)
			}
			t.Skipf("NOT TESTED with nats: %v", err)
		}
	}
	files, every, rate := b.soakFiles(0, 200_000), 5*time.Second, ""
	b.long = files > shortForm
	if !b.long {
		every, rate = time.Second, "1MiB" // 97 files a second and worker
	}
	for i := range files {
		b.write(b.path("src", fmt.Sprint("d", i/100), fmt.Sprint("f", i)), strings.Repeat(fmt.Sprintf("file %8d\n", i), 256))
	}
	b.no(os.Mkdir(b.path("srv"), 0o755))
	p := &plant{box: b, nets: b.networks(4), url: "nats://" + hub + ":4222", rate: rate}
	serve := func(dir, state string, more ...string) string {
		args := append([]string{"serve", "--listen", hub + ":0", "--allow", "10.213.7.0/24", "--squash=none", "--localio=off", "--state-dir", b.path(state), dir}, more...)
		return b.start(in(p.nets[0], exec.Command(b.bin, args...)), b.path(state)).url
	}
	metrics := "127.0.0.1:9100" // in the hub
	p.places = [2]string{serve(b.path("src"), ".s1"), serve(b.path("srv"), ".s2", "--metrics", metrics)}
	p.startBroker()
	for i := range p.workers {
		p.startWorker(i)
	}
	p.startJob()
	kills := p.torment(every)
	made := b.renames(p.nets[0], metrics)
	twice, most := made-files, files/200
	t.Logf("%d files, %d workers killed, and %d files copied twice: %.2f%%", files, kills, twice, 100*float64(twice)/float64(files))
	if !b.long {
		const each = 2 * inHands // in its hands, and fewer than that besides
		most = each * (kills + 2*len(p.workers))
	}
	if twice < 0 || twice > most {
		t.Errorf("%d files copied twice, of %d", twice, files)
	}
	b.must(0, "verify", "--no-progress", b.path("src"), b.path("srv", "dest"))
}

// torment kills this and that until the job has ended, and returns how many workers it has killed.
func (p *plant) torment(every time.Duration) (kills int) {
	p.Helper()
	events := []func(){
		3: func() { kill(p.job); p.startJob() },
		5: func() { kill(p.broker); p.startBroker() },
		7: func() { kill(p.job); p.startJob() },
		9: func() { kill(p.broker); p.no(os.RemoveAll(p.path(".nats"))); p.startBroker() },
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		<-tick.C
		if state, ended := ended(p.job); ended {
			if kills < len(events)-1 {
				p.Errorf("the job was over before all had happened: %d workers killed", kills)
			}
			if state != 0 {
				text, _ := os.ReadFile(filepath.Join(p.dir, ".job.log"))
				p.Fatalf("the job ended with status %d\n%s", state, text)
			}
			return kills
		}
		if kills == len(events)-1 && !p.long {
			continue // all has happened
		}
		i := kills % len(p.workers)
		kill(p.workers[i])
		p.startWorker(i)
		kills++
		if kills < len(events) && events[kills] != nil {
			events[kills]()
		}
	}
}

// ended reports whether a process has ended, and with which status.
func ended(cmd *exec.Cmd) (status int, yes bool) {
	var ws syscall.WaitStatus
	pid, err := syscall.Wait4(cmd.Process.Pid, &ws, syscall.WNOHANG, nil)
	if err != nil || pid == 0 {
		return 0, false
	}
	return ws.ExitStatus(), true
}
