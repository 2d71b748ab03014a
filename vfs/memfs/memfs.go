// Package memfs is a file system in memory, to be served (package nfsserver) or to be used
// in a program's own tests of what it does with a [vfs.FS].
//
//	tree := memfs.New(memfs.Options{Mode: 0o777})
//
// It behaves like one on disk: hard and symbolic links, devices, sparse files, rename in all
// its cases, modes and owners that are enforced for the caller of each view, access control
// lists, extended attributes, locks on ranges of bytes, and listings that go on while the directory changes. Where
// file systems differ it follows Linux.
//
// All of it is lost with the process. Handles are those of one FS, and none is used again for
// another object.
package memfs

import (
	"github.com/nfsbox/nfsbox/internal/base/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// Options bound a file system, and say whose its top directory is. The zero Options are
// usable.
type Options struct {
	// MaxBytes bounds the memory of all files' data, in bytes; holes take none. 0 is 4 GiB.
	// At the bound a write is [vfs.ErrNoSpace].
	MaxBytes uint64
	// MaxFiles bounds the files, directories and other objects. 0 is 4,194,304. At the bound
	// nothing is created: [vfs.ErrNoSpace].
	MaxFiles uint64
	// UID and GID own the top directory.
	UID, GID uint32
	// Mode is that of the top directory, 07777. 0 is 0755: its owner alone makes files there.
	Mode uint32
}

// New makes an empty file system, and returns the view of its superuser, whom no mode
// concerns; [vfs.FS.As] makes those of other callers. It needs no closing.
func New(o Options) vfs.FS {
	return memfs.New(memfs.Options{MaxBytes: o.MaxBytes, MaxFiles: o.MaxFiles, UID: o.UID, GID: o.GID, Mode: o.Mode})
}
