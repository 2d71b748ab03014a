package iofs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/nfsbox/nfsbox/vfs"
)

// FS is a tree as an io/fs.FS, with the methods of package os that change files. It
// may be used concurrently.
type FS struct {
	ctx  context.Context
	fs   vfs.FS
	root vfs.Handle
	who  identity
	*shared
}

// shared is what all trees of one New have in common.
type shared struct {
	memory  memory
	buffers buffers
}

// identity is the caller of a view: that of As, or else the caller of the file system
// that New was given.
type identity struct {
	as     bool
	caller *vfs.Caller
}

func (i identity) equal(o identity) bool { return i.as == o.as && i.caller.Equal(o.caller) }

var (
	_ fs.StatFS     = (*FS)(nil)
	_ fs.ReadDirFS  = (*FS)(nil)
	_ fs.ReadFileFS = (*FS)(nil)
	_ fs.ReadLinkFS = (*FS)(nil)
	_ fs.SubFS      = (*FS)(nil)
)

// New returns the tree under the directory root of f. ctx ends every call.
func New(ctx context.Context, f vfs.FS, root vfs.Handle) *FS {
	return &FS{ctx: ctx, fs: f, root: root, shared: new(shared)}
}

// Root returns the whole of f. ctx ends every call. For what a URL names, use Tree of
// nfsbox.Client instead. If the URL names no directory, or nothing, the root of the
// client's FS is the directory above: a mistyped name would lead there.
func Root(ctx context.Context, f vfs.FS) (*FS, error) {
	root, _, err := f.Root(ctx)
	if err != nil {
		return nil, err
	}
	return New(ctx, f, root), nil
}

// WithContext returns the same tree under another context.
func (f *FS) WithContext(ctx context.Context) *FS {
	view := *f
	view.ctx = ctx
	return &view
}

// As returns the same tree as another caller sees it. c is not changed
// afterwards; nil is the caller that the file system itself runs as.
func (f *FS) As(c *vfs.Caller) *FS {
	view := *f
	view.fs, view.who = f.fs.As(c), identity{true, c}
	return &view
}

// Open opens a file or a directory for reading. It returns a [*File], a
// fs.ReadDirFile, or, for a device, pipe or the like, an fs.File that has only Stat.
func (f *FS) Open(name string) (fs.File, error) {
	var opened fs.File
	err := f.at("open", name, object, func(w *walker) error {
		at, err := w.described()
		if err != nil {
			return err
		}
		at.name = path.Base(name)
		switch at.attr.Type {
		case vfs.TypeDir:
			opened = &dir{fs: f, at: at, name: name}
		case vfs.TypeReg:
			opened, err = f.openFound(name, at, os.O_RDONLY)
		default:
			opened = &other{info{at.name, at.attr}}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return opened, nil
}

// Stat describes what name leads to, links followed.
func (f *FS) Stat(name string) (fs.FileInfo, error) { return f.stat("stat", name, object) }

// Lstat describes name itself.
func (f *FS) Lstat(name string) (fs.FileInfo, error) { return f.stat("lstat", name, itself) }

func (f *FS) stat(op, name string, g goal) (fs.FileInfo, error) {
	at, err := f.find(op, name, g)
	if err != nil {
		return nil, err
	}
	return info{at.name, at.attr}, nil
}

// ReadLink returns the target of a symbolic link, byte for byte.
func (f *FS) ReadLink(name string) (target string, err error) {
	err = f.at("readlink", name, itself, func(w *walker) error {
		at, err := w.described()
		if err == nil && at.attr.Type != vfs.TypeSymlink {
			err = vfs.ErrInval
		}
		if err == nil {
			target, _, err = f.fs.Readlink(f.ctx, at.handle)
		}
		return err
	})
	return target, err
}

// ReadDir returns all entries of a directory, by name. One too large to be held
// is better listed by [FS.Entries].
func (f *FS) ReadDir(name string) (entries []fs.DirEntry, err error) {
	err = f.at("readdir", name, directory, func(w *walker) error {
		entries = entries[:0]
		for e, err := range f.list(w.here().handle, vfs.Pos{}) {
			if err != nil {
				return err
			}
			entries = append(entries, e)
		}
		return nil
	})
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// maxPresized bounds how much ReadFile allocates because of the size that a server
// claims. Beyond that it allocates at most presizeFactor times what has come already.
const (
	maxPresized   = 1 << 20
	presizeFactor = 8
)

// ReadFile returns the contents of a file.
func (f *FS) ReadFile(name string) ([]byte, error) {
	r, err := f.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	data, err := r.readAll()
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	return data, err
}

func (o *File) readAll() ([]byte, error) {
	if o.opened.Size >= math.MaxInt {
		return nil, o.fail("read", vfs.ErrFBig)
	}
	size := o.opened.Size + 1 // one byte more, to meet the end of the file
	buf := make([]byte, 0, min(size, maxPresized))
	for {
		n, err := o.next(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if errors.Is(err, io.EOF) {
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
		if have := uint64(len(buf)); have == uint64(cap(buf)) {
			left := max(size, have) - have // 0: the file has grown
			buf = slices.Grow(buf, int(min(max(left, have), presizeFactor*have)))
		}
	}
}

// Sub returns the tree under name, as a *FS. Links do not lead out of it.
func (f *FS) Sub(name string) (fs.FS, error) {
	at, err := f.find("sub", name, object)
	if err != nil {
		return nil, err
	}
	if at.attr.Type != vfs.TypeDir {
		return nil, &fs.PathError{Op: "sub", Path: name, Err: vfs.ErrNotDir}
	}
	view := *f
	view.root = at.handle
	return &view, nil
}
