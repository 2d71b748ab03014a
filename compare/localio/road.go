package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/vfs"
)

// The roads, in the order of their turns.
const (
	localRoad = "LOCALIO"
	rpcRoad   = "RPC"
	plainRoad = "direct"
)

var roadNames = []string{localRoad, rpcRoad, plainRoad}

// road is a way to the files.
type road struct {
	name   string
	dir    string         // what is served, for the plain one
	client *nfsbox.Client // nil for that
	fs     vfs.FS
	root   vfs.Handle
}

// file is an open one. read fills p, and write has written p and made it stable
// when it returns.
type file interface {
	read(p []byte, off int) error
	write(p []byte, off int) error
	close() error
}

// open goes to the server as a new client. LOCALIO is required where it is
// measured: there is no falling back in silence.
func open(ctx context.Context, o *options, server *url.URL, name string) (*road, error) {
	r := &road{name: name, dir: o.export()}
	if name == plainRoad {
		return r, nil
	}
	u := *server
	switch name {
	case localRoad:
		u.RawQuery = "localio=require&localio-dir=" + url.QueryEscape(o.sockets())
	case rpcRoad:
		u.RawQuery = "localio=off"
	}
	var err error
	if r.client, err = nfsbox.Dial(ctx, u.String()); err != nil {
		return nil, err
	}
	r.fs = r.client.FS()
	if r.root, _, err = r.fs.Root(ctx); err != nil {
		return nil, errors.Join(err, r.client.Close())
	}
	return r, nil
}

func (r *road) close() error {
	if r == nil || r.client == nil {
		return nil
	}
	return r.client.Close()
}

// calls are the READs and WRITEs that have gone over the network.
func (r *road) calls() (n uint64) {
	if r.client == nil {
		return 0
	}
	for _, p := range r.client.Stats().Procs {
		if p.Name == "READ" || p.Name == "WRITE" {
			n += p.Calls
		}
	}
	return n
}

func (r *road) open(ctx context.Context, name string, write bool) (file, error) {
	if r.client == nil {
		flags := os.O_RDONLY
		if write {
			flags = os.O_WRONLY
		}
		f, err := os.OpenFile(filepath.Join(r.dir, name), flags, 0)
		if err != nil {
			return nil, err
		}
		return plain{f}, nil
	}
	how := &vfs.OpenHow{Access: vfs.ShareRead}
	if write {
		how.Access = vfs.ShareWrite
	}
	f, _, err := r.fs.Open(ctx, vfs.At{Dir: r.root, Name: name}, how)
	if err != nil {
		return nil, err
	}
	return &served{ctx: ctx, f: f}, nil
}

// plain is a file of this host.
type plain struct{ f *os.File }

func (f plain) close() error { return f.f.Close() }

func (f plain) read(p []byte, off int) error {
	n, err := f.f.ReadAt(p, int64(off))
	if n == len(p) && errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (f plain) write(p []byte, off int) error {
	if _, err := f.f.WriteAt(p, int64(off)); err != nil {
		return err
	}
	return f.f.Sync()
}

// served is a file of the server.
type served struct {
	ctx context.Context
	f   vfs.File
}

func (f *served) close() error { return f.f.Close(f.ctx) }

func (f *served) read(p []byte, off int) error {
	n, _, err := f.f.ReadAt(f.ctx, p, uint64(off), nil)
	if n < len(p) && err == nil { // which is allowed
		n, _, err = vfs.ReadFull(f.ctx, f.f, p, uint64(off))
	}
	if n < len(p) && err == nil {
		err = fmt.Errorf("%d of %d bytes at %d: %w", n, len(p), off, io.ErrUnexpectedEOF)
	}
	return err
}

func (f *served) write(p []byte, off int) error {
	var w vfs.Written
	if _, err := vfs.WriteFull(f.ctx, f.f, p, uint64(off), vfs.Unstable, &w); err != nil {
		return err
	}
	return f.f.Commit(f.ctx, uint64(off), uint64(len(p)), &w)
}
