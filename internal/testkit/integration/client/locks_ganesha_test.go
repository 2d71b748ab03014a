//go:build linux

package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/testkit/ganesha"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

// startLockingGanesha starts an nfs-ganesha with a lock manager until the test ends. It returns the directory
// that it exports.
func startLockingGanesha(t *testing.T, grace time.Duration) (h *ganesha.Host, dir string) {
	t.Helper()
	if err := ganesha.MissingHost(); err != nil {
		need.Missing(t, "ganesha", err.Error())
	}
	dir = filepath.Join(t.TempDir(), "export")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return ganesha.StartHost(t, fmt.Sprintf("EXPORT { Export_Id = 1; Path = %s; Pseudo = /export; "+
		"Access_Type = RW; Attr_Expiration_Time = 0; FSAL { Name = VFS; } }", dir), grace), dir
}

// TestLocksGanesha runs the suite's locks against nfs-ganesha, whose lock manager the port mapper tells of.
func TestLocksGanesha(t *testing.T) {
	need.Time(t, "locks of nfs-ganesha")
	t.Parallel() // it waits
	h, dir := startLockingGanesha(t, 0)
	n := 0
	vfstest.Run(t, vfstest.Config{
		Groups:      []string{"lock"},
		Callers:     true,
		Differences: map[string]string{"lock/rights": "ganesha lets anybody lock who can name the file"},
		New: func(t *testing.T) vfs.FS {
			n++
			name := fmt.Sprintf("suite%d", n)
			if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
				t.Fatal(err)
			}
			return dial(t, h.URL(dir+"/"+name), nfsbox.WithDialer(h.DialContext)).FS()
		},
	})
}

// TestLocksOverGaneshaRestart: what was locked is had back in the grace of an nfs-ganesha that was killed, at whatever
// port its lock manager is then, and a lock that another asks for meanwhile is refused.
func TestLocksOverGaneshaRestart(t *testing.T) {
	if os.Getenv("NFSBOX_SOAK") == "" {
		t.Skip("a server's grace, which passes in real time: NFSBOX_SOAK=1 waits for it")
	}
	const grace = 25 * time.Second
	h, dir := startLockingGanesha(t, grace)
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o666); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	open := func() (vfs.Locker, vfs.Handle, *nfsbox.Client) {
		c := dial(t, h.URL(dir), nfsbox.WithDialer(h.DialContext))
		root, _, err := c.FS().Root(ctx)
		if err != nil {
			t.Fatal(err)
		}
		f, _, _, err := c.FS().Lookup(ctx, root, "file")
		if err != nil {
			t.Fatal(err)
		}
		return vfs.LockerOf(c.FS()), f, c
	}
	first, fh, c := open()
	second, sh, _ := open()
	lock := func(off uint64) *vfs.Lock {
		return &vfs.Lock{Owner: vfs.Owner{N: 1}, Exclusive: true, Off: off, Len: 10}
	}
	if err := first.Lock(ctx, fh, lock(0)); err != nil {
		t.Fatal(err)
	}
	h.Restart()
	if err := second.Lock(ctx, sh, lock(5)); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("what another holds: %v", err)
	}
	if st := c.Stats().Locks; st.Reclaimed == 0 || st.Lost != 0 || st.Locks != 1 {
		t.Errorf("%+v", st)
	}
	if err := errors.Join(first.Unlock(ctx, fh, lock(0)), second.Lock(ctx, sh, lock(5)), second.Unlock(ctx, sh, lock(5))); err != nil {
		t.Error(err)
	}
}
