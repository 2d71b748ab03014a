package daemon

import (
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

// warnWithin says so of each export that lies within another one, where some clients
// may do more by the other's rules than by its own. Of several others it names one.
func (d *daemon) warnWithin(all []exported, t *export.Table) {
	n := nestingOf(all, mountsNow())
	for i := range all {
		in := &all[i]
		out, client, more := n.reachedBy(in, t)
		if more == "" {
			continue
		}
		d.log.Warn("the export lies within another one, by whose rules clients reach it that way: keep the directories apart, or make the rules of the other as strict",
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
	blocked := make(map[uint64]bool) // mounts by which no way leads down to in
	for at := n.spot(&in.site); ; at.path = filepath.Dir(at.path) {
		for _, mount := range n.covers[at] {
			blocked[mount] = true
		}
		for _, w := range n.ways[at] {
			out := &w.by.site
			if out.dir == in.site.dir || blocked[w.mount] || at.volume == "" && out.hides(&in.site) {
				continue
			}
			if client, more := t.Beyond(w.by.path, in.path); more != "" {
				return w.by.path, client, more
			}
		}
		if filepath.Dir(at.path) == at.path {
			return "", "", ""
		}
	}
}

// hides reports whether in, a directory within s by its path, is of another mount, and
// not served with s. Where mounts have no numbers the device tells.
func (s *site) hides(in *site) bool {
	if s.at.mount == 0 {
		return !s.crossMounts && s.at.dev != in.at.dev
	}
	return !s.crossMounts && s.at.mount != in.at.mount
}
