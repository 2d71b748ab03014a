package daemon

import (
	"iter"
	"log/slog"
	"path/filepath"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/vfs"
)

// exported is the directory of an export.
type exported struct {
	path string // of the export
	site site
}

// exported are the exports in force. The disk, which may not answer, is not asked.
func (d *daemon) exported() (all []exported) {
	by := make(map[vfs.FS]site)
	for s, x := range d.sites.now() {
		by[x.fs] = s
	}
	for _, e := range d.table.Exports() {
		all = append(all, exported{e.Path, by[e.FS]})
	}
	return all
}

// warnWithin says so of each export that lies within another one, or has its directory,
// where some clients may do more by the other's rules than by its own. Of several others
// it names one.
func (d *daemon) warnWithin(all []exported, t *export.Table) {
	n := nestingOf(all, mountsNow())
	for i := range all {
		in := &all[i]
		out, client, more := n.reachedBy(in, t)
		if more == "" {
			continue
		}
		d.log.Warn("the export lies within another one, or has its directory, and clients reach it by the rules of that one: keep the directories apart, or make the rules of the other as strict",
			slog.String("export", in.path), slog.String("within", out), slog.String("client", client), slog.String("gets", more))
	}
}

// nesting is what of file systems is exported, and by which mounts.
type nesting struct {
	mounts mounts
	ways   map[spot][]way
	covers map[spot][]uint64 // the mounts that show something else there, mounted on it
}

// way is an export by which all is reached that lies below a spot, as a mount shows it.
type way struct {
	by    *exported
	mount uint64
}

func nestingOf(all []exported, m mounts) *nesting {
	n := &nesting{mounts: m, ways: make(map[spot][]way), covers: make(map[spot][]uint64)}
	for _, x := range m {
		if at, ok := m.spot(x.parent, x.point); ok && x.parent != x.id {
			n.covers[at] = append(n.covers[at], x.parent)
		}
	}
	for i := range all {
		by := &all[i]
		at := n.spot(&by.site)
		n.ways[at] = append(n.ways[at], way{by, by.site.at.mount})
		if !by.site.crossMounts {
			continue
		}
		for _, x := range m {
			if _, ok := below(by.site.dir, x.point); ok && x.id != by.site.at.mount {
				at := spot{x.volume, x.root}
				n.ways[at] = append(n.ways[at], way{by, x.id})
			}
		}
	}
	return n
}

// spot is where a directory is in its file system; where nothing is known of that, on
// this host.
func (n *nesting) spot(s *site) spot {
	if at, ok := n.mounts.spot(s.at.mount, s.dir); ok {
		return at
	}
	return spot{path: s.dir}
}

// reachedBy finds the export, going up from in, that gives a client more of what is
// within in.
func (n *nesting) reachedBy(in *exported, t *export.Table) (path, client, more string) {
	at := n.spot(&in.site)
	for out := range n.over(at) {
		if out.path == in.path || at.volume == "" && out.site.hides(&in.site) {
			continue
		}
		if client, more := t.Beyond(out.path, in.path); more != "" {
			return out.path, client, more
		}
	}
	return "", "", ""
}

// over goes through the exports by which clients reach what is at a spot, those of the
// nearest directories first.
func (n *nesting) over(at spot) iter.Seq[*exported] {
	return func(yield func(*exported) bool) {
		blocked := make(map[uint64]bool) // mounts by which no way leads down
		for ; ; at.path = filepath.Dir(at.path) {
			for _, mount := range n.covers[at] {
				blocked[mount] = true
			}
			for _, w := range n.ways[at] {
				if !blocked[w.mount] && !yield(w.by) {
					return
				}
			}
			if filepath.Dir(at.path) == at.path {
				return
			}
		}
	}
}

// reaching finds the exports by which clients reach something on a way, whatever mounts
// show it: none where nothing is known of the mounts.
func (n *nesting) reaching(way []mark) map[*exported]bool {
	all := make(map[*exported]bool)
	for i := range way {
		at, ok := n.mounts.spot(mountOf(way[i].path), way[i].path)
		if !ok {
			continue
		}
		for by := range n.over(at) {
			all[by] = true
		}
	}
	return all
}

// hides reports whether in, a directory within s by its path, is of another mount, and
// not served with s. Where mounts have no numbers the device tells.
func (s *site) hides(in *site) bool {
	if s.at.mount == 0 {
		return !s.crossMounts && s.at.dev != in.at.dev
	}
	return !s.crossMounts && s.at.mount != in.at.mount
}
