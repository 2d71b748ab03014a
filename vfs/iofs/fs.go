package iofs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/nfsbox/nfsbox/vfs"
)

// FS is a tree as an io/fs.FS. It may be used concurrently; the files that it
// opens may not, but for ReadAt. Errors are *fs.PathError around a [vfs.Status].
type FS struct {
	ctx  context.Context
	fs   vfs.FS
	root vfs.Handle
}

var (
	_ fs.StatFS     = (*FS)(nil)
	_ fs.ReadDirFS  = (*FS)(nil)
	_ fs.ReadFileFS = (*FS)(nil)
	_ fs.ReadLinkFS = (*FS)(nil)
	_ fs.SubFS      = (*FS)(nil)
)

// New returns the tree under the directory root of f. ctx ends every call.
func New(ctx context.Context, f vfs.FS, root vfs.Handle) *FS {
	return &FS{ctx: ctx, fs: f, root: root}
}

// WithContext returns the same tree under another context.
func (f *FS) WithContext(ctx context.Context) *FS { return New(ctx, f.fs, f.root) }

// Open opens a file or a directory. What is neither (a device, a pipe) can be
// opened and stat'ed, and not read.
func (f *FS) Open(name string) (fs.File, error) {
	at, err := f.walk("open", name, true)
	if err != nil {
		return nil, err
	}
	switch at.attr.Type {
	case vfs.TypeDir:
		return &dir{fs: f, at: at, name: name}, nil
	case vfs.TypeReg:
		file, opened, err := f.fs.Open(f.ctx, vfs.At{H: at.handle}, &vfs.OpenHow{Access: vfs.ShareRead})
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
		if opened.Attr.Has(needed) {
			at.attr = opened.Attr
		}
		return &regular{fs: f, file: file, info: info{at.name, at.attr}, name: name}, nil
	}
	return &other{info{at.name, at.attr}}, nil
}

// Stat describes what name leads to, links followed.
func (f *FS) Stat(name string) (fs.FileInfo, error) { return f.stat("stat", name, true) }

// Lstat describes name itself.
func (f *FS) Lstat(name string) (fs.FileInfo, error) { return f.stat("lstat", name, false) }

func (f *FS) stat(op, name string, follow bool) (fs.FileInfo, error) {
	at, err := f.walk(op, name, follow)
	if err != nil {
		return nil, err
	}
	return info{at.name, at.attr}, nil
}

// ReadLink returns the target of a symbolic link, as it is.
func (f *FS) ReadLink(name string) (string, error) {
	at, err := f.walk("readlink", name, false)
	if err != nil {
		return "", err
	}
	if at.attr.Type != vfs.TypeSymlink {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: vfs.ErrInval}
	}
	target, _, err := f.fs.Readlink(f.ctx, at.handle)
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: err}
	}
	return target, nil
}

// ReadDir returns all entries of a directory, by name. A directory too large to
// be held is better opened, and its ReadDir(n) called.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	at, err := f.walk("readdir", name, true)
	if err != nil {
		return nil, err
	}
	if at.attr.Type != vfs.TypeDir {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: vfs.ErrNotDir}
	}
	d := dir{fs: f, at: at, name: name}
	entries, err := d.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// maxPresized bounds how much ReadFile allocates on the word of a server. A
// longer file makes it grow as the bytes come.
const maxPresized = 1 << 20

// ReadFile returns the contents of a file.
func (f *FS) ReadFile(name string) ([]byte, error) {
	file, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	r, ok := file.(*regular)
	if !ok {
		return nil, errors.Join(&fs.PathError{Op: "read", Path: name, Err: vfs.ErrIsDir}, file.Close())
	}
	buf := make([]byte, 0, min(r.info.attr.Size, maxPresized)+512)
	for {
		n, rerr := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if rerr != nil {
			if errors.Is(rerr, io.EOF) {
				rerr = nil
			}
			return buf, errors.Join(rerr, r.Close())
		}
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, cap(buf))
		}
	}
}

// Sub returns the tree under name.
func (f *FS) Sub(name string) (fs.FS, error) {
	at, err := f.walk("sub", name, true)
	if err != nil {
		return nil, err
	}
	if at.attr.Type != vfs.TypeDir {
		return nil, &fs.PathError{Op: "sub", Path: name, Err: vfs.ErrNotDir}
	}
	return New(f.ctx, f.fs, at.handle), nil
}

// errEscapes says that a symbolic link leads out of the tree.
var errEscapes = fmt.Errorf("symbolic link leads out of the tree: %w", vfs.ErrAccess)
