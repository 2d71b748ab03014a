//go:build linux

package localfs

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// Data calls by descriptor, for which it does not matter what thread makes them: the
// gate may have threads of its own for that. A Sys that is not the operating
// system's does its work itself.

func (h *host) pread(fd int, p []byte, off int64) (n int, err error) {
	for {
		if n, err = h.o.Gate.Pread(fd, p, off); !errors.Is(err, unix.EINTR) {
			return max(n, 0), linux.Fail("pread", err)
		}
	}
}

func (h *host) pwrite(fd int, p []byte, off int64) (n int, err error) {
	if h.o.Sys != nil {
		n, err = h.o.Sys.Pwrite(fd, p, off)
		return n, linux.Fail("pwrite", err)
	}
	for {
		if n, err = h.o.Gate.Pwrite(fd, p, off); !errors.Is(err, unix.EINTR) {
			return max(n, 0), linux.Fail("pwrite", err)
		}
	}
}

// fsync makes all of a file stable, or the names in a directory.
func (h *host) fsync(fd int) error {
	if h.o.Sys != nil {
		return linux.Fail("fsync", h.o.Sys.Fsync(fd))
	}
	return linux.Fail("fsync", linux.Again(func() error { return h.o.Gate.Fsync(fd) }))
}

// fdatasync makes the data of a file stable.
func (h *host) fdatasync(fd int) error {
	if h.o.Sys != nil {
		return linux.Fail("fdatasync", h.o.Sys.Fdatasync(fd))
	}
	return linux.Fail("fdatasync", linux.Again(func() error { return h.o.Gate.Fdatasync(fd) }))
}

// diskFailed says that bytes may be lost which clients believe to be on their way to the
// disk. Every write verifier told until now becomes void, and clients send again what they
// have not committed.
func (h *host) diskFailed(err error) {
	h.newVerifier()
	h.counts.verifiers.Add(1)
	h.o.Report(fmt.Errorf("%w; the write verifier has been changed, so that clients send again what was not committed", err))
}

// closedDirty is told of a dirty descriptor that is closed because its object was seen to
// lose its last name. If the object has got another name meanwhile, no call would hear that
// the disk failed to take its data: so the verifier changes.
func (h *host) closedDirty(d *fdcache.Desc) {
	var st linux.Stat
	if err := st.Of(d.FD); err != nil || st.Nlink > 0 {
		h.newVerifier()
		h.counts.verifiers.Add(1)
	}
}

// newVerifier takes another write verifier than the one in force.
func (h *host) newVerifier() {
	var b vfs.Verifier
	for {
		h.o.Rand(b[:])
		n, old := binary.LittleEndian.Uint64(b[:]), h.verf.Load()
		for n == 0 || n == old { // what is handed in need not be random
			n++
		}
		if h.verf.CompareAndSwap(old, n) {
			return
		}
	}
}

func (h *host) verifier() (v vfs.Verifier) {
	binary.LittleEndian.PutUint64(v[:], h.verf.Load())
	return v
}
