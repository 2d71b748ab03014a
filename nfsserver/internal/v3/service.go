package v3

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/xdr"
)

// Options are what a Service needs.
type Options struct {
	Log     *slog.Logger
	Buffers *bufpool.Pool // for the data of READ and the pages of listings
	MaxBulk int64         // bytes of Buffers; 0: DefaultMaxBulk; at least one READ's
}

// Service is NFSv3. Whose exports it serves is in the state of each connection,
// a [*peer.Conn].
type Service struct {
	log     *slog.Logger
	buffers *bufpool.Pool
	calls   [procs]atomic.Uint64
	errors  atomic.Uint64
	budget  budget
	bulks   sync.Pool // of *bulk
}

// procs is the number of procedures of NFSv3, NULL included.
const procs = 22

// New returns the service; [Service.RPC] is what a server runs of it.
func New(o Options) *Service {
	return &Service{
		log:     o.Log,
		buffers: o.Buffers,
		budget:  newBudget(max(cmp.Or(o.MaxBulk, DefaultMaxBulk), maxPage+maxEntry)),
		bulks:   sync.Pool{New: func() any { return new(bulk) }},
	}
}

// Calls is how often each procedure was called, by its number, and how many of
// the calls were answered with an error.
func (s *Service) Calls() (calls [procs]uint64, errors uint64) {
	for i := range s.calls {
		calls[i] = s.calls[i].Load()
	}
	return calls, s.errors.Load()
}

// RPC binds the procedures to their numbers.
func (s *Service) RPC() oncrpc.Service {
	h := make([]oncrpc.Handler, len(nfs3.NFS_V3.Procs))
	h[nfs3.NFSPROC3_NULL.Number] = s.null
	h[nfs3.NFSPROC3_GETATTR.Number] = handler(s, getattr)
	h[nfs3.NFSPROC3_SETATTR.Number] = handler(s, setattr)
	h[nfs3.NFSPROC3_LOOKUP.Number] = handler(s, lookup)
	h[nfs3.NFSPROC3_ACCESS.Number] = handler(s, access)
	h[nfs3.NFSPROC3_READLINK.Number] = handler(s, readlink)
	h[nfs3.NFSPROC3_READ.Number] = handler(s, read)
	h[nfs3.NFSPROC3_WRITE.Number] = handler(s, write)
	h[nfs3.NFSPROC3_CREATE.Number] = handler(s, create)
	h[nfs3.NFSPROC3_MKDIR.Number] = handler(s, mkdir)
	h[nfs3.NFSPROC3_SYMLINK.Number] = handler(s, symlink)
	h[nfs3.NFSPROC3_MKNOD.Number] = handler(s, mknod)
	h[nfs3.NFSPROC3_REMOVE.Number] = handler(s, remove)
	h[nfs3.NFSPROC3_RMDIR.Number] = handler(s, rmdir)
	h[nfs3.NFSPROC3_RENAME.Number] = handler(s, rename)
	h[nfs3.NFSPROC3_LINK.Number] = handler(s, link)
	h[nfs3.NFSPROC3_READDIR.Number] = handler(s, readdir)
	h[nfs3.NFSPROC3_READDIRPLUS.Number] = handler(s, readdirplus)
	h[nfs3.NFSPROC3_FSSTAT.Number] = handler(s, fsstat)
	h[nfs3.NFSPROC3_FSINFO.Number] = handler(s, fsinfo)
	h[nfs3.NFSPROC3_PATHCONF.Number] = handler(s, pathconf)
	h[nfs3.NFSPROC3_COMMIT.Number] = handler(s, commit)
	return oncrpc.Service{Program: &nfs3.NFS_V3, Handlers: h, Once: once()}
}

// once are the procedures that change something: a call is executed once, however often
// it is sent. That includes WRITE and SETATTR: a late repetition would undo what was done
// since.
func once() []bool {
	o := make([]bool, len(nfs3.NFS_V3.Procs))
	for _, p := range []*xdr.Proc{
		nfs3.NFSPROC3_SETATTR, nfs3.NFSPROC3_WRITE, nfs3.NFSPROC3_CREATE, nfs3.NFSPROC3_MKDIR, nfs3.NFSPROC3_SYMLINK,
		nfs3.NFSPROC3_MKNOD, nfs3.NFSPROC3_REMOVE, nfs3.NFSPROC3_RMDIR, nfs3.NFSPROC3_RENAME, nfs3.NFSPROC3_LINK,
	} {
		o[p.Number] = true
	}
	return o
}

// null is procedure 0: a ping. It needs no credential (RFC 1813, section 3.3.0) and
// ignores arguments, since it has none.
func (s *Service) null(_ context.Context, c *oncrpc.Call) error {
	s.calls[nfs3.NFSPROC3_NULL.Number].Add(1)
	return c.Reply(xdr.Void{})
}
