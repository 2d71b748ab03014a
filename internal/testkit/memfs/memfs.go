// Package memfs is the file system in memory with its means for tests: faults, restarts,
// short transfers. It gives tests the names of base/memfs, which has the code and its
// description. Package vfs/memfs is the same for other programs, without those means.
package memfs

import "github.com/nfsbox/nfsbox/internal/base/memfs"

// FS is one caller's view of a tree in memory.
type FS = memfs.FS

// Options say how an FS behaves, and when it fails. The zero Options are usable.
type Options = memfs.Options

// New makes an empty file system and returns the superuser's view of it.
func New(o Options) *FS { return memfs.New(o) }
