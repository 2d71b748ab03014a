//go:build linux

package fusefs

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fails fails the test unless err is want.
func fails(t *testing.T, err error, want syscall.Errno) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%v, want %v", err, want)
	}
}

func content(t *testing.T, path, want string) {
	t.Helper()
	if b, err := os.ReadFile(path); err != nil || string(b) != want {
		t.Errorf("%s holds %q, %v; want %q", path, b, err, want)
	}
}

func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(bound); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come")
		}
	}
}

// TestLists: access control lists are extended attributes of the names that acl(5) has.
func TestLists(t *testing.T) {
	need.Fuse(t)
	dir := mount(t, serveMemory(t), Options{})
	name := filepath.Join(dir, "f")
	check(t, os.WriteFile(name, nil, 0o644))
	get := func() ([]byte, error) {
		b := make([]byte, 1024)
		n, err := unix.Lgetxattr(name, aclAccess, b)
		return b[:max(n, 0)], err
	}
	_, err := get()
	fails(t, err, syscall.ENODATA)
	uid := uint32(os.Geteuid()) + 7
	list := encodeACL(aclOf(uid))
	check(t, unix.Lsetxattr(name, aclAccess, list, 0))
	if got, err := get(); err != nil || !bytes.Equal(got, list) {
		t.Errorf("the list is %x, %v; want %x", got, err, list)
	}
	check(t, unix.Lremovexattr(name, aclAccess))
	_, err = get()
	fails(t, err, syscall.ENODATA)
	fails(t, unix.Lsetxattr(name, "user.x", []byte("v"), 0), syscall.ENOTSUP)
}
