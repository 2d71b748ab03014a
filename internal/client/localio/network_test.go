//go:build linux

package localio

import (
	"context"
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// network stands for an NFS client: a view of the tree that counts what data goes
// this way, has a verifier of its own, and takes back descriptors as a server
// does.
type network struct {
	vfs.FS
	s *networkState
}

type networkState struct {
	r                      *rig
	reads, writes, commits atomic.Int64
	verf                   atomic.Uint64
	// fault is asked before each open, write, commit and change of attributes, and
	// may make it fail, or do something meanwhile.
	fault atomic.Pointer[func(op string) error]
}

func newNetwork(f *localfs.FS, r *rig) *network {
	n := &network{f, &networkState{r: r}}
	n.s.verf.Store(1)
	return n
}

func (n *network) Unwrap() any { return n.FS }

// Close does nothing: the tree belongs to the rig.
func (n *network) Close() error { return nil }

func (n *network) As(c *vfs.Caller) vfs.FS { return &network{n.FS.As(c), n.s} }

func (n *network) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	if err := n.s.fails("open"); err != nil {
		return nil, vfs.Opened{}, err
	}
	f, o, err := n.FS.Open(ctx, at, how)
	if err != nil {
		return nil, o, err
	}
	return &networkFile{f, n.s}, o, nil
}

func (n *network) SetAttr(ctx context.Context, h vfs.Handle, set *vfs.SetAttr, guard *time.Time) (vfs.WCC, error) {
	if err := n.s.fails("setattr"); err != nil {
		return vfs.WCC{}, err
	}
	wcc, err := n.FS.SetAttr(ctx, h, set, guard)
	if set.Valid&(vfs.MaskMode|vfs.MaskUID|vfs.MaskGID) != 0 {
		n.s.r.revoke(func(o vfs.Handle) bool { return o == h })
	}
	return wcc, err
}

func (n *network) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (vfs.WCC, error) {
	h, _, _, _ := n.Lookup(ctx, dir, name)
	wcc, err := n.FS.Remove(ctx, dir, name, isDir)
	n.s.r.revoke(func(o vfs.Handle) bool { return o == h })
	return wcc, err
}

func (n *network) Rename(ctx context.Context, d1 vfs.Handle, n1 string, d2 vfs.Handle, n2 string) (from, to vfs.WCC, err error) {
	h, _, _, _ := n.Lookup(ctx, d2, n2)
	from, to, err = n.FS.Rename(ctx, d1, n1, d2, n2)
	n.s.r.revoke(func(o vfs.Handle) bool { return o == h })
	return from, to, err
}

func (n *network) ACL(ctx context.Context, h vfs.Handle) (vfs.ACL, error) {
	return n.FS.(vfs.ACLer).ACL(ctx, h)
}

func (n *network) SetACL(ctx context.Context, h vfs.Handle, acl vfs.ACL) error {
	err := n.FS.(vfs.ACLer).SetACL(ctx, h, acl)
	n.s.r.revoke(func(o vfs.Handle) bool { return o == h })
	return err
}

// networkFile is a file over the network.
type networkFile struct {
	vfs.File
	s *networkState
}

func (f *networkFile) Unwrap() any { return f.File }

func (f *networkFile) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (int, bool, error) {
	if len(p) > 0 {
		f.s.reads.Add(1)
	}
	return f.File.ReadAt(ctx, p, off, post)
}

func (s *networkState) verifier() (v vfs.Verifier) {
	binary.LittleEndian.PutUint64(v[:], s.verf.Load())
	return v
}

func (s *networkState) fails(op string) error {
	if f := s.fault.Load(); f != nil {
		return (*f)(op)
	}
	return nil
}

func (f *networkFile) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (int, error) {
	f.s.writes.Add(1)
	if err := f.s.fails("write"); err != nil {
		return 0, err
	}
	n, err := f.File.WriteAt(ctx, p, off, how, w)
	w.Verf = f.s.verifier()
	return n, err
}

func (f *networkFile) Truncate(ctx context.Context, size uint64) (vfs.WCC, error) {
	if err := f.s.fails("truncate"); err != nil {
		return vfs.WCC{}, err
	}
	return f.File.Truncate(ctx, size)
}

func (f *networkFile) Commit(ctx context.Context, off, n uint64, w *vfs.Written) error {
	f.s.commits.Add(1)
	if err := f.s.fails("commit"); err != nil {
		return err
	}
	err := f.File.Commit(ctx, off, n, w)
	w.Verf = f.s.verifier()
	return err
}
