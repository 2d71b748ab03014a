package daemon

import (
	"testing"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

// TestPowers proves the powers of what a client has of a daemon's tree, over the network
// and past it.
func TestPowers(t *testing.T) {
	for name, mode := range map[string]nfsbox.LocalIO{"off": nfsbox.LocalIOOff, "require": nfsbox.LocalIORequire, "trusted": nfsbox.LocalIOTrusted} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of the time a server waits for its clients to leave
			vfstest.Run(t, vfstest.Config{Groups: []string{"powers"}, New: func(t *testing.T) vfs.FS {
				conf := confOf(t.TempDir(), t.TempDir())
				conf.Exports[0].Squash = "none"
				if mode != nfsbox.LocalIOOff {
					conf.LocalIO, conf.LocalIODir = config.LocalIOOn, localDir(t)
				}
				url, _, _ := run(t, conf)
				c, err := nfsbox.Dial(t.Context(), url, nfsbox.WithLocalIO(mode), nfsbox.WithLocalIODir(conf.LocalIODir))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := c.Close(); err != nil {
						t.Error(err)
					}
				})
				return c.FS()
			}})
		})
	}
}
