package dirfs

import (
	"errors"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/syncfs"
)

// TestWholeOfAnother: an object of another file system than the root's is synced by itself.
func TestWholeOfAnother(t *testing.T) {
	wholes := 0
	w := whole{dev: 7, shared: syncfs.New(func(int) error { wholes++; return nil }, 0, time.Now)}
	alone := errors.New("alone")
	if err := w.or(8, func() error { return alone }); !errors.Is(err, alone) || wholes != 0 {
		t.Errorf("%v, and %d syncs of the whole", err, wholes)
	}
	if err := w.or(7, func() error { return alone }); err != nil || wholes != 1 {
		t.Errorf("of its own: %v, and %d syncs of the whole", err, wholes)
	}
}
