// Package osfs is a directory of this host, to be served: the one that nfsbox serve has.
// It runs on Linux.
//
//	tree, err := osfs.Open("/srv/photos", osfs.Options{})
//	if err != nil {
//		return err
//	}
//	defer tree.Close()
//	return nfsserver.ListenAndServe(ctx, "", export.Export{Path: "/", FS: tree})
//
// # What is in it, and what is not
//
// No name, link or race leads out of the directory. What is mounted below it is hidden,
// unless [Options.CrossMounts] is set. Local programs may change the tree at the same time.
//
// # Whose rights
//
// If the process is root, each caller has its own rights on the disk, access control lists
// included, and owns what it makes. Any other process acts as its own user alone: what
// callers make belongs to that user, and what they may is judged by modes.
//
// # Handles
//
// Handles survive renames. To survive the end of the process as well, a process that is not
// root, or whose file system has no handles, needs [Options.StateDir]; and the server that
// seals the handles must keep its key (export.Key).
//
// # What is stable when
//
// Data is on the disk after Commit or a stable write, names and attributes after Sync:
// the FS is a [vfs.Syncer]. Package export calls it for its clients.
//
// At most 32 calls wait for the disk at once, whatever the number of clients.
package osfs

import (
	"fmt"
	"io"

	"github.com/nfsbox/nfsbox/internal/server/iogate"
	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// Options say how a directory is served. The zero Options serve it for reading and writing.
type Options struct {
	// ReadOnly refuses every change with [vfs.ErrROFS].
	ReadOnly bool
	// CrossMounts makes what is mounted below the directory part of the tree.
	CrossMounts bool
	// StateDir is an own directory, outside of the tree, in which handles are kept where the
	// kernel has none or does not give them to this user. One process at a time uses it. "":
	// there, handles die with the process.
	StateDir string
	// Report, if not nil, is told what no caller is: a hidden mount point, a failed sync. It
	// must not block, nor call the FS.
	Report func(error)
}

// FS is a directory of this host. Close makes stable what was written, and closes all
// descriptors. When it is called no call may be in flight, and none may follow: first the
// server ends, then the FS.
type FS interface {
	vfs.FS
	io.Closer
}

// Open opens a directory, following symbolic links on the way to it now and never again.
func Open(dir string, o Options) (FS, error) {
	gate, err := iogate.New(iogate.Options{}) // of the kind that has nothing to close
	if err != nil {
		return nil, fmt.Errorf("osfs: %w", err)
	}
	f, err := localfs.New(dir, localfs.Options{
		ReadOnly: o.ReadOnly, CrossMounts: o.CrossMounts, StateDir: o.StateDir, Volatile: o.StateDir == "",
		Report: o.Report, Gate: gate.Export(dir),
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}
