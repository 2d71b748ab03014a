package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mine is a file or directory that clients must not reach.
type mine struct{ path, what, why string }

// privateOutside refuses a state directory that clients could reach, and what else
// is none of theirs.
func (d *daemon) privateOutside(c *Config) error {
	base, err := d.stateBase()
	if err != nil {
		return err
	}
	s, err := servedBy(c)
	if err != nil {
		return err
	}
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
		if err := d.outside(&m, s); err != nil {
			return err
		}
	}
	return nil
}

// served is what a configuration lets clients reach.
type served struct {
	dirs []string      // as the configuration has them
	tops []fs.FileInfo // what they lead to
	all  []exported
	n    *nesting
}

func servedBy(c *Config) (*served, error) {
	s := new(served)
	for i := range c.Exports {
		e := &c.Exports[i]
		top, err := os.Stat(e.Dir)
		if err != nil {
			return nil, fmt.Errorf("serve %s: %w", e.Dir, err)
		}
		if !top.IsDir() {
			return nil, fmt.Errorf("serve %s: it is no directory", e.Dir)
		}
		of, err := siteOf(e)
		if err != nil {
			return nil, err
		}
		s.dirs, s.tops, s.all = append(s.dirs, e.Dir), append(s.tops, top), append(s.all, exported{e.Path, of})
	}
	s.n = nestingOf(s.all, mountsNow())
	return s, nil
}

// outside refuses what lies within a tree that is served, or is found by a link that
// does, also where a second mount shows it elsewhere. If the tree is all there is, no place
// lies outside of it: the modes of the files must do then.
func (d *daemon) outside(m *mine, s *served) error {
	way, err := wayTo(m.path)
	if err != nil {
		return fmt.Errorf("%s: %w", m.what, err)
	}
	reached := s.n.reaching(way)
	for i, top := range s.tops {
		dir := s.dirs[i]
		switch at := slices.IndexFunc(way, func(x mark) bool { return os.SameFile(x.info, top) }); {
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

// maxLinks is how many symbolic links a way may have, as many as Linux follows
// (path_resolution(7)); one with more leads nowhere.
const maxLinks = 40

// mark is something on a way, and its path without symbolic links.
type mark struct {
	path string
	info fs.FileInfo
}

// wayTo is what a path is found by, the root first: the symbolic links on the way, the
// directories that its names, and those of the links, are looked up in, and what it leads to
// in the end. It ends where nothing is there.
func wayTo(path string) (way []mark, err error) {
	if !filepath.IsAbs(path) {
		here, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		path = here + string(filepath.Separator) + path
	}
	at, rest := rootOf(path)
	top, err := os.Lstat(at)
	if err != nil {
		return nil, err
	}
	way = append(way, mark{at, top})
	for links := 0; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, string(filepath.Separator))
		next := filepath.Join(at, name) // for "..", too: at has no links
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return way, nil
		case err != nil:
			return nil, err
		case info.Mode()&fs.ModeSymlink == 0:
			at, way = next, append(way, mark{next, info})
			continue
		}
		way = append(way, mark{next, info})
		if links++; links > maxLinks {
			return nil, fmt.Errorf("%s: too many symbolic links", path)
		}
		to, err := os.Readlink(next)
		if err != nil {
			return nil, err
		}
		if filepath.IsAbs(to) {
			at, to = rootOf(to)
		}
		rest = to + string(filepath.Separator) + rest
	}
	return way, nil
}

// rootOf divides an absolute path into its root and the rest.
func rootOf(path string) (root, rest string) {
	n := len(filepath.VolumeName(path)) + 1
	return path[:n], path[n:]
}
