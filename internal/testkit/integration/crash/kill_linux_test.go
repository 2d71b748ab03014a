package crash

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/internal/testkit/built"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

// killedServer is a server in a process of its own, on the real disk.
type killedServer struct {
	bin    string
	rig    *crashRig
	cmd    *exec.Cmd
	out    io.ReadCloser
	stderr bytes.Buffer
	dead   atomic.Bool
}

// begin starts the process and waits until it listens.
func (k *killedServer) begin() error {
	k.stderr.Reset()
	k.dead.Store(false)
	k.cmd = exec.Command(k.bin, "serve", filepath.Join(k.rig.dir, "root"), "--localio", "off", "--listen", "127.0.0.1:0",
		"--state-dir", filepath.Join(k.rig.dir, "state"), "--handles", k.rig.mode.String())
	k.cmd.Stderr = &k.stderr
	var err error
	if k.out, err = k.cmd.StdoutPipe(); err != nil {
		return err
	}
	if err := k.cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(k.out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the server did not begin: %w", errors.Join(err, k.cmd.Wait(), errors.New(k.stderr.String())))
	}
	u, err := url.Parse(strings.TrimSpace(line))
	if err != nil {
		return err
	}
	k.rig.addr = u.Host
	k.rig.l.life++
	return nil
}

// live checks what the last life has left, and works until the process is killed. The seed
// decides when.
func (k *killedServer) live(t *testing.T, work time.Duration) error {
	c := k.rig
	if err := k.begin(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cl, err := c.client(ctx)
	if err != nil {
		return err
	}
	err = c.mount(cl)
	check := &checker{crashClient: cl, l: c.l, isDead: k.dead.Load, fail: c.fail, adopt: true} // the power stays
	if err == nil {
		err = check.run()
	}
	if c.l.life == 1 && err == nil {
		c.share(cl)
	}
	var wg sync.WaitGroup
	for n := range c.workers {
		cl, e := c.client(ctx)
		if err = errors.Join(err, e); err != nil {
			break
		}
		w := c.worker(cl, n)
		w.isDead = k.dead.Load
		wg.Go(func() {
			for !w.stop && !c.failed() && ctx.Err() == nil {
				w.step()
			}
		})
	}
	if err == nil {
		timer := time.AfterFunc(work, func() {
			k.dead.Store(true)
			_ = k.cmd.Process.Kill() // Wait says whether that was so
			cancel()
		})
		wg.Wait()
		timer.Stop()
	}
	k.dead.Store(true)
	cancel()
	_ = k.cmd.Process.Kill()
	_ = k.cmd.Wait() // which says that it was killed
	for _, cl := range c.clients {
		err = errors.Join(err, cl.Close())
	}
	c.clients = nil
	return err
}

// TestCrashKill is the suite over the real disk: the server is killed, and begun
// anew, while clients work. The page cache survives, so this is about the server's
// own state, and about the kernel's handles.
func TestCrashKill(t *testing.T) {
	need.Time(t, "a server that is killed over the real disk")
	kills := 3
	if os.Getenv("NFSBOX_SOAK") != "" {
		kills = 100
	}
	bin, err := built.Into(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []localfs.Mode{localfs.HandlesKernel, localfs.HandlesMap} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel() // it waits for the disk
			if mode == localfs.HandlesKernel && os.Geteuid() != 0 {
				t.Skip("the kernel's handles are root's")
			}
			c, err := newCrashRig(t.TempDir(), mode, 1, 4, "")
			if err != nil {
				t.Fatal(err)
			}
			k := &killedServer{bin: bin, rig: c}
			r := rand.New(rand.NewPCG(1, 2))
			for n := range kills + 1 {
				if n == kills {
					c.workers = 0 // what the last kill has left
				}
				if err := k.live(t, 50*time.Millisecond+time.Duration(r.IntN(200))*time.Millisecond); err != nil {
					t.Fatalf("kill %d: %v\n%s", n, err, k.stderr.String())
				}
				if c.failed() {
					break
				}
			}
			if err := c.disk.Close(); err != nil {
				t.Error(err)
			}
			t.Logf("%d kills, %d calls acknowledged", kills, c.l.acked)
			for _, lost := range c.losses {
				t.Error(lost)
			}
		})
	}
}
