package iofs

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"path"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// maxSpots bounds the objects whose handles are in use. At the bound Lookup of another
	// one fails, and the error says so.
	maxSpots = 1 << 20
	// maxListedSpots is the part of them that listings may fill. Beyond it entries come
	// without handles, and callers look them up.
	maxListedSpots = maxSpots / 2
	// dirSize is the size of every directory, in bytes.
	dirSize = 4096
)

// From makes fsys a [vfs.FS] that nobody changes, to be served: an embed.FS, a zip.Reader,
// the FS of an os.Root. See the package's section "From io/fs".
func From(fsys fs.FS) vfs.FS {
	s := &source{fsys: fsys, seed: maphash.MakeSeed(), born: time.Now(), paths: make(map[spot]string)}
	s.links, _ = fsys.(fs.ReadLinkFS)
	var random [16]byte
	_, _ = rand.Read(random[:]) // it never fails
	s.id, s.key = [8]byte(random[:8]), [8]byte(random[8:])
	s.held.files = make(map[version]*whole)
	s.recent.batches = make(map[string]*batch)
	return &from{source: s}
}

// from is an io/fs.FS as one caller sees it.
type from struct {
	vfs.ReadOnly
	*source
	who *vfs.Caller
}

// source is what all views share.
type source struct {
	fsys  fs.FS
	links fs.ReadLinkFS // fsys; nil: it follows links itself
	id    [8]byte       // of this FS, in each handle
	key   [8]byte       // of the spots
	seed  maphash.Seed  // of the cookies
	born  time.Time     // the time of what has none

	mu    sync.RWMutex
	paths map[spot]string // guarded by mu

	held   held
	recent recent
}

// spot is what a handle has of a path: a hash of it that nobody can aim at.
type spot [16]byte

func (s *source) spotOf(p string) spot {
	b := append(make([]byte, 0, 128), s.key[:]...)
	sum := sha256.Sum256(append(b, p...))
	return spot(sum[:16])
}

func (p spot) fileID() uint64 { return binary.BigEndian.Uint64(p[:8]) | 1 }

// handle is the handle of a path, and remembers whose it is. It fails if most are known.
func (s *source) handle(p string, most int) (vfs.Handle, bool) {
	at := s.spotOf(p)
	s.mu.RLock()
	_, known := s.paths[at]
	s.mu.RUnlock()
	if !known {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.paths) >= most {
			return vfs.Handle{}, false
		}
		s.paths[at] = p
	}
	h, err := vfs.MakeHandle(append(s.id[:], at[:]...))
	return h, err == nil
}

// path is that of a handle.
func (s *source) path(ctx context.Context, h vfs.Handle) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	b := h.Bytes()
	if len(b) != len(s.id)+len(spot{}) || [8]byte(b) != s.id {
		return "", vfs.ErrBadHandle
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	p, ok := s.paths[spot(b[len(s.id):])]
	if !ok {
		return "", vfs.ErrBadHandle
	}
	return p, nil
}

// at is what a handle names, and its attributes now.
func (s *source) at(ctx context.Context, h vfs.Handle) (p string, a vfs.Attr, err error) {
	if p, err = s.path(ctx, h); err != nil {
		return "", a, err
	}
	a, err = s.stat(p)
	if errors.Is(err, fs.ErrNotExist) {
		err = vfs.ErrStale
	}
	return p, a, err
}

// dir is at, of a directory.
func (s *source) dir(ctx context.Context, h vfs.Handle) (p string, a vfs.Attr, err error) {
	if p, a, err = s.at(ctx, h); err == nil && a.Type != vfs.TypeDir {
		err = vfs.ErrNotDir
	}
	return p, a, err
}

func (s *source) stat(p string) (a vfs.Attr, err error) {
	var info fs.FileInfo
	if s.links != nil {
		info, err = s.links.Lstat(p)
	} else {
		info, err = fs.Stat(s.fsys, p)
	}
	if err != nil {
		return a, err
	}
	return s.attr(p, info)
}

// attr are the attributes of p. What is of no type that NFS has is not there.
func (s *source) attr(p string, info fs.FileInfo) (vfs.Attr, error) {
	a := vfs.Attr{
		Valid: vfs.MaskV3, Type: typeOf(info.Mode()), Mode: uint32(info.Mode().Perm()), Nlink: 1,
		Size: uint64(max(info.Size(), 0)), FileID: s.spotOf(p).fileID(),
		FSID: [2]uint64{binary.BigEndian.Uint64(s.id[:])}, Mtime: info.ModTime(),
	}
	if a.Mtime.IsZero() {
		a.Mtime = s.born
	}
	switch a.Type {
	case vfs.TypeNone:
		return a, fmt.Errorf("%s: %v: %w", p, info.Mode(), fs.ErrNotExist)
	case vfs.TypeDir:
		a.Size, a.Nlink = dirSize, 2
	case vfs.TypeSymlink:
		target, err := s.target(p)
		if err != nil {
			return a, err
		}
		a.Size = uint64(len(target))
	}
	a.Used, a.Atime, a.Ctime, a.Change = a.Size, a.Mtime, a.Mtime, uint64(a.Mtime.UnixNano())
	return a, nil
}

func typeOf(m fs.FileMode) vfs.Type {
	for t, bits := range typeBits {
		if bits == m.Type() && t != int(vfs.TypeNone) {
			return vfs.Type(t)
		}
	}
	return vfs.TypeNone
}

// target is where the link p leads.
func (s *source) target(p string) (string, error) {
	if s.links == nil {
		return "", vfs.ErrInval
	}
	t, err := s.links.ReadLink(p)
	if err == nil && (t == "" || len(t) > vfs.MaxPath) {
		err = fmt.Errorf("%s: a link of %d bytes: %w", p, len(t), vfs.ErrIO)
	}
	return t, err
}

// Rights, as in the last three bits of a mode.
const (
	mayRead = 4
	mayExec = 1 // in a directory: look names up
)

// may reports whether the caller has a right. Everything is root's.
func (f *from) may(a *vfs.Attr, right uint32) bool {
	switch {
	case f.who == nil || f.who.UID == 0:
		return right != mayExec || a.Type == vfs.TypeDir || a.Mode&0o111 != 0
	case f.who.InGroup(0):
		return a.Mode>>3&right != 0
	}
	return a.Mode&right != 0
}

func (f *from) As(c *vfs.Caller) vfs.FS { return &from{source: f.source, who: c} }

func (f *from) Root(ctx context.Context) (h vfs.Handle, a vfs.Attr, err error) {
	if err := ctx.Err(); err != nil {
		return h, a, err
	}
	if a, err = f.stat("."); err == nil && a.Type != vfs.TypeDir {
		err = vfs.ErrNotDir
	}
	if err != nil {
		return h, a, err
	}
	h, err = f.found(".")
	return h, a, err
}

// found is the handle of what a caller has looked up.
func (f *from) found(p string) (vfs.Handle, error) {
	h, ok := f.handle(p, maxSpots)
	if !ok {
		return h, fmt.Errorf("%s: more than %d objects are in use: %w", p, maxSpots, vfs.ErrIO)
	}
	return h, nil
}

func (f *from) Info(ctx context.Context, h vfs.Handle, want vfs.InfoMask) (vfs.Info, error) {
	if _, err := f.path(ctx, h); err != nil {
		return vfs.Info{}, err
	}
	i, err := f.ReadOnly.Info(ctx, h, want)
	i.HasSymlinks = f.links != nil
	return i, err
}

func (f *from) GetAttr(ctx context.Context, h vfs.Handle, _ vfs.Mask) (vfs.Attr, error) {
	_, a, err := f.at(ctx, h)
	return a, err
}

func (f *from) Access(ctx context.Context, h vfs.Handle, want vfs.Access) (vfs.Access, vfs.Attr, error) {
	_, a, err := f.at(ctx, h)
	if err != nil {
		return 0, a, err
	}
	exec := vfs.AccessExecute
	if a.Type == vfs.TypeDir {
		exec = vfs.AccessLookup
	}
	var have vfs.Access
	if f.may(&a, mayRead) {
		have |= vfs.AccessRead
	}
	if f.may(&a, mayExec) {
		have |= exec
	}
	return want & have, a, nil
}

func (f *from) Lookup(ctx context.Context, dir vfs.Handle, name string) (h vfs.Handle, a, d vfs.Attr, err error) {
	p, d, err := f.dir(ctx, dir)
	if err != nil {
		return h, a, d, err
	}
	if !f.may(&d, mayExec) {
		return h, a, d, vfs.ErrAccess
	}
	if name == ".." {
		p = path.Dir(p)
	} else if p, err = below(p, name); err != nil {
		return h, a, d, err
	}
	if a, err = f.stat(p); errors.Is(err, fs.ErrNotExist) {
		err = vfs.ErrNoEnt
	}
	if err == nil {
		h, err = f.found(p)
	}
	return h, a, d, err
}

// below is the path of a name in a directory. What io/fs has no path for is not there.
func below(dir, name string) (string, error) {
	if err := vfs.CheckName(name); err != nil {
		return "", err
	}
	p := path.Join(dir, name)
	switch {
	case len(p) > vfs.MaxPath:
		return "", vfs.ErrNameTooLong
	case !fs.ValidPath(p):
		return "", vfs.ErrNoEnt
	}
	return p, nil
}

func (f *from) Readlink(ctx context.Context, h vfs.Handle) (string, vfs.Attr, error) {
	p, a, err := f.at(ctx, h)
	if err == nil && a.Type != vfs.TypeSymlink {
		err = vfs.ErrInval
	}
	if err != nil {
		return "", a, err
	}
	t, err := f.target(p)
	return t, a, err
}
