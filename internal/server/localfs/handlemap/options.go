//go:build linux

package handlemap

import "github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"

// Options are what a map is made of.
type Options struct {
	// StateDir is the directory of the map's file, which one process at a time uses. It
	// must not lie in the tree. "" is a map in memory, if Volatile.
	StateDir string
	Volatile bool
	// Disk is what changes the file.
	Disk Disk
	// Rand fills its argument with randomness; Report gets errors that no caller does.
	Rand   func([]byte)
	Report func(error)

	Path      string // of the tree, for messages
	Root      int    // its top directory, open as O_PATH
	RootMount uint64 // the mount that Root is in
	// Mount tells objects of another mount apart, and is the key of that mount. ok is false if it
	// is not part of the tree.
	Mount func(id uint64) (by *Identifier, key uint64, ok bool)
	// FDs has the descriptors of directories on the way.
	FDs *fdcache.Cache
	// InTree is vfs.ErrStale for a directory that lies outside of the tree now. Beneath
	// says the same of a descriptor.
	InTree  func(d *fdcache.Desc) error
	Beneath func(fd int) (bool, error)

	// NoHandles is for tests: objects are known by their birth.
	NoHandles bool
}

// Disk are the system calls that change the map's file. They are as localfs.Sys has them.
type Disk interface {
	Openat(dirfd int, name string, flags int, mode uint32) (fd int, err error)
	Unlinkat(dirfd int, name string, flags int) error
	Renameat(fromfd int, from string, tofd int, to string) error
	Pwrite(fd int, p []byte, off int64) (int, error)
	Ftruncate(fd int, size int64) error
	Fsync(fd int) error
	Fdatasync(fd int) error
}
