package v3

import (
	"context"
	"errors"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// Rename is one RENAME (section 3.3.14). If the target may be the name of a file that this FS has open
// (openNames), a LOOKUP of it comes before, and if it is one of them it is kept under
// another name, which the last Close removes. If the call had to be repeated and the source is gone,
// a LOOKUP of the target finds out whether it went there.
func (f *FS) Rename(ctx context.Context, fromDir vfs.Handle, fromName string, toDir vfs.Handle, toName string) (from, to vfs.WCC, err error) {
	if err := f.mayChange(ctx); err != nil {
		return from, to, err
	}
	m := &move{fromDir: fromDir, toDir: toDir, fromName: fromName, toName: toName}
	if e, h := f.openTarget(ctx, m); e != nil {
		return f.renameOver(ctx, e, h, m)
	}
	return f.rename(ctx, m)
}

// rename is Rename without regard to open files.
func (f *FS) rename(ctx context.Context, m *move) (from, to vfs.WCC, err error) {
	args, res := nfs3.RENAME3args{}, nfs3.RENAME3res{}
	if args.From, err = dirop(&m.fromDir, m.fromName); err != nil {
		return from, to, err
	}
	if args.To, err = dirop(&m.toDir, m.toName); err != nil {
		return from, to, err
	}
	f.names.beforeRename(m)
	taken := f.names.folded(&m.fromDir, m.fromName)
	f.open.moved(taken)
	reply, err := f.do(ctx, nfs3.NFSPROC3_RENAME, &args, &res)
	defer reply.Release()
	f.open.moved(taken)
	f.names.forget(&m.fromDir, m.fromName)
	f.names.forget(&m.toDir, m.toName)
	if err != nil {
		from, to = res.Resfail.FromdirWcc.VFS(), res.Resfail.TodirWcc.VFS()
		if !f.renamed(ctx, m, err) {
			return from, to, err
		}
		return from, to, nil
	}
	f.names.set(f.names.key(&m.toDir, m.toName), m.object)
	return res.Resok.FromdirWcc.VFS(), res.Resok.TodirWcc.VFS(), nil
}

// beforeRename finds out, as far as known, which object m moves: afterwards the name proves nothing. If
// the target is known to be that object already, finding it there afterwards would prove nothing
// either, because the source must be another one by now.
func (n *nameMemory) beforeRename(m *move) {
	if m.object == 0 {
		m.object = n.recall(&m.fromDir, m.fromName)
	}
	if m.object == n.recall(&m.toDir, m.toName) {
		m.object = 0
	}
}

// renamed reports whether the RENAME that failed with err has succeeded after all: it was sent
// twice, the source is gone, and the target is the object that the source was before. If
// another client has moved that object to that name, the result is the wanted one. Clients that
// contend for an object have targets of their own.
func (f *FS) renamed(ctx context.Context, m *move, err error) bool {
	s, ok := errors.AsType[*StatusError](err)
	if !ok || !s.Resent || s.Status != vfs.ErrNoEnt || m.object == 0 {
		return false
	}
	h, _, _, err := f.Lookup(ctx, m.toDir, m.toName)
	return err == nil && f.names.object(&h) == m.object
}
