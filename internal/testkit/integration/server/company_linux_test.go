package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/server/iogate"
	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/proto/nlm4"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// companyDir has the test binary be the server of TestBadCompany.
const companyDir = "NFSBOX_COMPANY"

// hanging is a name service that knows one host, and of all addresses says nothing
// for as long as it is waited for.
type hanging struct{}

func (hanging) LookupAddr(ctx context.Context, _ string) ([]string, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (hanging) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

// TestCompanyServer is the server of TestBadCompany, until its input ends.
func TestCompanyServer(t *testing.T) {
	dir := os.Getenv(companyDir)
	if dir == "" {
		t.Skip("TestBadCompany runs it")
	}
	gate, err := iogate.New(iogate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	disk, err := localfs.New(dir, localfs.Options{Volatile: true, Gate: gate.Export("disk")})
	if err != nil {
		t.Fatal(err)
	}
	table, err := export.New(export.Options{Resolver: hanging{}}, export.Export{Path: "/", FS: disk, Clients: []export.Rule{
		{Match: "127.0.0.2/31"}, {Match: "honest.example.org"}, {Match: "*.example.org"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := nfsserver.New(nfsserver.Options{Exports: table, Locks: true, MaxRequestBytes: 128 << 20, MaxReplyBytes: 128 << 20})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	fmt.Println("company at", l.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin) // its end is all that counts
	err = srv.Close()
	if ended := <-done; !errors.Is(ended, nfsserver.ErrClosed) {
		t.Error(ended)
	}
	if err = errors.Join(err, vfs.CloseFS(disk), gate.Close()); err != nil {
		t.Error(err)
	}
}

// company is a server in a process of its own, and clients that attack it.
type company struct {
	t    *testing.T
	addr string
	pid  int
	root []byte
	auth oncrpc.Auth
	stop chan struct{}
	wg   sync.WaitGroup
}

func newCompany(t *testing.T) *company {
	cmd := exec.Command(os.Args[0], "-test.run", "^TestCompanyServer$", "-test.v")
	cmd.Env = append(os.Environ(), companyDir+"="+t.TempDir())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	c := &company{t: t, pid: cmd.Process.Pid, stop: make(chan struct{})}
	t.Cleanup(func() {
		if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
			t.Error(err)
		}
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() && c.addr == "" {
		if _, addr, ok := strings.Cut(lines.Text(), "company at "); ok {
			c.addr = addr
			break
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return c
}

// ill has f done again and again, from now to the end.
func (c *company) ill(f func(round int)) {
	c.wg.Go(func() {
		for round := 0; ; round++ {
			select {
			case <-c.stop:
				return
			default:
				f(round)
			}
		}
	})
}

// pause waits, or for the end.
func (c *company) pause(d time.Duration) {
	select {
	case <-c.stop:
	case <-time.After(d):
	}
}

// from connects from an address, or answers nil.
func (c *company) from(ip string) net.Conn {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}, Timeout: 10 * time.Second}
	nc, err := d.Dial("tcp", c.addr)
	if err != nil {
		return nil
	}
	_ = nc.(*net.TCPConn).SetLinger(0) // no ports left waiting
	return nc
}

// deaf asks for 128 MiB on one connection and takes none of it.
func (c *company) deaf(large []byte) {
	c.ill(func(int) {
		nc := c.from("127.0.0.2")
		for i := uint32(0); nc != nil && i < 128; i++ {
			_, _ = nc.Write(rawCall(c.t, i, nfs3.NFSPROC3_READ, c.auth, &nfs3.READ3args{File: fh(large), Count: 1 << 20}))
		}
		c.pause(time.Hour)
		if nc != nil {
			_ = nc.Close()
		}
	})
}

// slow sends a large WRITE by 8 KiB in 9 s, again when it has lost its connection.
func (c *company) slow(ip string, h []byte) {
	rec := rawCall(c.t, 1, nfs3.NFSPROC3_WRITE, c.auth, &nfs3.WRITE3args{File: fh(h), Count: 1 << 20, Data: make([]byte, 1<<20)})
	c.ill(func(int) {
		nc := c.from(ip)
		for at := 0; nc != nil && at+8<<10 < len(rec); at += 8 << 10 {
			if _, err := nc.Write(rec[at : at+8<<10]); err != nil {
				break
			}
			c.pause(9 * time.Second)
		}
		if nc != nil {
			_ = nc.Close()
		}
		c.pause(100 * time.Millisecond)
	})
}

// locks asks for locks by message, and then for others, from an address that no rule
// admits.
func (c *company) locks(ip string, h []byte, n int) {
	c.ill(func(round int) {
		nc := c.from(ip)
		for i := uint32(0); nc != nil && i < uint32(n); i++ {
			args := &nlm4.Nlm4Lockargs{Block: true, Exclusive: true, Alock: nlm4.Nlm4Lock{
				CallerName: fmt.Append(nil, "stranger", round, i), Fh: h, Oh: []byte("x"), Svid: int32(i), LLen: 1}}
			p := nlm4.NLMPROC4_LOCK_MSG
			if i%2 == 0 {
				p = nlm4.NLMPROC4_LOCK
			}
			if _, err := nc.Write(rawCall(c.t, i, p, c.auth, args)); err != nil {
				break
			}
		}
		if nc != nil {
			go func() { _, _ = io.Copy(io.Discard, nc) }()
			c.pause(5 * time.Second)
			_ = nc.Close()
		}
	})
}

// unnamed asks for attributes from one address after the other. The name service does not
// answer for them.
func (c *company) unnamed(first, n int, h []byte) {
	c.ill(func(round int) {
		i := first + round%n
		nc := c.from(fmt.Sprintf("127.%d.%d.%d", 10+i/62500, i/250%250, i%250+1))
		if nc == nil {
			return
		}
		_, _ = nc.Write(rawCall(c.t, 1, nfs3.NFSPROC3_GETATTR, c.auth, &nfs3.GETATTR3args{Object: fh(h)}))
		_ = nc.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		_, _ = nc.Read(make([]byte, 100))
		_ = nc.Close()
	})
}

// sample looks at the process, and answers its memory and descriptors.
func (c *company) sample() (rss int64, files int) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.pid))
	if err != nil {
		c.t.Error(err)
	}
	for line := range strings.Lines(string(status)) {
		if v, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 10, 64)
			rss = kb << 10
		}
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", c.pid))
	if err != nil {
		c.t.Error(err)
	}
	return rss, len(open)
}

// TestBadCompany measures an honest client beside 128 READs whose replies are not read, 130
// large WRITEs that stop half way, 5,000 locks of strangers at a time, and 9,000 addresses
// for which the name service does not answer. It takes a minute.
func TestBadCompany(t *testing.T) {
	if os.Getenv("NFSBOX_SOAK") == "" {
		t.Skip("it measures: set NFSBOX_SOAK")
	}
	c := newCompany(t)
	r := &rig{t: t, addr: c.addr, client: dial(t, c.addr)}
	r.as(root)
	r.root = r.mount("/")
	c.root, c.auth = r.root, r.auth
	const size = 1 << 20
	data := noise(size)
	large, other := r.file(r.root, "large", 0o666, ""), r.file(r.root, "other", 0o666, "")
	r.status(r.write(large, 0, data, nfs3.FILE_SYNC).Status, nfs3.NFS3_OK)

	c.deaf(large)
	for i := range 130 {
		c.slow([]string{"127.0.0.3", "127.0.5.1", "127.0.5.2"}[i%3], other)
	}
	for i := range 5 {
		c.locks(fmt.Sprint("127.0.6.", i+1), other, 1000)
	}
	for i := range 150 {
		c.unnamed(i*60, 60, large)
	}
	var most struct {
		rss   int64
		files int
	}
	c.ill(func(int) {
		rss, files := c.sample()
		most.rss, most.files = max(most.rss, rss), max(most.files, files)
		c.pause(50 * time.Millisecond)
	})
	time.Sleep(5 * time.Second) // let them all come; what follows is measured, not judged by it

	took, refused := honest(t, c, large, data)
	close(c.stop)
	c.wg.Wait()
	for _, name := range []string{"GETATTR", "READ", "WRITE", "LOCK"} {
		d := took[name]
		slices.Sort(d)
		t.Logf("%-8s %6d calls: median %v, p99 %v, most %v", name, len(d), d[len(d)/2], d[len(d)*99/100], d[len(d)-1])
	}
	t.Logf("server: %d MiB, %d descriptors at most; refused: %v", most.rss>>20, most.files, refused)
	if len(refused) != 0 || most.rss > 200<<20 || most.files > 600 {
		t.Error("more than the server may take, or somebody was refused")
	}
}

// honest works for half a minute, and answers how long its calls took and which were
// refused.
func honest(t *testing.T, c *company, h []byte, data []byte) (map[string][]time.Duration, []string) {
	const period = 30 * time.Second
	var mu sync.Mutex
	took, refused := make(map[string][]time.Duration), []string(nil)
	var wg sync.WaitGroup
	work := func(name string, p *xdr.Proc, args func(i int) xdr.Appender, res func() (xdr.Unmarshaler, func() string)) {
		wg.Go(func() {
			client := dial(t, c.addr)
			for i, end := 0, time.Now().Add(period); time.Now().Before(end); i++ {
				into, status := res()
				start := time.Now()
				reply, err := client.Call(t.Context(), p, c.auth, args(i), into)
				d := time.Since(start)
				st := ""
				if err != nil {
					st = err.Error()
				} else {
					st = status()
				}
				reply.Release()
				mu.Lock()
				took[name] = append(took[name], d)
				if st != "" {
					refused = append(refused, name+": "+st)
				}
				mu.Unlock()
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	ok := func(st nfs3.Nfsstat3) string {
		if st == nfs3.NFS3_OK {
			return ""
		}
		return st.String()
	}
	work("GETATTR", nfs3.NFSPROC3_GETATTR, func(int) xdr.Appender { return &nfs3.GETATTR3args{Object: fh(h)} },
		func() (xdr.Unmarshaler, func() string) {
			r := &nfs3.GETATTR3res{}
			return r, func() string { return ok(r.Status) }
		})
	work("READ", nfs3.NFSPROC3_READ, func(int) xdr.Appender { return &nfs3.READ3args{File: fh(h), Count: uint32(len(data))} },
		func() (xdr.Unmarshaler, func() string) {
			r := &nfs3.READ3res{Resok: nfs3.READ3resok{Data: make([]byte, len(data))}}
			return r, func() string { return ok(r.Status) }
		})
	work("WRITE", nfs3.NFSPROC3_WRITE,
		func(int) xdr.Appender {
			return &nfs3.WRITE3args{File: fh(h), Count: uint32(len(data)), Stable: nfs3.UNSTABLE, Data: data}
		},
		func() (xdr.Unmarshaler, func() string) {
			r := &nfs3.WRITE3res{}
			return r, func() string { return ok(r.Status) }
		})
	work("LOCK", nlm4.NLMPROC4_LOCK,
		func(i int) xdr.Appender {
			return &nlm4.Nlm4Lockargs{Exclusive: true, Alock: nlm4.Nlm4Lock{CallerName: []byte("honest"), Fh: h, Oh: []byte("h"), LOffset: uint64(i % 100), LLen: 1}}
		},
		func() (xdr.Unmarshaler, func() string) {
			r := &nlm4.Nlm4Res{}
			return r, func() string {
				if r.Stat.Stat == nlm4.NLM4_GRANTED {
					return ""
				}
				return r.Stat.Stat.String()
			}
		})
	wg.Wait()
	return took, refused
}
