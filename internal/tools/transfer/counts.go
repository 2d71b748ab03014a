package transfer

import (
	"context"
	"sync"

	"github.com/nfsbox/nfsbox/vfs"
)

// readFull reads until p is full or the file ends. It differs from vfs.ReadFull in that it
// passes on attributes, and that a count which cannot be is [ErrCount].
func readFull(ctx context.Context, f vfs.File, p []byte, off uint64, post *vfs.Attr) (n int, err error) {
	for n < len(p) {
		m, eof, err := f.ReadAt(ctx, p[n:], off+uint64(n), post)
		if m < 0 || m > len(p)-n || m == 0 && !eof && err == nil {
			return n, ErrCount
		}
		n += m
		if err != nil || eof {
			return n, err
		}
	}
	return n, nil
}

// writeFull writes all of p, and enters into l the stability and the verifier of each
// answer. It differs from vfs.WriteFull in that a count which cannot be is [ErrCount].
func writeFull(ctx context.Context, f vfs.File, p []byte, off uint64, how vfs.Stability, l *ledger) error {
	for n := 0; n < len(p); {
		var w vfs.Written
		m, err := f.WriteAt(ctx, p[n:], off+uint64(n), how, &w)
		if err != nil {
			return err
		}
		if m <= 0 || m > len(p)-n {
			return ErrCount
		}
		l.add(&w)
		n += m
	}
	return nil
}

// ledger is what a file system has answered to all writes of a file. One that owns its
// dirty bytes always answers with the same verifier; a raw one does not after a restart.
type ledger struct {
	mu       sync.Mutex
	unstable bool         // a COMMIT is needed
	mixed    bool         // the verifiers differ: bytes may be lost
	verf     vfs.Verifier // of the first unstable write
}

func (l *ledger) add(w *vfs.Written) {
	if w.Committed != vfs.Unstable {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.unstable {
		l.unstable, l.verf = true, w.Verf
	}
	if w.Verf != l.verf {
		l.mixed = true
	}
}
