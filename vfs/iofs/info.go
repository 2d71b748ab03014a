package iofs

import (
	"io/fs"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// info describes an object.
type info struct {
	name string
	attr vfs.Attr
}

var _ fs.FileInfo = info{}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return int64(min(i.attr.Size, 1<<63-1)) }
func (i info) Mode() fs.FileMode  { return FileMode(&i.attr) }
func (i info) ModTime() time.Time { return i.attr.Mtime }
func (i info) IsDir() bool        { return i.attr.Type == vfs.TypeDir }
func (i info) String() string     { return fs.FormatFileInfo(i) }

// Sys returns the *vfs.Attr.
func (i info) Sys() any { return &i.attr }

var typeBits = [...]fs.FileMode{
	vfs.TypeNone:    fs.ModeIrregular,
	vfs.TypeReg:     0,
	vfs.TypeDir:     fs.ModeDir,
	vfs.TypeBlock:   fs.ModeDevice,
	vfs.TypeChar:    fs.ModeDevice | fs.ModeCharDevice,
	vfs.TypeSymlink: fs.ModeSymlink,
	vfs.TypeSocket:  fs.ModeSocket,
	vfs.TypeFIFO:    fs.ModeNamedPipe,
}

var specialBits = [...]struct {
	bit  uint32
	mode fs.FileMode
}{{0o4000, fs.ModeSetuid}, {0o2000, fs.ModeSetgid}, {0o1000, fs.ModeSticky}}

// FileMode returns the type and permissions in a, as an fs.FileMode.
func FileMode(a *vfs.Attr) fs.FileMode {
	m := fs.FileMode(a.Mode & 0o777)
	if int(a.Type) < len(typeBits) {
		m |= typeBits[a.Type]
	} else {
		m |= fs.ModeIrregular
	}
	for _, b := range specialBits {
		if a.Mode&b.bit != 0 {
			m |= b.mode
		}
	}
	return m
}

// modeBits converts the permissions in m, with set-uid, set-gid and sticky, to those of
// vfs.
func modeBits(m fs.FileMode) uint32 {
	bits := uint32(m.Perm())
	for _, b := range specialBits {
		if m&b.mode != 0 {
			bits |= b.bit
		}
	}
	return bits
}
