package fileapi

import (
	"context"
	"strings"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/vfs"
)

// named is a request that names a file by its path.
type named interface {
	GetPath() string
	GetRawPath() []byte
}

// place is the export that a request is for, as its caller sees it. It is a vfs.FS whose
// root is the export's, so that symbolic links with absolute targets stay in it. Those
// with ".." do anyway.
type place struct {
	*export.View
	root vfs.Handle
	attr vfs.Attr
	rest string // of the path, below the root
}

func (p *place) Root(context.Context) (vfs.Handle, vfs.Attr, error) { return p.root, p.attr, nil }

// find returns the place of a request.
func (s *Server) find(ctx context.Context, n named) (*place, error) {
	path := n.GetPath()
	if raw := n.GetRawPath(); raw != nil {
		path = string(raw)
	}
	if err := checkPath(path); err != nil {
		return nil, err
	}
	at, ok := mountPoint(s.o.Table.Exports(), path)
	if !ok {
		return nil, vfs.ErrNoEnt
	}
	r := requestOf(ctx)
	r.path = path
	p := &place{View: s.view(r.who, r.remote), rest: strings.TrimPrefix(path, at)}
	var err error
	p.root, p.attr, err = p.Mount(ctx, at)
	return p, err
}

// checkPath refuses what is no path, what might lead out of the export, and the server's
// own names.
func checkPath(path string) error {
	switch {
	case !strings.HasPrefix(path, "/"):
		return refuse(connect.CodeInvalidArgument, "a path begins with %q", "/")
	case len(path) > vfs.MaxPath:
		return refuse(connect.CodeInvalidArgument, "the path is longer than %d bytes", vfs.MaxPath)
	case strings.ContainsRune(path, 0):
		return refuse(connect.CodeInvalidArgument, "the path holds a NUL")
	}
	for part := range strings.SplitSeq(path, "/") {
		switch {
		case part == "..":
			return refuse(connect.CodeInvalidArgument, `the path holds a ".."`)
		case reserved(part):
			return refuse(connect.CodeInvalidArgument, "names that begin with %s are the server's", tempPrefix)
		}
	}
	return nil
}

// mountPoint returns the longest path of an export that path lies under. Repeated
// slashes, and ".", are for below it.
func mountPoint(exports []export.Export, path string) (string, bool) {
	best, ok := "", false
	for i := range exports {
		e := exports[i].Path
		under := e == "/" || path == e || strings.HasPrefix(path, e) && path[len(e)] == '/'
		if under && (!ok || len(e) > len(best)) {
			best, ok = e, true
		}
	}
	return best, ok
}

func (p *place) resolve(ctx context.Context, follow bool) (vfs.Handle, vfs.Attr, error) {
	// A name before a slash is that of a directory (path_resolution(7)), or of a link to
	// one.
	last := p.rest[strings.LastIndexByte(p.rest, '/')+1:]
	dir := p.rest != "" && (last == "" || last == ".")
	r, err := vfs.Resolve(ctx, p, p.root, p.rest, follow || dir)
	if err == nil && !r.Attr.Has(vfs.MaskV3) {
		r.Attr, err = p.GetAttr(ctx, r.Handle, vfs.MaskV3)
	}
	if err == nil && dir && r.Attr.Type != vfs.TypeDir {
		err = vfs.ErrNotDir
	}
	return r.Handle, r.Attr, err
}

// parent finds the directory that holds, or will hold, what the path names, and the name
// there. Symbolic links are followed, except in the last part.
func (p *place) parent(ctx context.Context) (vfs.Handle, string, error) {
	i := strings.LastIndexByte(p.rest, '/')
	dir, name := p.rest[:max(i, 0)], p.rest[i+1:]
	if err := vfs.CheckName(name); err != nil {
		return vfs.Handle{}, "", refuse(connect.CodeInvalidArgument, "the path's last part cannot be a name: %w", err)
	}
	r, err := vfs.Resolve(ctx, p, p.root, dir, true)
	return r.Handle, name, err
}
