package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/server/iogate"
	"github.com/nfsbox/nfsbox/internal/server/localfs"
)

// site is all that makes one open directory differ from another. Exports with
// the same site share it, and a reload that leaves the site alone leaves its
// descriptors, and what it knows, alone.
type site struct {
	dir                       string // without symbolic links
	at                        place  // where that has led to
	handles                   string
	crossMounts, localWriters bool
}

// directories are those that are open.
type directories map[site]*directory

// directory is one that is open, and its way through the gate.
type directory struct {
	fs    *localfs.FS
	lanes *iogate.Lanes
	tree  []byte // see export.Export
	ended func() // called when it is closed
}

func (x *directory) close() error {
	defer x.ended()
	defer x.lanes.Close()
	return x.fs.Close()
}

// sites are the directories that are open, and those that reloads have taken out
// of service and that calls of before may still be at work in.
type sites struct {
	open    atomic.Pointer[directories] // replaced as a whole, by run's goroutine alone
	leaving sync.WaitGroup
	left    atomic.Int32 // how many are leaving
	states  sync.Map     // the place of each that is open or leaving, by its folder
	end     context.CancelFunc
	ended   context.Context
}

// now is what is open.
func (s *sites) now() directories {
	if p := s.open.Load(); p != nil {
		return *p
	}
	return nil
}

// taken reports whether the folder is that of another directory, not closed yet.
func (s *sites) taken(state string, by place) bool {
	at, ok := s.states.Load(state)
	return ok && at != by
}

// retire closes a directory as soon as nobody uses it any more, or when the
// server has ended.
func (d *daemon) retire(s site, x *directory) {
	d.sites.left.Add(1)
	d.sites.leaving.Go(func() {
		defer d.sites.left.Add(-1)
		// The error is the end of the server, after which nobody is left.
		_ = d.table.Drain(d.sites.ended, x.fs)
		if err := x.close(); err != nil {
			d.log.Error("a directory that is served no longer", slog.String("dir", s.dir), slog.Any("error", err))
		}
	})
}

// close makes stable what was written, and closes all. The server has ended, and
// end was called.
func (s *sites) close() (err error) {
	s.leaving.Wait()
	for _, x := range s.now() {
		err = errors.Join(err, x.close())
	}
	return err
}

// openTable opens the directories and makes the table that exports them.
func (d *daemon) openTable() error {
	open, exports, err := d.openSites(d.c)
	if err != nil {
		return err
	}
	d.sites.open.Store(&open)
	d.table, err = export.New(export.Options{
		Key: d.key, Now: d.w.Now,
		Report: func(err error) { d.log.Warn("clients", slog.Any("error", err)) },
	}, exports...)
	return err
}

// openSites opens the directories of c that are not open yet. After an error none
// of them is.
func (d *daemon) openSites(c *Config) (open directories, exports []export.Export, err error) {
	now := d.sites.now()
	open = make(directories)
	defer func() {
		if err == nil {
			return
		}
		for s, x := range open {
			if now[s] == nil {
				err = errors.Join(err, x.close())
			}
		}
	}()
	for i := range c.Exports {
		e := &c.Exports[i]
		if out, err := d.unmounted(e); err != nil || out {
			if err != nil {
				return open, nil, err
			}
			continue
		}
		s, err := siteOf(e)
		if err != nil {
			return open, nil, err
		}
		if open[s] == nil {
			open[s] = now[s]
		}
		if open[s] == nil {
			if open[s], err = d.openSite(c, e, s); err != nil {
				delete(open, s)
				return open, nil, err
			}
		}
		exports = append(exports, e.table(open[s]))
	}
	if len(exports) == 0 {
		return open, nil, errors.New("nothing can be exported: no directory that must be a mount point (mountpoint) is one")
	}
	return open, exports, nil
}

func siteOf(e *Export) (s site, err error) {
	s = site{handles: e.Handles, crossMounts: e.CrossMounts, localWriters: e.LocalWriters}
	if s.dir, err = realDir(e.Dir); err == nil {
		s.at, _, err = placeOf(s.dir)
	}
	return s, err
}

// realDir is the absolute path of dir, without symbolic links.
func realDir(dir string) (string, error) {
	real, err := filepath.Abs(dir)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err != nil {
		return "", fmt.Errorf("serve %s: %w", dir, err)
	}
	return real, nil
}

// openSite opens one directory, whose map of handles lies in the server's folder.
func (d *daemon) openSite(c *Config, e *Export, s site) (*directory, error) {
	mode, err := handleMode(s.handles)
	if err != nil {
		return nil, err
	}
	state, err := d.siteState(&s)
	if err != nil {
		return nil, err
	}
	x := &directory{lanes: d.gate.Export(e.Path)}
	x.fs, err = localfs.New(s.dir, localfs.Options{
		Handles: mode, StateDir: state, CrossMounts: s.crossMounts, LocalWriters: s.localWriters, MaxOpen: openFiles(c, fileLimit()),
		Locks: &d.locks, Gate: x.lanes, Rand: d.w.Rand,
		Report: func(err error) { d.log.Warn("the directory", slog.String("dir", s.dir), slog.Any("error", err)) },
	})
	if err != nil {
		x.lanes.Close()
		return nil, err
	}
	d.sites.states.Store(state, s.at)
	x.ended = func() { d.sites.states.Delete(state) }
	if x.tree, err = s.tree(x.fs); err != nil {
		return nil, errors.Join(err, x.close())
	}
	return x, nil
}

// openFiles is how many files a directory may keep open: as many as is configured, and
// all directories together no more than half of what the process may, which is limit.
func openFiles(c *Config, limit uint64) int {
	share := limit / 2 / uint64(max(len(c.Exports), 1))
	return int(min(uint64(c.MaxOpenFiles), max(share, minOpenFiles)))
}

func handleMode(s string) (localfs.Mode, error) {
	for _, m := range []localfs.Mode{localfs.HandlesAuto, localfs.HandlesKernel, localfs.HandlesMap} {
		if s == m.String() {
			return m, nil
		}
	}
	return 0, fmt.Errorf("handles %q: not one of auto, kernel and map", s)
}

// table is the export as package export wants it.
func (e *Export) table(of *directory) export.Export {
	x := export.Export{Path: e.Path, FS: of.fs, Tree: of.tree, ID: e.FSID, ReadOnly: e.readOnly(), Async: e.Async,
		Remote: e.LocalIO != nil && !*e.LocalIO}
	for _, client := range e.rules() {
		x.Clients = append(x.Clients, client.table())
	}
	if everybody := (export.Rule{Match: "*", ReadOnly: x.ReadOnly}); len(x.Clients) == 1 && x.Clients[0] == everybody {
		x.Clients = nil // which says the same, to clients as well
	}
	return x
}

// rules are the clients that may come, and how.
func (e *Export) rules() []Client {
	all := e.Clients
	for _, match := range e.Allow {
		all = append(all[:len(all):len(all)], Client{Match: match, Rule: e.Rule})
	}
	if len(all) == 0 {
		all = []Client{{Match: "*", Rule: e.Rule}}
	}
	return all
}

// readOnly reports whether nobody may change anything.
func (e *Export) readOnly() bool {
	for _, client := range e.rules() {
		if !is(client.ReadOnly) {
			return false
		}
	}
	return true
}

func is(b *bool) bool { return b != nil && *b }

func (c *Client) table() export.Rule {
	squash, err := export.ParseSquash(c.Squash)
	if err != nil { // check has seen it
		squash = export.SquashAll
	}
	return export.Rule{
		Match: c.Match, ReadOnly: is(c.ReadOnly), Squash: squash, AnonUID: c.AnonUID, AnonGID: c.AnonGID,
		Secure: is(c.Secure), ManyGroups: is(c.ManageGroups), TrustLocal: is(c.TrustLocal),
	}
}

// warnRoot says so where a rule lets everybody be root who says that it is.
func (d *daemon) warnRoot(e *Export, c *Client) {
	if c.Squash != "none" || os.Geteuid() != 0 {
		return
	}
	switch {
	case is(c.TrustLocal) || d.users == nil && d.onLoopback():
		d.log.Warn("squash is none: every user of this host who says that it is root is root in the export",
			slog.String("export", e.Path), slog.String("client", c.Match))
	case !d.onLoopback() && !is(c.Secure):
		d.log.Warn("squash is none: every program of a client that says that it is root's is root in the export; secure asks for a port that takes root there",
			slog.String("export", e.Path), slog.String("client", c.Match))
	}
}

// warnClients says so where rules that are there for a few clients keep out all others.
func (d *daemon) warnClients(e *Export) {
	everybody := slices.ContainsFunc(e.Clients, func(c Client) bool { return c.Match == "*" })
	if len(e.Clients) > 0 && len(e.Allow) == 0 && !everybody {
		d.log.Warn("the export has clients and no allow: only those may mount it; allow = [\"*\"] lets others in",
			slog.String("export", e.Path))
	}
}

// warn says what an operator may not expect.
func (d *daemon) warn() {
	for s, x := range d.sites.now() {
		if x.fs.Squashed() {
			d.log.Warn("not running as root: whatever callers do is done, and owned, by this user; what they may is judged by the mode bits",
				slog.String("dir", s.dir))
		}
	}
	for i := range d.c.Exports {
		e := &d.c.Exports[i]
		if e.Async {
			d.log.Warn("async: clients are told that their data is safe before it is; a crash of this host loses it, and no client will know",
				slog.String("export", e.Path))
		}
		if open := len(e.Clients)+len(e.Allow) == 0 && !d.onLoopback(); open {
			d.log.Warn("everybody who can reach the address may mount the export", slog.String("export", e.Path))
		}
		d.warnClients(e)
		for _, client := range e.rules() {
			d.warnRoot(e, &client)
		}
		d.log.Info("export", slog.String("path", e.Path), slog.String("dir", e.Dir), slog.String("squash", e.Squash), slog.Bool("ro", is(e.ReadOnly)),
			slog.Int("clients", len(e.Clients)))
	}
	d.warnWithin(d.exported(), d.table)
	d.warnAPI()
}
