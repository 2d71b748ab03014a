//go:build linux

package fusefs

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/testkit/expect"
	"github.com/nfsbox/nfsbox/internal/testkit/leak"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/internal/testkit/posixsuite"
)

func TestMain(m *testing.M) { leak.Main(m) }

// TestPOSIX: what programs expect of a directory, on two mounts of our server, which have their locks for themselves.
func TestPOSIX(t *testing.T) {
	served := t.TempDir()
	url := serve(t, served)
	posixsuite.Run(t, posixsuite.Place{Dir: mount(t, url, Options{}), Other: mount(t, url, Options{}), Local: served})
}

// TestTwin: operations by chance have the same results on a mount as in a directory of this host. A soak makes a million.
func TestTwin(t *testing.T) {
	count := 20_000
	if testing.Short() {
		count = 2_000
	}
	if os.Getenv("NFSBOX_SOAK") != "" {
		count = 1_000_000
	}
	posixsuite.Twin(t, mount(t, serveMemory(t), Options{}), t.TempDir(), count)
}

// TestLists: access control lists are extended attributes of the names that acl(5) has.
func TestLists(t *testing.T) {
	need.Fuse(t)
	dir := mount(t, serveMemory(t), Options{})
	name := filepath.Join(dir, "f")
	expect.OK(t, os.WriteFile(name, nil, 0o644))
	get := func() ([]byte, error) {
		b := make([]byte, 1024)
		n, err := unix.Lgetxattr(name, aclAccess, b)
		return b[:max(n, 0)], err
	}
	_, err := get()
	expect.Errno(t, err, syscall.ENODATA)
	uid := uint32(os.Geteuid()) + 7
	list := encodeACL(aclOf(uid))
	expect.OK(t, unix.Lsetxattr(name, aclAccess, list, 0))
	if got, err := get(); err != nil || !bytes.Equal(got, list) {
		t.Errorf("the list is %x, %v; want %x", got, err, list)
	}
	expect.OK(t, unix.Lremovexattr(name, aclAccess))
	_, err = get()
	expect.Errno(t, err, syscall.ENODATA)
	expect.Errno(t, unix.Lsetxattr(name, "user.x", []byte("v"), 0), syscall.ENOTSUP)
}
