package daemon

import (
	"math"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
)

// TestOpenFiles: all directories together keep half of the process's descriptors for
// connections, whatever is configured, and each has what is configured if that is less.
func TestOpenFiles(t *testing.T) {
	for _, x := range []struct {
		configured, exports int
		limit               uint64
		want                int
	}{
		{4096, 1, 1 << 20, 4096}, {4096, 1, 1024, 512}, {4096, 4, 1024, 128}, {100, 4, 1024, 100},
		{4096, 4096, 1024, config.MinOpenFiles}, {4096, 0, 1024, 512}, {4096, 3, math.MaxInt, 4096},
	} {
		c := config.Config{MaxOpenFiles: x.configured, Exports: make([]config.Export, x.exports)}
		if got := openFiles(&c, x.limit); got != x.want {
			t.Errorf("%d of each of %d directories, with a limit of %d: %d, want %d", x.configured, x.exports, x.limit, got, x.want)
		}
	}
}
