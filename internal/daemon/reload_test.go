package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
)

// reloader is a server whose configuration a test changes.
type reloader struct {
	hangup chan os.Signal
	next   chan func() (*Config, error)
	log    *logBuffer
	url    string
}

func runReloader(t *testing.T, c Config) *reloader {
	r := &reloader{hangup: make(chan os.Signal), next: make(chan func() (*Config, error), 1)}
	r.url, r.log, _ = runIn(t, c, World{File: "/etc/nfsbox.toml", Reload: r.hangup, Reread: func() (*Config, error) { return (<-r.next)() }})
	return r
}

// reload goes over to c, or finds err, and returns when that is done: a second
// one is read only then.
func (r *reloader) reload(c *Config, err error) {
	r.next <- func() (*Config, error) { return c, err }
	r.hangup <- os.Interrupt
	r.next <- func() (*Config, error) { return nil, errors.New("the marker") }
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
	first := config(one, state)
	first.Exports[0].Path = "/one"
	first.fill()
	r := runReloader(t, first)
	c := client(t, r.url)
	file := lookup(t, c, mount(t, c, "/one"), "file")
	if st := mountStatus(t, c, "/two"); st == mount3.MNT3_OK {
		t.Error("/two is there already")
	}

	second := first
	second.MaxConnections, second.LogLevel, second.Slow = 7, "warn", Duration(slowFloor)
	second.Exports = append(second.Exports[:1:1], Export{Path: "/two", Dir: two, Handles: "auto", Rule: Rule{Squash: "root"}})
	r.reload(&second, nil)
	mount(t, c, "/two")
	if got, _ := read(t, c, file); got != "still here" {
		t.Errorf("READ of a file of before: %q", got)
	}
	if !strings.Contains(r.log.String(), "keys=max-connections") || strings.Contains(r.log.String(), "slow log-level") {
		t.Errorf("the log does not say what waits for a restart:\n%s", r.log)
	}

	for what, x := range map[string]struct {
		c   *Config
		err error
	}{
		"an error":                  {nil, errors.New("line 3 is broken")},
		"no such directory":         {changed(second, func(c *Config) { c.Exports[1].Dir = filepath.Join(two, "none") }), nil},
		"a path twice":              {changed(second, func(c *Config) { c.Exports[1].Path = "/one" }), nil},
		"the state within the tree": {changed(second, func(c *Config) { c.Exports[1].Dir = filepath.Dir(state) }), nil},
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

	r.reload(changed(second, func(c *Config) { c.Exports = c.Exports[1:] }), nil)
	if got, st := read(t, c, file); got != "" || st == 0 {
		t.Errorf("READ of what is exported no longer: %q, %v", got, st)
	}
	mount(t, c, "/two")
}

// changed is a copy of c with a change.
func changed(c Config, change func(*Config)) *Config {
	c.Exports = append([]Export(nil), c.Exports...)
	change(&c)
	return &c
}

// TestReloadSquash reloads a configuration whose addresses are all of loopback,
// while the server goes on to listen where others can reach it.
func TestReloadSquash(t *testing.T) {
	c := config(t.TempDir(), t.TempDir())
	c.Listen = []string{"0.0.0.0:0"}
	r := runReloader(t, c)
	next := config(c.Exports[0].Dir, c.StateDir)
	next.fill()
	r.reload(&next, nil)
	if log := r.log.String(); strings.Count(log, "squash=root") != 2 || strings.Contains(log, "squash=none") {
		t.Errorf("root of everybody is believed:\n%s", log)
	}
}
