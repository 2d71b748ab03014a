package place

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/server/object/files"
	"github.com/nfsbox/nfsbox/vfs"
)

// served is a store of a server, with the client that it has for itself.
type served struct {
	object.Store
	at *Place
}

// Close implements object.Store.
func (s *served) Close() error { return errors.Join(s.Store.Close(), s.at.Close()) }

// openStoreServer opens a store in a directory of a server.
func openStoreServer(ctx context.Context, arg string, o StoreOptions) (*Store, error) {
	p, err := openNFS(ctx, arg, true, Options{Dial: o.Dial})
	switch {
	case errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrUnreachable): // the directory above it
		why := noExport
		if above := aboveURL(arg); above != "" && o.makes() {
			why = "there is no directory " + above + ": make it, as with nfsbox mkdir -p"
		}
		return nil, &noStoreError{arg, why}
	case err != nil:
		if answer(err) && !errors.Is(err, ErrUsage) && !errors.Is(err, ErrUnreachable) {
			err = fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
		return nil, err
	}
	s, err := p.openStore(ctx, o)
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%s: %w", arg, ctx.Err())
		}
		return nil, errors.Join(err, p.Close())
	}
	return s, nil
}

// aboveURL is the URL of the directory above the one that arg names; "" if it has none.
func aboveURL(arg string) string {
	u, err := nfsbox.ParseURL(arg)
	if err != nil {
		return ""
	}
	above, _, ok := divided(withoutEnd(u.String()))
	if !ok {
		return ""
	}
	return withoutEnd(above)
}

// openStore opens the store at the place, which is a server's.
func (p *Place) openStore(ctx context.Context, o StoreOptions) (*Store, error) {
	r, err := p.Resolve(ctx, true)
	if errors.Is(err, fs.ErrNotExist) {
		if !o.makes() {
			return nil, &noStoreError{p.Text, noExport}
		}
		r, err = p.makeDir(ctx)
	}
	switch {
	case errors.Is(err, vfs.ErrNotDir), err == nil && r.Attr.Type != vfs.TypeDir:
		return nil, noStoreDir(p.Text)
	case err != nil:
		return nil, storeError(p.Text, err)
	}
	s, err := files.Open(ctx, p.FS, r.Handle, files.Options{ReadOnly: !o.Write, Existing: o.Existing})
	if err != nil {
		return nil, storeError(p.Text, err)
	}
	of := &Store{Store: &served{s, p}, Text: p.Text, Fresh: s.Fresh(), Dir: r.Attr}
	if !o.Write && o.Reading != nil { // whoever may write makes what it sees stable, which is a change
		w, err := files.Open(ctx, p.FS, r.Handle, files.Options{Existing: true})
		if err != nil {
			return nil, errors.Join(storeError(p.Text, err), s.Close())
		}
		of.leases = w
	}
	return of, nil
}

// makeDir makes the directory that the place names. Another host may have made it meanwhile.
func (p *Place) makeDir(ctx context.Context) (vfs.Resolved, error) {
	dir, name, err := p.Parent(ctx)
	if err == nil {
		_, _, _, err = p.FS.Create(ctx, dir, name, &vfs.CreateHow{Type: vfs.TypeDir, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o700}})
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return vfs.Resolved{}, err
	}
	return p.Resolve(ctx, true)
}
