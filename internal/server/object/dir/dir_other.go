//go:build !linux

package dir

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// Store is an object store in a local directory. There is none on this operating
// system.
type Store struct{ object.Store }

// Open fails: only Linux has what the store needs.
func Open(path string, _ Options) (*Store, error) {
	return nil, fmt.Errorf("object store %s: a store in a local directory is not supported on %s", path, runtime.GOOS)
}

// Sweep does nothing.
func (*Store) Sweep(context.Context, time.Time) (removed int, more bool, err error) {
	return 0, false, nil
}

// Check does nothing.
func (*Store) Check(context.Context, func(Finding)) (Checked, error) { return Checked{}, nil }

// Snapshot is empty.
func (*Store) Snapshot() Snapshot { return Snapshot{} }
