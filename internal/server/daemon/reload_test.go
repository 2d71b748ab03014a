package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/testkit/logbuf"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
)

// reloader is a server whose configuration a test changes.
type reloader struct {
	hangup chan os.Signal
	next   chan func() (*config.Config, error)
	log    *logbuf.Buffer
	url    string
	stop   func() error
}

func runReloader(t *testing.T, c config.Config) *reloader { return runReloaderIn(t, c, nil) }

func runReloaderIn(t *testing.T, c config.Config, random func([]byte)) *reloader {
	r := &reloader{hangup: make(chan os.Signal), next: make(chan func() (*config.Config, error), 1)}
	r.url, r.log, r.stop = runIn(t, c, World{
		File: "/etc/nfsbox.toml", Reload: r.hangup, Reread: func() (*config.Config, error) { return (<-r.next)() }, Rand: random,
	})
	return r
}

// reload goes over to c, or finds err, and returns when that is done: a second
// one is read only then.
func (r *reloader) reload(c *config.Config, err error) {
	r.next <- func() (*config.Config, error) { return c, err }
	r.hangup <- os.Interrupt
	r.next <- func() (*config.Config, error) { return nil, errors.New("the marker") }
	r.hangup <- os.Interrupt
}

// mountStatus tries to mount.
func mountStatus(t *testing.T, c *oncrpc.Client, path string) mount3.Mountstat3 {
	t.Helper()
	var res mount3.Mountres3
	reply, err := c.Call(t.Context(), mount3.MOUNTPROC3_MNT, auth(t), &mount3.Mountargs{Path: []byte(path)}, &res)
	if err != nil {
		t.Fatal(err)
	}
	reply.Release()
	return res.FhsStatus
}

// TestReload adds and takes away exports while one connection goes on.
func TestReload(t *testing.T) {
	state, one, two := t.TempDir(), t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(one, "file"), []byte("still here"), 0o644); err != nil {
		t.Fatal(err)
	}
	first := confOf(one, state)
	first.Exports[0].Path = "/one"
	first.Fill()
	r := runReloader(t, first)
	c := client(t, r.url)
	file := lookup(t, c, mount(t, c, "/one"), "file")
	if st := mountStatus(t, c, "/two"); st == mount3.MNT3_OK {
		t.Error("/two is there already")
	}

	second := first
	second.MaxConnections, second.Log.Level, second.Slow = 7, "warn", config.Duration(config.SlowFloor)
	second.Exports = append(second.Exports[:1:1], config.Export{Path: "/two", Dir: two, Handles: "auto", Rule: config.Rule{Squash: "root"}})
	mount(t, c, "/")
	r.reload(&second, nil)
	mount(t, c, "/two")
	if st := mountStatus(t, c, "/"); st != mount3.MNT3ERR_NOENT || strings.Count(r.log.String(), "stood for the only export") != 1 {
		t.Errorf("MNT of /: %v; the log says\n%s", st, r.log)
	}
	if got, _ := read(t, c, file); got != "still here" {
		t.Errorf("READ of a file of before: %q", got)
	}
	if !strings.Contains(r.log.String(), "keys=max-connections") || strings.Contains(r.log.String(), "slow log.level") {
		t.Errorf("the log does not say what waits for a restart:\n%s", r.log)
	}

	for what, x := range map[string]struct {
		c   *config.Config
		err error
	}{
		"an error":                  {nil, errors.New("line 3 is broken")},
		"no such directory":         {changed(second, func(c *config.Config) { c.Exports[1].Dir = filepath.Join(two, "none") }), nil},
		"a path twice":              {changed(second, func(c *config.Config) { c.Exports[1].Path = "/one" }), nil},
		"the state within the tree": {changed(second, func(c *config.Config) { c.Exports[1].Dir = filepath.Dir(state) }), nil},
	} {
		r.reload(x.c, x.err)
		if st := mountStatus(t, c, "/two"); st != mount3.MNT3_OK {
			t.Errorf("%s: /two is gone: %v", what, st)
		}
		if got, _ := read(t, c, file); got != "still here" {
			t.Errorf("%s: READ: %q", what, got)
		}
	}
	// The markers fail as well, the last of them perhaps in a moment.
	if n := strings.Count(r.log.String(), "nothing has changed"); n < 4+4 || n > 4+5 {
		t.Errorf("%d reloads have failed:\n%s", n, r.log)
	}

	r.reload(changed(second, func(c *config.Config) { c.Exports = c.Exports[1:] }), nil)
	if got, st := read(t, c, file); got != "" || st == 0 {
		t.Errorf("READ of what is exported no longer: %q, %v", got, st)
	}
	mount(t, c, "/two")
}

// changed is a copy of c with a change.
func changed(c config.Config, change func(*config.Config)) *config.Config {
	c.Exports = append([]config.Export(nil), c.Exports...)
	change(&c)
	return &c
}

// TestReloadSquash reloads a configuration whose addresses are all of loopback,
// while the server goes on to listen where others can reach it.
func TestReloadSquash(t *testing.T) {
	c := confOf(t.TempDir(), t.TempDir())
	c.Listen = []string{"0.0.0.0:0"}
	r := runReloader(t, c)
	next := confOf(c.Exports[0].Dir, c.StateDir)
	next.Fill()
	r.reload(&next, nil)
	if log := r.log.String(); strings.Count(log, "squash=root") != 2 || strings.Contains(log, "squash=none") {
		t.Errorf("root of everybody is believed:\n%s", log)
	}
}

// TestReloadHangs ends a server of which a reload does not come back, as from a
// directory whose server is dead.
func TestReloadHangs(t *testing.T) {
	dead, hangs := make(chan struct{}), make(chan struct{})
	hangup := make(chan os.Signal)
	conf := confOf(t.TempDir(), t.TempDir())
	u, log, stop := runIn(t, conf, World{Reload: hangup, Reread: func() (*config.Config, error) {
		close(hangs)
		<-dead
		return nil, errors.New("too late")
	}})
	c := client(t, u)
	hangup <- os.Interrupt
	<-hangs
	mount(t, c, "/") // it serves on
	hangUp(t, c)
	if err := stop(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "a reload is still at work") {
		t.Errorf("the log does not tell why it ended without the reload:\n%s", log)
	}
	close(dead)
}

// TestReloadAtTheEnd has a reload ready when nobody takes it any more: what it has
// opened is closed.
func TestReloadAtTheEnd(t *testing.T) {
	ends, hangs := make(chan struct{}), make(chan struct{})
	hangup := make(chan os.Signal)
	conf := confOf(t.TempDir(), t.TempDir())
	next := confOf(t.TempDir(), conf.StateDir)
	next.Fill()
	before := openIn(t, next.Exports[0].Dir)
	_, _, stop := runIn(t, conf, World{Reload: hangup, File: "/etc/nfsbox.toml", Reread: func() (*config.Config, error) {
		close(hangs)
		<-ends
		return &next, nil
	}})
	hangup <- os.Interrupt
	<-hangs
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	close(ends)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if after := openIn(t, next.Exports[0].Dir); after != before {
		t.Errorf("%d descriptors in the directory of the reload are open, %d were", after, before)
	}
}

// openIn is how many descriptors of the process lead to dir or below; 0 where the
// system does not tell.
func openIn(t *testing.T, dir string) (n int) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(to, dir) {
			n++
		}
	}
	return n
}
