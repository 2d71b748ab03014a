package files

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object/layout"
)

// The bounds of a store.
const (
	// DefaultMaxSize bounds an object, in bytes, if Options do not say. A larger object
	// is object.ErrTooLarge.
	DefaultMaxSize = 5 << 40

	// MaxSweep is how many leftovers one Sweep removes at most.
	MaxSweep = 10_000

	// chunk is how many bytes are read, hashed and written at a time, and what a Put holds
	// in memory. An object that fits one is one write, and is read in one piece.
	chunk = 64 << 10

	// maxFolders bounds the directories whose handles are kept. At the bound all are
	// forgotten, and looked up again when they are needed.
	maxFolders = 4096

	// maxTries is how often a change whose outcome is not known is settled and made again,
	// and how often a directory is listed that its server has lost the place in. Then the
	// last error is returned.
	maxTries = 5

	// maxAnew is how often a call begins anew because what it had looked up has gone: each time
	// another host has replaced it. Then that is the call's error.
	maxAnew = 100

	// lookPatience bounds how long a change is settled, or a temporary removed, after the
	// caller's context has ended. Then the outcome is unknown, or the temporary stays.
	lookPatience = 30 * time.Second

	// walkBatch is how many subdirectories a sweep remembers at a time.
	walkBatch = 256
)

// Options are the options of Open. The zero value opens a store to write, and makes it where
// there is none.
type Options struct {
	// ReadOnly opens a store that exists, and changes nothing.
	ReadOnly bool
	// Existing makes no store: where there is none, that is layout.ErrNoStore.
	Existing bool
	// Fanout is that of a new store's layout; 0 is layout.DefaultFanout. A store that exists
	// keeps its own.
	Fanout int
	// MaxSize bounds an object, in bytes; 0 is DefaultMaxSize.
	MaxSize int64
	// Rand fills its argument with random bytes; nil is crypto/rand.Read.
	Rand func([]byte)
}

// complete checks the options and fills in what they leave open.
func (o *Options) complete() error {
	switch {
	case o.Fanout < 0 || o.Fanout > layout.MaxFanout:
		return fmt.Errorf("a fan-out of %d: it is 1 to %d characters", o.Fanout, layout.MaxFanout)
	case o.MaxSize < 0:
		return errors.New("objects of less than no bytes")
	}
	o.Fanout = cmp.Or(o.Fanout, layout.DefaultFanout)
	o.MaxSize = cmp.Or(o.MaxSize, DefaultMaxSize)
	if o.Rand == nil {
		// It never fails: it ends the process instead.
		o.Rand = func(p []byte) { _, _ = rand.Read(p) }
	}
	return nil
}
