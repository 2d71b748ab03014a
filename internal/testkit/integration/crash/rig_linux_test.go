package crash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/internal/testkit/sim"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

const (
	crashFound = 24  // files for each worker, that are there before the server
	crashDirs  = 2   // directories that the workers share
	crashSteps = 200 // at most, of each worker in one life
	maxLosses  = 5   // are reported of one run
)

// crashRig is a server over a disk that forgets, with the clients that use it and
// the ledger of what they were told.
type crashRig struct {
	dir     string // of root, state and shadow
	mode    localfs.Mode
	seed    uint64
	workers int
	skip    string // the place whose syncs are left out, in some lives
	idle    bool   // the workers have nothing more to do
	r       *rand.Rand
	disk    *sim.Disk
	sys     *crashSys
	l       *ledger

	fs      *localfs.FS
	srv     *nfsserver.Server
	addr    string
	served  chan error
	clients []*oncrpc.Client

	mu     sync.Mutex
	losses []string
}

func newCrashRig(dir string, mode localfs.Mode, seed uint64, workers int, skip string) (*crashRig, error) {
	c := &crashRig{dir: dir, mode: mode, seed: seed, workers: workers, skip: skip, r: rand.New(rand.NewPCG(seed, 0)), l: newLedger()}
	for _, d := range []string{"root", "state"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			return nil, err
		}
	}
	for w := range workers {
		for k := range crashFound {
			name := fmt.Sprintf("found-%d-%d", w, k)
			if err := os.WriteFile(filepath.Join(dir, "root", name), []byte(name), 0o644); err != nil {
				return nil, err
			}
			c.l.set(place{c.l.root, name}, &object{typ: nfs3.NF3REG, owner: -2, found: true, data: content{stable: []byte(name)}})
		}
	}
	var err error
	if c.disk, err = sim.NewDisk(linux.OS{}, filepath.Join(dir, "shadow"), seed); err != nil {
		return nil, err
	}
	c.sys = &crashSys{disk: c.disk, sites: make(map[string]int), skip: skip, patience: c.r.IntN(4)}
	return c, nil
}

func (c *crashRig) fail(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.losses) < maxLosses {
		c.losses = append(c.losses, fmt.Sprintf("life %d: ", c.l.life)+fmt.Sprintf(format, args...))
	}
}

func (c *crashRig) failed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.losses) > 0
}

// start begins a life of the server.
func (c *crashRig) start() (err error) {
	c.l.life++
	rnd := sim.NewRand(c.seed<<16 + uint64(c.l.life))
	c.fs, err = localfs.New(filepath.Join(c.dir, "root"), localfs.Options{
		Handles: c.mode, StateDir: filepath.Join(c.dir, "state"), Sys: c.sys, Rand: rnd.Fill,
	})
	if err != nil {
		return err
	}
	table, err := export.NewTable(export.Key{1, 2, 3}, export.Export{Path: "/", FS: c.fs})
	if err != nil {
		return err
	}
	if c.srv, err = nfsserver.New(nfsserver.Options{Exports: table}); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	c.addr, c.served = l.Addr().String(), make(chan error, 1)
	srv, served := c.srv, c.served
	go func() { served <- srv.Serve(l) }()
	return nil
}

// stop ends a life: the process is gone.
func (c *crashRig) stop() error {
	c.sys.kill()
	var err error
	for _, cl := range c.clients {
		err = errors.Join(err, cl.Close())
	}
	c.clients = nil
	if c.srv != nil {
		err = errors.Join(err, c.srv.Close())
		if e := <-c.served; !errors.Is(e, nfsserver.ErrClosed) {
			err = errors.Join(err, e)
		}
		c.srv = nil
	}
	if c.fs != nil {
		_ = vfs.CloseFS(c.fs) // whose disk is gone
		c.fs = nil
	}
	return err
}

func (c *crashRig) client(ctx context.Context) (*crashClient, error) {
	who := oncrpc.AuthSys{Machine: "test", UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	auth, err := who.Auth()
	if err != nil {
		return nil, err
	}
	addr := c.addr
	cl := oncrpc.NewClient(oncrpc.ClientOptions{
		FirstXID: uint32(c.l.life)<<16 + uint32(len(c.clients))<<8,
		Dial: func(ctx context.Context) (net.Conn, error) {
			var d net.Dialer
			nc, err := d.DialContext(ctx, "tcp", addr)
			if err != nil {
				return nil, err
			}
			return nc, nc.(*net.TCPConn).SetLinger(0)
		},
	})
	c.clients = append(c.clients, cl)
	return &crashClient{rpc: cl, ctx: ctx, auth: auth}, nil
}

// mount checks that the root's handle is the one of all lives.
func (c *crashRig) mount(cl *crashClient) error {
	defer cl.done()
	var res mount3.Mountres3
	if err := cl.call(mount3.MOUNTPROC3_MNT, &mount3.Mountargs{Path: []byte("/")}, &res); err != nil {
		return err
	}
	if res.FhsStatus != mount3.MNT3_OK {
		return fmt.Errorf("mount: %v", res.FhsStatus)
	}
	h := bytes.Clone(res.Mountinfo.Fhandle)
	if c.l.root.handle != nil && !bytes.Equal(h, c.l.root.handle) {
		c.fail("the handle of the root is another one")
	}
	c.l.root.handle = h
	return nil
}

// share makes the directories in which the workers meet.
func (c *crashRig) share(cl *crashClient) {
	w := c.worker(cl, -1)
	for range crashDirs {
		p, o := place{c.l.root, fmt.Sprintf("shared-%d", w.made)}, &object{typ: nfs3.NF3DIR, owner: -1, mayGo: true}
		w.made++
		c.l.at(p).may(o)
		var res nfs3.MKDIR3res
		if !w.do(nfs3.NFSPROC3_MKDIR, &nfs3.MKDIR3args{Where: at(c.l.root.handle, p.name), Attributes: mode(0o777)}, &res, func() int32 { return int32(res.Status) }) {
			return
		}
		c.l.names[o] = make(map[string]*oneOf[*object])
		w.born(p, o, &res.Resok.Obj, &res.Resok.ObjAttributes)
	}
	w.done()
}

func (c *crashRig) worker(cl *crashClient, n int) *worker {
	return &worker{crashClient: cl, l: c.l, n: n, r: rand.New(rand.NewPCG(c.r.Uint64(), uint64(n))), super: os.Geteuid() == 0,
		isDead: c.sys.isDead, fail: c.fail}
}

// live is one life: what the last one has left is checked, and then the workers
// work until the process dies. adopt: it was the power that went before.
func (c *crashRig) live(ctx context.Context, adopt bool, dieCall, dieSync int) error {
	c.sys.rearm(0, 0)
	if err := c.start(); err != nil {
		if c.sys.isDead() {
			return c.stop()
		}
		c.fail("the server does not start: %v", err)
		return c.stop()
	}
	cl, err := c.client(ctx)
	if err != nil {
		return err
	}
	if err := c.mount(cl); err != nil {
		c.fail("%v", err)
		return c.stop()
	}
	check := &checker{crashClient: cl, l: c.l, isDead: c.sys.isDead, fail: c.fail, adopt: adopt, alone: c.workers == 1}
	switch err := check.run(); {
	case errors.Is(err, errDied):
		return c.stop()
	case err != nil:
		return errors.Join(err, c.stop())
	}
	if c.failed() {
		return c.stop()
	}
	if c.l.life == 1 || c.l.places(-1, isType(nfs3.NF3DIR)) == nil {
		c.share(cl)
	}
	if c.sys.skipped == 0 {
		c.sys.rearm(dieCall, dieSync)
	}
	if c.idle {
		return c.stop()
	}
	var wg sync.WaitGroup
	for n := range c.workers {
		cl, err := c.client(ctx)
		if err != nil {
			return err
		}
		w := c.worker(cl, n)
		wg.Go(func() {
			for range crashSteps {
				if w.stop || c.failed() {
					return
				}
				w.step()
			}
		})
	}
	wg.Wait()
	return c.stop()
}

// run lives several lives and returns what was lost.
func (c *crashRig) run(ctx context.Context, lives int) (err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	adopt := true
	for range lives {
		call, sync := 0, 0
		if c.r.IntN(2) == 0 {
			call = 1 + c.r.IntN(120*c.workers)
		} else {
			sync = 1 + c.r.IntN(50*c.workers)
		}
		if err := c.live(ctx, adopt, call, sync); err != nil {
			return errors.Join(err, c.disk.Close())
		}
		if c.failed() {
			break
		}
		skipped := c.sys.skipped > 0
		power := c.r.IntN(5)
		if c.skip != "" {
			power = c.r.IntN(3) // more often the process alone
			c.sys.leave(c.skip, c.r.IntN(2) == 0)
		}
		adopt = power != 0 || skipped
		if adopt {
			loss := sim.LoseAll
			if power > 2 && !skipped {
				loss = sim.LoseSome
			}
			if err := c.disk.Crash(loss); err != nil {
				return errors.Join(err, c.disk.Close())
			}
		}
	}
	if !c.failed() { // what the last one has left
		c.sys.leave("", false)
		c.idle = true
		err = c.live(ctx, adopt, 0, 0)
	}
	return errors.Join(err, c.disk.Close())
}

// fh, at and mode are arguments of calls.
func fh(h []byte) nfs3.NfsFh3 { return nfs3.NfsFh3{Data: h} }

func at(dir []byte, name string) nfs3.Diropargs3 {
	return nfs3.Diropargs3{Dir: fh(dir), Name: []byte(name)}
}

func mode(m uint32) nfs3.Sattr3 {
	return nfs3.Sattr3{Mode: nfs3.SetMode3{SetIt: true, Mode: m}}
}

// lossesOf is a whole run.
func lossesOf(t *testing.T, mode localfs.Mode, seed uint64, workers, lives int, skip string) (*crashRig, []string) {
	t.Helper()
	dir, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := newCrashRig(dir, mode, seed, workers, skip)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.run(t.Context(), lives); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	return c, c.losses
}
