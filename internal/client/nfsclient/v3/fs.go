package v3

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/client/pace"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// Options say how an FS calls its server. The zero Options are the superuser without a machine name,
// and the server's sizes.
type Options struct {
	// Caller is the user of the view that New returns, and of As(nil). The first 16 of its
	// groups are sent: AUTH_SYS carries no more.
	Caller vfs.Caller
	// Machine is the host name in AUTH_SYS credentials, at most 255 bytes.
	Machine string
	// ReadMax and WriteMax bound one READ and one WRITE, in bytes; 0 is
	// [DefaultTransfer]. The server's limit holds as well.
	ReadMax, WriteMax uint32
	// DirCount and MaxCount are the sizes of READDIRPLUS, in bytes: of the names and cookies
	// in a page, and of the whole page. 0: as large as MaxCount, and [DefaultPage].
	DirCount, MaxCount uint32
	// NoPlus lists by READDIR alone, without handles and attributes.
	NoPlus bool
	// Hard repeats calls while the server answers NFS3ERR_JUKEBOX, until their context ends.
	Hard bool
	// SoftErr makes a call that the server did not answer in time fail with ETIMEDOUT instead
	// of EIO.
	SoftErr bool
	// Pace limits the calls in flight; nil: no limit.
	Pace *pace.Limiter
	// ReadOnly makes every change fail with vfs.ErrROFS, before it is sent.
	ReadOnly bool
	// Plain makes no call but the one that was asked for: an open file that is removed is not
	// kept under a hidden name, no page of a listing is fetched ahead, and NFS3ERR_JUKEBOX is
	// returned at once. It is for servers that pass on the calls of their clients, which do all that.
	Plain bool
	// Rand fills p with random bytes; nil is crypto/rand. It gives the names of files that are
	// removed while open, and the lengths of pauses.
	Rand func(p []byte)
}

// FS is one caller's view of a file system over NFSv3. It is a vfs.FS.
type FS struct {
	*shared
	RPC  *oncrpc.Client
	Auth oncrpc.Auth
}

var _ vfs.FS = (*FS)(nil)

// shared is the state that all views share.
type shared struct {
	opt    Options
	root   vfs.Handle
	base   *FS
	limits atomic.Pointer[vfs.Info] // from FSINFO
	noPlus atomic.Bool              // the server has no READDIRPLUS
	noACL  atomic.Bool              // the server has no NFS_ACL program
	silent atomic.Bool              // a call was given up, and none was answered since
	open   openFiles
	names  nameMemory
	counts counts

	viewsMu sync.RWMutex
	views   map[string]*FS // by credential

	getattrs pool[getattrCall]
	lookups  pool[lookupCall]
	accesses pool[accessCall]
	reads    pool[readCall]
	writes   pool[writeCall]
}

// New returns o.Caller's view of the file system with the top directory root, on rpc's server. It
// makes no call. The caller closes rpc after the FS's last use.
func New(rpc *oncrpc.Client, root vfs.Handle, o Options) (*FS, error) {
	if root.IsZero() || root.Len() > vfs.MaxHandleV3 {
		return nil, vfs.ErrBadHandle
	}
	if o.Rand == nil {
		o.Rand = func(p []byte) { _, _ = rand.Read(p) } // crypto/rand.Read never fails
	}
	s := &shared{opt: o, root: root, views: make(map[string]*FS), names: nameMemory{seed: maphash.MakeSeed()}}
	s.noPlus.Store(o.NoPlus)
	auth, err := s.auth(&o.Caller)
	if err != nil {
		return nil, fmt.Errorf("nfs: credential: %w", err)
	}
	s.base = &FS{shared: s, RPC: rpc, Auth: auth}
	s.views[string(auth.Body)] = s.base
	return s.base, nil
}

func (s *shared) auth(c *vfs.Caller) (oncrpc.Auth, error) {
	a := oncrpc.AuthSys{
		Machine: s.opt.Machine,
		UID:     c.UID,
		GID:     c.GID,
		GIDs:    c.Groups[:min(len(c.Groups), maxGroups)],
	}
	return a.Auth()
}

// As returns the view of c; nil is Options.Caller.
func (f *FS) As(c *vfs.Caller) vfs.FS {
	if c == nil {
		return f.base
	}
	auth, err := f.auth(c)
	if err != nil {
		// The machine's name was encoded in New, and the groups are cut to what fits.
		panic("nfsclient/v3: credential: " + err.Error())
	}
	f.viewsMu.RLock()
	v := f.views[string(auth.Body)]
	f.viewsMu.RUnlock()
	if v != nil {
		return v
	}
	f.viewsMu.Lock()
	defer f.viewsMu.Unlock()
	if v := f.views[string(auth.Body)]; v != nil {
		return v
	}
	if len(f.views) >= maxViews {
		clear(f.views)
	}
	v = &FS{shared: f.shared, RPC: f.RPC, Auth: auth}
	f.views[string(auth.Body)] = v
	return v
}

// Top is the handle of the top directory.
func (f *FS) Top() vfs.Handle { return f.root }

// Root returns the handle of the top directory, and its attributes by GETATTR.
func (f *FS) Root(ctx context.Context) (vfs.Handle, vfs.Attr, error) {
	a, err := f.GetAttr(ctx, f.root, vfs.MaskV3)
	return f.root, a, err
}

// mayChange is called before every change.
func (f *FS) mayChange(ctx context.Context) error {
	if f.opt.ReadOnly {
		return vfs.ErrROFS
	}
	return ctx.Err()
}

func handleOf(p *xdr.Proc, w *nfs3.NfsFh3) (vfs.Handle, error) {
	h, err := w.VFS()
	if err != nil {
		return h, untrue(p, "a handle of %d bytes", len(w.Data))
	}
	return h, nil
}

// fh is h on the wire, which borrows h's bytes. A handle too long for NFSv3 does not encode;
// checkHandle must be called before.
func fh(h *vfs.Handle) nfs3.NfsFh3 { return nfs3.NfsFh3{Data: h.Bytes()} }

// checkHandle returns vfs.ErrBadHandle for a handle that no NFSv3 server can have made.
func checkHandle(h *vfs.Handle) error {
	if h.IsZero() || h.Len() > vfs.MaxHandleV3 {
		return vfs.ErrBadHandle
	}
	return nil
}

// dirop encodes a name in a directory, after checks that save the server a call. The name is copied.
func dirop(dir *vfs.Handle, name string) (nfs3.Diropargs3, error) {
	if err := checkHandle(dir); err != nil {
		return nfs3.Diropargs3{}, err
	}
	if err := vfs.CheckName(name); err != nil {
		return nfs3.Diropargs3{}, err
	}
	return nfs3.Diropargs3{Dir: fh(dir), Name: []byte(name)}, nil
}

// pool keeps the arguments and results of frequent calls.
type pool[T any] struct{ p sync.Pool }

func (p *pool[T]) get() *T {
	if v, ok := p.p.Get().(*T); ok {
		return v
	}
	return new(T)
}

// put returns v to the pool, without its references.
func (p *pool[T]) put(v *T) {
	var zero T
	*v = zero
	p.p.Put(v)
}

// transfer is the size of a READ or WRITE, from the options and the server's limit.
func transfer(option, server uint32) uint32 {
	return min(cmp.Or(option, DefaultTransfer), cmp.Or(server, fallbackTransfer), MaxTransfer)
}
