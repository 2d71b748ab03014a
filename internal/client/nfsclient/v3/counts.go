package v3

import (
	"sync/atomic"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

const (
	// procCount is how many procedures NFSv3 has.
	procCount = 22

	// RFC 1813 has two ranges of statuses. Each status has a counter; all others share the last
	// one.
	lowStatuses  = int(nfs3.NFS3ERR_REMOTE) + 1
	highStatuses = int(nfs3.NFS3ERR_JUKEBOX-nfs3.NFS3ERR_BADHANDLE) + 1
	statusCount  = lowStatuses + highStatuses + 1
)

// counts has how often each procedure was answered with each error.
type counts [procCount][statusCount]atomic.Uint64

func (c *counts) note(p *xdr.Proc, s nfs3.Nfsstat3) {
	if p.Program != nfs3.NFS_V3.Number || p.Number >= procCount {
		return
	}
	at := statusCount - 1
	switch {
	case s >= 0 && int(s) < lowStatuses:
		at = int(s)
	case s >= nfs3.NFS3ERR_BADHANDLE && s <= nfs3.NFS3ERR_JUKEBOX:
		at = lowStatuses + int(s-nfs3.NFS3ERR_BADHANDLE)
	}
	c[p.Number][at].Add(1)
}

// statusAt is the status of a counter; 0 is every unknown one.
func statusAt(at int) vfs.Status {
	switch {
	case at < lowStatuses:
		return vfs.Status(at)
	case at < statusCount-1:
		return vfs.Status(int(nfs3.NFS3ERR_BADHANDLE) + at - lowStatuses)
	}
	return 0
}

// Statuses returns how often p has been answered with each error status, for all views together;
// nil if never. Status 0 stands for those that RFC 1813 does not have. NFS3ERR_JUKEBOX is counted
// each time.
func (f *FS) Statuses(p *xdr.Proc) map[vfs.Status]uint64 {
	if p.Program != nfs3.NFS_V3.Number || p.Number >= procCount {
		return nil
	}
	var m map[vfs.Status]uint64
	for at := range f.counts[p.Number] {
		n := f.counts[p.Number][at].Load()
		if n == 0 {
			continue
		}
		if m == nil {
			m = make(map[vfs.Status]uint64)
		}
		m[statusAt(at)] = n
	}
	return m
}
