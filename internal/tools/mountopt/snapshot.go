package mountopt

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/fusefs"
)

// snapshotTime is how long the kernel keeps attributes and names of a snapshot, which never change. It bounds how
// long it keeps those that nobody uses.
const snapshotTime = time.Hour

// errReadOnly refuses rw.
var errReadOnly = errors.New("a snapshot is read-only: say ro, in fstab too, where rw is the default; elsewhere leave it out")

// errNoServer refuses an argument of URLs.
var errNoServer = errors.New("it is for NFS, and the store of this snapshot is at no server of NFS: leave it out")

// serverOptions are those of nfs(5) that only a server gives a meaning.
var serverOptions = [...]string{
	"hard", "soft", "softerr", "timeo", "retrans", "nconnect", "rsize", "wsize", "resvport", "noresvport", "sec", "xprtsec",
	"mountport", "port", "vers", "nfsvers", "mountvers", "proto", "mountproto", "tcp", "tcp6", "fsc", "cache",
}

// Snapshot reads the lists behind -o for a snapshot that spec names: rest, NAME[@ID][/PATH], in store, which is nfs://HOST/PATH,
// another URL, or a directory. It is mounted with ro, and unless the lists say otherwise nosuid and nodev. Options of a
// server are those of the store's; if it is none, they are ignored with a note, and arguments of URLs refused. With rw
// there is a Mount that is Refused.
func Snapshot(spec, store, rest string, lists ...string) (*Mount, error) {
	at, server := "", strings.HasPrefix(store, "nfs://")
	if server {
		at = store
	}
	p, at, err := read(at, lists)
	if err != nil {
		return nil, err
	}
	if p.kernel["write"] == "rw" {
		p.m.Refused = fmt.Errorf("option rw: %w", errReadOnly)
	}
	for group, is := range map[string]string{"write": "ro", "suid": "nosuid", "dev": "nodev"} {
		if _, said := p.kernel[group]; !said || group == "write" {
			p.kernel[group] = is
		}
	}
	if err := p.settle(); err != nil {
		return nil, err
	}
	p.unchanging()
	if server {
		if err := p.finish(at); err != nil {
			return nil, err
		}
		store = p.m.Uncached() // what is read of a store is kept already
	} else if err := p.noServer(); err != nil {
		return nil, err
	}
	if !strings.Contains(store, "://") && p.retry < 0 {
		p.m.Retry = 0 // a directory of this host answers
	}
	p.m.Snapshot, p.m.FSC = true, false
	p.m.URL, p.m.FS.Source = store+"::"+rest, spec
	return &p.m, nil
}

// unchanging has the kernel keep what it knows for long, unless options say how long.
func (p *parser) unchanging() {
	for _, name := range attributeArgs {
		if _, said := p.said[name]; said && name != "lookupcache" {
			return
		}
	}
	p.m.FS.Times = fusefs.Times{FileMin: snapshotTime, FileMax: snapshotTime, DirMin: snapshotTime, DirMax: snapshotTime}
	_, cto := p.said["cto"]
	p.m.FS.NoCTO = !cto
}

// noServer has no meaning for what is for a server.
func (p *parser) noServer() error {
	for _, name := range slices.Sorted(maps.Keys(p.said)) {
		if slices.Contains(serverOptions[:], name) {
			p.note("%s is ignored: the store of this snapshot is at no server of NFS", name)
		} else if _, own := options[name]; !own {
			return fmt.Errorf("option %s: %w", name, errNoServer)
		}
	}
	return nil
}
