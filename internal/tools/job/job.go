package job

import (
	"errors"

	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// DefaultParallel is how many files are compared at once if the options do not say.
	// Small files take a round trip each.
	DefaultParallel = 64
	// MaxParallel is the most files at once. More is MaxParallel.
	MaxParallel = 1024

	// copyParallel is how many files are copied at once if the options do not say. Each
	// file is made stable, and a journal commits many concurrent ones together.
	copyParallel = 64

	// maxChunks bounds the chunks in flight, of up to transfer.MaxChunk bytes
	// each: 64 MiB in all. More files at once than this get a chunk each.
	maxChunks = 64
)

// Exit codes of a command that ran a job.
const (
	ExitDone        = 0
	ExitRefused     = 1 // the job makes no sense as it was given
	ExitIncomplete  = 2 // some items failed; they have been reported
	ExitDifferent   = 3 // a verification found differences
	ExitUnreachable = 4 // the source or the destination cannot be reached, or was lost on the way
)

var (
	// ErrUnreachable says that the source or the destination could not be
	// looked at, and nothing has been done.
	ErrUnreachable = errors.New("cannot be reached")
	// ErrIntoItself says that the destination is, or lies within, the source.
	ErrIntoItself = errors.New("the destination is the source, or lies within it")
	// ErrSpecial says that a file would replace a device, a pipe or a socket.
	ErrSpecial = errors.New("which is neither replaced nor written into: remove it first, or write into it with nfsbox cat SOURCE > DEST")
	// ErrRecord says that the job's record cannot be used: it is damaged,
	// another job's, or in use.
	ErrRecord = errors.New("the job's record cannot be used")
)

// Place is an object of a file system.
type Place struct {
	FS     vfs.FS
	Handle vfs.Handle
}

// exitCode is the exit code for err and the numbers of failures and differences.
func exitCode(err error, failed, different uint64) int {
	switch {
	case errors.Is(err, ErrUnreachable), errors.Is(err, ErrGone), errors.Is(err, vfs.ErrNoAnswer):
		return ExitUnreachable
	case errors.Is(err, ErrIntoItself), errors.Is(err, ErrSpecial), errors.Is(err, ErrRecord), errors.Is(err, vfs.ErrInval):
		return ExitRefused
	case err != nil, failed > 0:
		return ExitIncomplete
	case different > 0:
		return ExitDifferent
	}
	return ExitDone
}

// objectID identifies an object within a file system.
type objectID struct {
	fsid   [2]uint64
	fileID uint64
}

// idOf is a's identity, if it has one.
func idOf(a *vfs.Attr) (objectID, bool) {
	return objectID{a.FSID, a.FileID}, a.Has(vfs.MaskFSID | vfs.MaskFileID)
}

// parallel is how many files are worked on at once: n, at most MaxParallel, or otherwise if n
// is not set.
func parallel(n, otherwise int) int {
	if n <= 0 {
		return otherwise
	}
	return min(n, MaxParallel)
}
