//go:build linux

package outsider

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestVerifyReadsTheServer: the network turns some bytes into others on the way to
// the server. What is there is not what was sent, and cp --verify says so.
func TestVerifyReadsTheServer(t *testing.T) {
	for _, size := range []int{2000, 300_000, 20_000_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			b := newBox(t)
			data := pattern(size, 1)
			copy(data[size/2:], "MARKER-A")
			b.write(b.path("src", "f"), string(data))
			b.no(os.Mkdir(b.path("srv"), 0o755))
			p := b.proxy(b.serve(b.path("srv")), func(p *proxy) { p.towards = replacing("MARKER-A", "MARKER-B") })
			r := b.run("cp", "--json", "--verify", b.path("src", "f"), p.url()+"f")
			if r.status == 0 {
				t.Errorf("cp --verify of what was changed on the way: exit status 0\n%s", r.stdout)
			}
			if n := r.count(b, "verified"); n != 0 {
				t.Errorf("%d files were verified", n)
			}
			if _, err := os.Lstat(b.path("srv", "f")); err == nil {
				t.Error("the copy that differs has the name")
			}
		})
	}
}

// TestVerifyAsksForEveryByte: what cp --verify calls verified has come back over the
// network.
func TestVerifyAsksForEveryByte(t *testing.T) {
	b := newBox(t)
	const size = 8 << 20
	b.write(b.path("f"), string(pattern(size, 2)))
	b.no(os.Mkdir(b.path("srv"), 0o755))
	p := b.proxy(b.serve(b.path("srv")), nil)
	r := b.must(0, "cp", "--json", "--verify", b.path("f"), p.url()+"f")
	if came := p.came.Load(); came < size {
		t.Errorf("%d bytes came back from the server, of a file of %d that was verified: %s", came, size, r.stdout)
	}
}

// TestCutConnections: each connection lasts for some bytes, and is then cut, in the
// middle of a reply if it happens so. With a patience of seconds a copy is right, or
// the command says that it is not; a cut does not end the patience.
func TestCutConnections(t *testing.T) {
	b := newBox(t)
	for i := range 40 {
		b.write(b.path("srv", "src", fmt.Sprint("f", i)), string(pattern(1000*i, byte(i))))
	}
	b.write(b.path("srv", "src", "large"), string(pattern(3_000_000, 99)))
	s := b.serve(b.path("srv"))
	for seed := range uint64(4) {
		var chance struct {
			sync.Mutex
			*rand.Rand
		}
		chance.Rand = rand.New(rand.NewPCG(seed, 1))
		p := b.proxy(s, func(p *proxy) {
			p.cut = func() int64 {
				chance.Lock()
				defer chance.Unlock()
				return 20_000 + chance.Int64N(1_500_000)
			}
		})
		there, back := fmt.Sprint("there", seed), b.path(fmt.Sprint("back", seed))
		r := b.run("cp", "-r", "--verify", p.url()+"src?timeo=50", back)
		if r.status != 0 {
			t.Errorf("seed %d: from the server: exit status %d\n%s", seed, r.status, r.stderr)
			continue
		}
		b.same(b.path("srv", "src"), back)
		r = b.run("cp", "-r", back, p.url()+there+"?timeo=50")
		if r.status != 0 {
			t.Errorf("seed %d: to the server: exit status %d\n%s", seed, r.status, r.stderr)
			continue
		}
		b.same(back, b.path("srv", there))
	}
}

// TestCutOffNoticed: a network that cuts every reply at the same byte gets nothing
// done. That is an error, within the patience, and no copy.
func TestCutOffNoticed(t *testing.T) {
	b := newBox(t)
	b.write(b.path("srv", "f"), string(pattern(100_000, 3)))
	p := b.proxy(b.serve(b.path("srv")), func(p *proxy) { p.cut = func() int64 { return 500 } })
	r := b.run("cp", p.url()+"f?timeo=10&retrans=1", b.path("copy"))
	if r.status == 0 || r.stderr == "" {
		t.Errorf("exit status %d\n%s", r.status, r.stderr)
	}
	if _, err := os.Lstat(b.path("copy")); err == nil {
		t.Error("there is a copy")
	}
	if r.took > 30*time.Second {
		t.Errorf("it took %v, with a patience of two", r.took)
	}
}

// TestDeadServerEndsOnce: the server dies in the middle of a job and stays dead. The
// job ends when its patience has, says so once, and goes on from there when the
// server is back.
func TestDeadServerEndsOnce(t *testing.T) {
	for _, death := range []string{"killed", "stopped", "silent"} {
		t.Run(death, func(t *testing.T) {
			b := newBox(t)
			const files = 1000
			for i := range files {
				b.write(b.path("srv", "src", fmt.Sprint(i%10), fmt.Sprint(i)), string(pattern(4096, byte(i))))
			}
			s := b.serveAt(b.port(), b.path("srv"))
			var p *proxy
			die := sync.OnceFunc(func() {
				switch death {
				case "killed":
					_ = s.cmd.Process.Kill()
				case "stopped":
					_ = s.cmd.Process.Signal(syscall.SIGSTOP)
				case "silent":
					p.frozen.Store(true)
				}
			})
			var seen atomic.Int64
			b.proxy(s, func(begun *proxy) {
				p = begun
				p.back = func() change {
					return func(data []byte) []byte {
						if seen.Add(int64(len(data))) > 2_000_000 {
							die()
						}
						return data
					}
				}
			})
			args := []string{"cp", "-r", "--json", "--job", "j", p.url() + "src?timeo=10&retrans=1", b.path("copy")}
			r := b.run(args...)
			if r.status != 4 && r.status != 2 {
				t.Errorf("exit status %d\n%s", r.status, r.stderr)
			}
			if r.took > 40*time.Second {
				t.Errorf("it took %v to notice, with a patience of two seconds", r.took)
			}
			if n := strings.Count(r.stdout, `"type":"error"`); n > 70 {
				t.Errorf("%d errors for one server", n)
			}
			_ = s.cmd.Process.Signal(syscall.SIGCONT)
			s.kill()
			p.close()
			again := b.serveWith(s.state, fmt.Sprintf("127.0.0.1:%d", s.port), b.path("srv"), "--localio=off")
			back := b.proxyAt(p.listener.Addr().String(), again)
			defer back.close()
			r = b.must(0, args...)
			if r.count(b, "skipped") == 0 {
				t.Errorf("the job began anew: %s", r.stdout)
			}
			b.same(b.path("srv", "src"), b.path("copy"))
		})
	}
}

// TestForeignServers: what listens at the port is no NFS server. The command says
// so, or at least that it does not work, long before a patience of minutes is over.
func TestForeignServers(t *testing.T) {
	b := newBox(t)
	for name, at := range map[string]string{
		"HTTP":      b.impostor("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", true),
		"HTTP open": b.impostor("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", false),
		"SSH":       b.impostor("SSH-2.0-OpenSSH_9.2p1\r\n", false),
		"TLS":       b.impostor("\x15\x03\x01\x00\x02\x02\x46", true),
		"hangs up":  b.impostor("", true),
	} {
		t.Run(name, func(t *testing.T) {
			r := b.run("ls", "nfs://"+at+"/?timeo=20&retrans=1")
			if r.status == 0 || r.stderr == "" {
				t.Errorf("exit status %d\n%s", r.status, r.stderr)
			}
			if what, _, _ := strings.Cut(name, " "); !strings.Contains(r.stderr, map[bool]string{true: "the server hung up", false: "this is " + what + ", and no RPC, as NFS is"}[what == "hangs"]) {
				t.Errorf("it does not say what listens there:\n%s", r.stderr)
			}
			if first, advice, _ := strings.Cut(r.stderr, "\n"); !strings.HasPrefix(name, "hangs") &&
				(strings.Count(first, ": ") > 4 || strings.Contains(first, "NULL") || !strings.Contains(advice, "another service listens at this port")) {
				t.Errorf("it is no sentence with advice:\n%s", r.stderr)
			}
			if r.took > 40*time.Second {
				t.Errorf("it took %v, with a patience of four seconds", r.took)
			}
		})
	}
}

// TestFarServer: over a network of 20 ms each way a copy both ways is right, and its
// small files do not wait one for another.
func TestFarServer(t *testing.T) {
	b := newBox(t)
	for i := range 400 {
		b.write(b.path("src", fmt.Sprint(i%20), fmt.Sprint(i)), string(pattern(2000, byte(i))))
	}
	b.no(os.Mkdir(b.path("srv"), 0o755))
	p := b.proxy(b.serve(b.path("srv")), func(p *proxy) { p.delay = 20 * time.Millisecond })
	there := b.must(0, "cp", "-r", b.path("src"), p.url()+"dst")
	b.same(b.path("src"), b.path("srv", "dst"))
	back := b.must(0, "cp", "-r", p.url()+"dst", b.path("back"))
	b.same(b.path("src"), b.path("back"))
	list := b.must(0, "ls", "-R", p.url()+"dst")
	t.Logf("400 files of 2000 bytes in 20 directories, 40 ms: there %v, back %v, ls -R %v", there.took, back.took, list.took)
	for what, took := range map[string]time.Duration{"there": there.took, "back": back.took, "ls -R": list.took} {
		if alone := 400 * 4 * 40 * time.Millisecond; took > alone/2 {
			t.Errorf("%s: %v; one file after the other takes %v", what, took, alone)
		}
	}
}

// proxyAt begins to relay at an address that another proxy had.
func (b *box) proxyAt(address string, s *server) *proxy {
	b.Helper()
	p := b.proxy(s, nil)
	l, err := net.Listen("tcp", address)
	b.no(err)
	b.no(p.listener.Close())
	again := &proxy{b: b, listener: l, upstream: p.upstream, conns: make(map[net.Conn]struct{})}
	again.work.Go(again.accept)
	b.Cleanup(again.close)
	return again
}
