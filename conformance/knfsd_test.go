//go:build linux

package conformance

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/testkit/expect"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

// contractGroups are the groups of the suite that run. Locks are not among them, since the guest's lock manager has a grace of
// more than a minute, nor large files, which take long there.
var contractGroups = []string{
	"getattr", "setattr", "access", "lookup", "readlink", "create", "mkdir", "symlink", "mknod", "link", "remove", "rename", "open", "read", "write",
	"commit", "truncate", "readdir", "info", "handle", "names", "identity", "acl", "concurrent", "cancel",
}

// contractDifferences are what the server of Linux 6.1 does in its own way, as users of our client see it.
var contractDifferences = map[string]string{
	"readlink/of-others":           knfsdDifferences["readlink/not-a-symlink"],
	"create/unchecked-over-others": knfsdDifferences["create/over-others"],
	"open/stale":                   cached,
	"remove/file":                  cached,
	"remove/name-again":            cached,
	"rename/replaces-file":         cached,
	"acl/no-list":                  "knfsd takes two entries for one user",
	"acl/no-directory":             "knfsd sets the access list of a file, and then refuses its default list",
}

// contract runs the suite of the client's contract over the guest's server, whose ports these are.
func contract(t *testing.T, nfs, mount int) {
	url := func(path string) string {
		return fmt.Sprintf("nfs://127.0.0.1:%d/export/main%s?mountport=%d", nfs, path, mount)
	}
	fs := client(t, url(""))
	root, _, err := fs.Root(t.Context())
	expect.OK(t, err)
	n := 0
	vfstest.Run(t, vfstest.Config{
		Callers:     true,
		Groups:      contractGroups,
		Differences: contractDifferences,
		New: func(t *testing.T) vfs.FS {
			n++
			name := fmt.Sprintf("contract-%d", n)
			_, _, _, err := fs.Create(t.Context(), root, name, &vfs.CreateHow{Type: vfs.TypeDir, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o755}})
			expect.OK(t, err)
			return client(t, url("/"+name))
		},
	})
}

// client is root's view of what url names.
func client(t *testing.T, url string) vfs.FS {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := nfsbox.Dial(ctx, url, nfsbox.WithCaller(vfs.Caller{}), nfsbox.WithLocalIO(nfsbox.LocalIOOff))
	expect.OK(t, err)
	t.Cleanup(func() { expect.OK(t, c.Close()) })
	return c.FS()
}
