package daemon

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/server/localfs"
)

// retire closes a directory when the last call in it has ended, or the server has.
func (d *daemon) retire(s site, x *directory) {
	d.sites.left.Add(1)
	d.sites.leaving.Go(func() {
		defer d.sites.left.Add(-1)
		// The error is the end of the server: no call is left then.
		_ = d.table.Drain(d.sites.ended, x.fs)
		if err := x.close(); err != nil {
			d.log.Error("a directory that is served no longer", slog.String("dir", s.name()), slog.Any("error", err))
		}
	})
}

func (d *daemon) openTable() error {
	open, exports, err := d.openSites(d.c)
	if err != nil {
		return err
	}
	d.sites.open.Store(&open)
	d.table, err = export.New(export.Options{
		Key: d.key, Now: d.w.Now,
		Report:  func(err error) { d.log.Warn("clients", slog.Any("error", err)) },
		Refused: d.refused,
	}, exports...)
	return err
}

// openSites opens the directories of c that are not open yet. After an error none
// of them is.
func (d *daemon) openSites(c *config.Config) (open directories, exports []export.Export, err error) {
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
		exports = append(exports, tableOf(e, open[s]))
	}
	if len(exports) == 0 {
		return open, nil, errNoneMounted
	}
	return open, exports, nil
}

// openSite opens one directory, whose map of handles lies in the server's folder.
func (d *daemon) openSite(c *config.Config, e *config.Export, s site) (*directory, error) {
	if s.from != "" {
		return d.openUpstream(c, e, &s)
	}
	mode, err := handleMode(s.handles)
	if err != nil {
		return nil, err
	}
	state, err := d.siteState(&s)
	if err != nil {
		return nil, err
	}
	x := &directory{lanes: d.gate.Export(e.Path)}
	x.local, err = localfs.New(s.dir, localfs.Options{
		Handles: mode, StateDir: state, CrossMounts: s.crossMounts, LocalWriters: s.localWriters, MaxOpen: openFiles(c, fileLimit()),
		Locks: &d.locks, Gate: x.lanes, Rand: d.w.Rand,
		Report: func(err error) { d.log.Warn("the directory", slog.String("dir", s.dir), slog.Any("error", err)) },
	})
	if err != nil {
		x.lanes.Close()
		return nil, err
	}
	x.fs = x.local
	d.sites.states.Store(state, s.at)
	x.ended = func() { d.sites.states.Delete(state) }
	if x.tree, err = s.tree(x.local); err != nil {
		return nil, errors.Join(err, x.close())
	}
	return x, nil
}

// openFiles is how many files a directory may keep open: as many as is configured, and
// all directories together no more than half of what the process may, which is limit.
func openFiles(c *config.Config, limit uint64) int {
	share := limit / 2 / uint64(max(len(c.Exports), 1))
	return int(min(uint64(c.MaxOpenFiles), max(share, config.MinOpenFiles)))
}

func handleMode(s string) (localfs.Mode, error) {
	for _, m := range []localfs.Mode{localfs.HandlesAuto, localfs.HandlesKernel, localfs.HandlesMap} {
		if s == m.String() {
			return m, nil
		}
	}
	return 0, fmt.Errorf("handles %q: not one of auto, kernel and map", s)
}

// tableOf is the export in the form that package export takes.
func tableOf(e *config.Export, of *directory) export.Export {
	x := export.Export{Path: e.Path, FS: of.fs, Tree: of.tree, ID: e.FSID, ReadOnly: e.AllReadOnly(), Async: e.Async,
		NoHostFiles: e.LocalIO != nil && !*e.LocalIO, Verbatim: e.Handles == handlesVerbatim}
	for _, client := range e.Rules() {
		x.Clients = append(x.Clients, ruleOf(&client))
	}
	if everybody := (export.Rule{Match: "*", ReadOnly: x.ReadOnly}); len(x.Clients) == 1 && x.Clients[0] == everybody {
		x.Clients = nil // which says the same, to clients as well
	}
	return x
}

func ruleOf(c *config.Client) export.Rule {
	squash, err := export.ParseSquash(c.Squash)
	if err != nil { // check has seen it
		squash = export.SquashAll
	}
	return export.Rule{
		Match: c.Match, ReadOnly: config.IsSet(c.ReadOnly), Squash: squash, AnonUID: c.AnonUID, AnonGID: c.AnonGID,
		Secure: config.IsSet(c.Secure), ManyGroups: config.IsSet(c.ManageGroups), TrustLocal: config.IsSet(c.TrustLocal),
	}
}
