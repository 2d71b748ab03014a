package bench

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

const (
	dirMode  = 0o755
	fileMode = 0o644

	// runBytes is how much of the name of a temporary says which run made it.
	runBytes = 4
)

// nfsTarget is a directory of an NFS server, by the client below write-behind and
// read-ahead.
type nfsTarget struct {
	*mount
	wsize int
	run   string        // tells this run's temporaries from another's
	temps atomic.Uint64 // made so far

	making context.Context // of calls that make something: it outlasts the run's
	made   func()          // ends it
}

func reachNFS(ctx context.Context, o *Options) (target, error) {
	m, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	if t := m.target.Attr.Type; t != vfs.TypeDir {
		return nil, errors.Join(usage("%s is a %s: name a directory", o.URL, t), m.client.Close())
	}
	info, err := m.fs.Info(ctx, m.root, vfs.InfoLimits)
	if err != nil {
		return nil, errors.Join(unreachable(ctx, o.URL, err), m.client.Close())
	}
	t := &nfsTarget{mount: m, wsize: int(info.WriteMax), run: o.random(runBytes)}
	t.making, t.made = outlast(ctx)
	return t, nil
}

func (t *nfsTarget) top() folder { return &nfsFolder{t, t.target.Handle} }

// echo is NULL: NFS has nothing that comes back.
func (t *nfsTarget) echo(ctx context.Context, _ []byte) error {
	raw := t.client.Raw()
	reply, err := raw.RPC.Call(ctx, nfs3.NFSPROC3_NULL, raw.Auth, xdr.Void{}, xdr.Void{})
	reply.Release()
	return err
}

func (t *nfsTarget) close() error {
	t.made()
	return t.client.Close()
}

// create makes a file or directory, unless ctx has ended; once it is sent, the call
// is not cut off.
func (f *nfsFolder) create(ctx context.Context, name string, how *vfs.CreateHow) (vfs.Handle, error) {
	if err := ctx.Err(); err != nil {
		return vfs.Handle{}, err
	}
	h, _, _, err := f.t.fs.Create(f.t.making, f.h, name, how)
	return h, err
}

// nfsFolder is a directory below one.
type nfsFolder struct {
	t *nfsTarget
	h vfs.Handle
}

func (f *nfsFolder) enter(ctx context.Context, name string, create bool) (folder, error) {
	if create {
		h, err := f.create(ctx, name, &vfs.CreateHow{
			Type: vfs.TypeDir, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: dirMode},
		})
		if err == nil || !errors.Is(err, vfs.ErrExist) {
			return &nfsFolder{f.t, h}, err
		}
	}
	h, kind, err := f.look(ctx, name)
	if err == nil && kind != vfs.TypeDir {
		err = fmt.Errorf("%s is a %s: %w", name, kind, vfs.ErrNotDir)
	}
	return &nfsFolder{f.t, h}, err
}

// upload writes a temporary and gives it its name, or writes in place.
func (f *nfsFolder) upload(ctx context.Context, name string, data []byte) error {
	at, how := name, vfs.CreateHow{
		Type: vfs.TypeReg, Mode: vfs.CreateUnchecked,
		Set: vfs.SetAttr{Valid: vfs.MaskMode | vfs.MaskSize, Mode: fileMode},
	}
	if !f.t.o.InPlace {
		at = name + "." + f.t.run + "." + strconv.FormatUint(f.t.temps.Add(1), 16)
		how.Mode, how.Set.Valid = vfs.CreateGuarded, vfs.MaskMode
	}
	err := f.write(ctx, at, &how, data)
	if f.t.o.InPlace {
		return err
	}
	if err == nil {
		_, _, err = f.t.fs.Rename(ctx, f.h, at, f.h, name)
	}
	if err != nil {
		f.drop(ctx, at)
	}
	return err
}

// drop removes a temporary, also if ctx has ended. One that stays is for clean.
func (f *nfsFolder) drop(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTime)
	defer cancel()
	_, _ = f.t.fs.Remove(ctx, f.h, name, false) // the upload has failed already
}

func (f *nfsFolder) write(ctx context.Context, name string, how *vfs.CreateHow, data []byte) error {
	h, err := f.create(ctx, name, how)
	if err != nil {
		return err
	}
	file, _, err := f.t.fs.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareWrite})
	if err != nil {
		return err
	}
	return errors.Join(f.fill(ctx, file, data), file.Close(ctx))
}

// fill writes data: stably, in one call if that is enough, or else with a COMMIT
// behind; or as the server likes.
func (f *nfsFolder) fill(ctx context.Context, file vfs.File, data []byte) error {
	one := len(data) <= f.t.wsize
	how := vfs.Unstable
	if one && !f.t.o.NoSync {
		how = vfs.FileSync
	}
	var w, done vfs.Written
	if _, err := vfs.WriteFull(ctx, file, data, 0, how, &w); err != nil {
		return err
	}
	if f.t.o.NoSync || w.Committed == vfs.FileSync {
		return nil
	}
	if err := file.Commit(ctx, 0, 0, &done); err != nil {
		return err
	}
	f.t.commits.Add(1)
	if done.Verf != w.Verf {
		return errVerifier
	}
	return nil
}

func (f *nfsFolder) download(ctx context.Context, name string, want, buf []byte) error {
	file, opened, err := f.t.fs.Open(ctx, vfs.At{Dir: f.h, Name: name}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		return err
	}
	n, _, err := vfs.ReadFull(ctx, file, buf[:len(want)], 0)
	if err == nil && opened.Attr.Has(vfs.MaskSize) && opened.Attr.Size != uint64(len(want)) {
		err = errContent
	}
	if err = errors.Join(err, file.Close(ctx)); err != nil {
		return err
	}
	return same(buf[:n], want)
}

func (f *nfsFolder) exist(ctx context.Context, name string) (bool, error) {
	_, _, _, err := f.t.fs.Lookup(ctx, f.h, name)
	if errors.Is(err, vfs.ErrNoEnt) {
		return false, nil
	}
	return err == nil, err
}

func (f *nfsFolder) remove(ctx context.Context, name string, isDir bool) error {
	_, err := f.t.fs.Remove(ctx, f.h, name, isDir)
	return err
}

func (f *nfsFolder) list(ctx context.Context) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		for e, err := range f.t.fs.ReadDir(ctx, f.h, vfs.Pos{}, vfs.MaskType, 0) {
			if err != nil {
				yield(entry{}, err)
				return
			}
			name, kind := string(e.Name), e.Attr.Type
			if !e.Attr.Has(vfs.MaskType) {
				_, kind, err = f.look(ctx, name)
			}
			if errors.Is(err, vfs.ErrNoEnt) {
				continue // it has gone since it was listed
			}
			if err != nil {
				yield(entry{}, err)
				return
			}
			if !yield(entry{name, kind == vfs.TypeDir, kind == vfs.TypeReg}, nil) {
				return
			}
		}
	}
}

// look finds what has a name, without following a link.
func (f *nfsFolder) look(ctx context.Context, name string) (vfs.Handle, vfs.Type, error) {
	h, attr, _, err := f.t.fs.Lookup(ctx, f.h, name)
	if err == nil && !attr.Has(vfs.MaskType) {
		attr, err = f.t.fs.GetAttr(ctx, h, vfs.MaskType)
	}
	return h, attr.Type, err
}
