package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/base/way"
	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/server/daemon/paths"
	"github.com/nfsbox/nfsbox/vfs"
)

// mine is a file or directory that clients must not reach.
type mine struct{ path, what, why string }

// privateOutside refuses a state directory, and other private files, that clients could
// reach.
func (d *daemon) privateOutside(c *config.Config) error {
	base, err := d.stateBase()
	if err != nil {
		return err
	}
	s, err := d.servedBy(c)
	if err != nil {
		return err
	}
	var all []error
	for _, m := range []mine{
		{base, "state directory", "clients could read the key of the handles"},
		{d.w.File, "configuration", "clients could change what is served"},
		{c.LocalIODir, "directory of local I/O", "clients could put a link in the socket's place"},
		{c.API.Callers, "file of the API's callers", "clients could read its tokens"},
		{c.API.TLSKey, "key of the API's certificate", "clients could read it"},
		{c.API.TLSCert, "certificate of the API", "clients could put another in its place"},
		{c.API.TLSClientCA, "file of the API's authorities", "clients could add one that signs certificates for them"},
		{c.API.Store, "store of content", "clients could change what is in it"},
		{c.Log.File, "file of the log", "clients could put a link in its place"},
		{c.Log.Requests, "file of the log of requests", "clients could put a link in its place"},
	} {
		if m.path == "" {
			continue
		}
		all = append(all, d.outside(&m, s))
	}
	for i := range c.Exports {
		if at := c.Exports[i].Cache; at != "" {
			all = append(all, d.outside(&mine{at, "directory of the cache", "clients could change what is read from it"}, s))
		}
	}
	return errors.Join(all...)
}

// served is what a configuration lets clients reach.
type served struct {
	dirs []string      // as the configuration has them
	tops []fs.FileInfo // what they lead to
	all  []paths.Tree
	n    *paths.Nesting
}

// servedBy looks at the directories of c. Its error names each that will not do.
func (d *daemon) servedBy(c *config.Config) (*served, error) {
	s := new(served)
	var wrong []error
	for i := range c.Exports {
		e := &c.Exports[i]
		if e.From != "" {
			continue
		}
		top, of, err := lookAt(e)
		if err != nil {
			wrong = append(wrong, d.w.at(i, err))
			continue
		}
		s.dirs, s.tops, s.all = append(s.dirs, e.Dir), append(s.tops, top), append(s.all, of.treeOf(e.Path))
	}
	s.n = paths.Nest(s.all)
	return s, errors.Join(wrong...)
}

func lookAt(e *config.Export) (fs.FileInfo, site, error) {
	top, err := os.Stat(e.Dir)
	if err != nil {
		return nil, site{}, fmt.Errorf("serve %s: %w", e.Dir, err)
	}
	if !top.IsDir() {
		return nil, site{}, fmt.Errorf("serve %s: it is no directory", e.Dir)
	}
	of, err := siteOf(e)
	return top, of, err
}

// outside refuses what lies within a tree that is served, or is found by a link that does,
// also where a second mount shows it elsewhere. If the root directory is served, nothing
// lies outside: then the modes of the files have to suffice.
func (d *daemon) outside(m *mine, s *served) error {
	steps, err := way.Of(m.path)
	if err != nil {
		return fmt.Errorf("%s: %w", m.what, err)
	}
	reached := s.n.Reaching(steps)
	for i, top := range s.tops {
		dir := s.dirs[i]
		switch at := slices.IndexFunc(steps, func(x way.Step) bool { return os.SameFile(x.Info, top) }); {
		case at == 0:
			d.log.Warn("the "+m.what+" lies within the tree that is served", slog.String("path", m.path))
		case at > 0:
			return fmt.Errorf("the %s %s lies within %s: %s; name another %[1]s", m.what, m.path, dir, m.why)
		case reached[&s.all[i]]:
			return fmt.Errorf("the %s %s lies within %s, by a second mount: %s; name another %[1]s", m.what, m.path, dir, m.why)
		}
	}
	return nil
}

// trees are the exports in force. The disk, which may not answer, is not asked.
func (d *daemon) trees() (all []paths.Tree) {
	by := make(map[vfs.FS]site)
	for s, x := range d.sites.now() {
		by[x.fs] = s
	}
	for _, e := range d.table.Exports() {
		s := by[e.FS]
		if s.from != "" {
			continue // its directories are elsewhere
		}
		all = append(all, s.treeOf(e.Path))
	}
	return all
}

// warnWithin logs each export that lies within another one, or has its directory, if the
// other's rules allow some client more than its own. Of several others it names one.
func (d *daemon) warnWithin(all []paths.Tree, t *export.Table) {
	n := paths.Nest(all)
	for i := range all {
		in := &all[i]
		out, client, more := reachedBy(n, in, t)
		if more == "" {
			continue
		}
		d.log.Warn("the export lies within another one, or has its directory, and clients reach it by the rules of that one: keep the directories apart, or make the rules of the other as strict",
			slog.String("export", in.Name), slog.String("within", out), slog.String("client", client), slog.String("gets", more))
	}
}

// reachedBy finds the export, going up from in, that gives a client more of what is
// within in.
func reachedBy(n *paths.Nesting, in *paths.Tree, t *export.Table) (path, client, more string) {
	for out := range n.Above(in) {
		if client, more := t.Beyond(out.Name, in.Name); more != "" {
			return out.Name, client, more
		}
	}
	return "", "", ""
}
