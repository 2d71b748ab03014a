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
	by := make(map[string][]exported)
	for _, x := range all {
		by[x.site.dir] = append(by[x.site.dir], x)
	}
	for _, in := range all {
		out, client, more := in.reachedBy(by, t)
		if more == "" {
			continue
		}
		d.log.Warn("the export lies within another one, by whose rules clients reach it that way: keep the directories apart, or make the rules of the other as strict",
			slog.String("export", in.path), slog.String("within", out), slog.String("client", client), slog.String("gets", more))
	}
}

// reachedBy finds the export, by the paths of directories, that gives a client more of
// what is within in.
func (in *exported) reachedBy(by map[string][]exported, t *export.Table) (path, client, more string) {
	for at := in.site.dir; filepath.Dir(at) != at; {
		at = filepath.Dir(at)
		for _, out := range by[at] {
			if out.site.hides(&in.site) {
				continue
			}
			if client, more := t.Beyond(out.path, in.path); more != "" {
				return out.path, client, more
			}
		}
	}
	return "", "", ""
}

// hides reports whether in, a directory within s, is of another mount, and not served
// with s. Where mounts have no numbers the device tells.
func (s *site) hides(in *site) bool {
	if s.at.mount == 0 {
		return !s.crossMounts && s.at.dev != in.at.dev
	}
	return !s.crossMounts && s.at.mount != in.at.mount
}
