//go:build linux

package localfs

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

func needRoot(t *testing.T) {
	t.Helper()
	if !isRoot() {
		need.Missing(t, "root", "this needs root")
	}
}

// Two users, and a group that one of them is in.
const team = 12050

func alice() *vfs.Caller { return &vfs.Caller{UID: 12001, GID: 12001, Groups: []uint32{team}} }
func bob() *vfs.Caller   { return &vfs.Caller{UID: 12002, GID: 12002} }

// dirOf makes a directory that belongs to c.
func dirOf(t *testing.T, f vfs.FS, name string, c *vfs.Caller, mode uint32) vfs.Handle {
	t.Helper()
	x, _, _, err := f.Create(t.Context(), root(t, f), name, &vfs.CreateHow{Type: vfs.TypeDir,
		Set: vfs.SetAttr{Valid: vfs.MaskUID | vfs.MaskGID | vfs.MaskMode, UID: c.UID, GID: c.GID, Mode: mode}})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func chmod(t *testing.T, f vfs.FS, x vfs.Handle, mode uint32) error {
	t.Helper()
	_, err := f.SetAttr(t.Context(), x, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: mode}, nil)
	return err
}

func attrOf(t *testing.T, f vfs.FS, x vfs.Handle) vfs.Attr {
	t.Helper()
	a, err := f.GetAttr(t.Context(), x, vfs.MaskV3)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// write writes one byte, as f's caller.
func write(t *testing.T, f vfs.FS, x vfs.Handle) error {
	t.Helper()
	file, _, err := f.Open(t.Context(), vfs.At{H: x}, &vfs.OpenHow{Access: vfs.ShareWrite})
	if err != nil {
		return err
	}
	var w vfs.Written
	_, err = file.WriteAt(t.Context(), []byte{'w'}, 0, vfs.Unstable, &w)
	return errors.Join(err, file.Close(t.Context()))
}

func TestCallers(t *testing.T) {
	needRoot(t)
	bothModes(t, func(t *testing.T, o Options) {
		f := open(t, t.TempDir(), o)
		if f.Squashed() {
			need.Missing(t, "root", "root here cannot act for others")
		}
		home := dirOf(t, f, "home", alice(), 0o755)
		a, b := f.As(alice()), f.As(bob())
		x := mkfile(t, a, home, "x", "secret")
		if got := attrOf(t, f, x); got.UID != alice().UID || got.GID != alice().GID || got.Mode != 0o644 {
			t.Errorf("alice's file is %d:%d %o", got.UID, got.GID, got.Mode)
		}
		_, _, _, err := b.Create(t.Context(), home, "y", &vfs.CreateHow{Type: vfs.TypeReg})
		wantErr(t, err, vfs.ErrAccess)
		_, err = b.Remove(t.Context(), home, "x", false)
		wantErr(t, err, vfs.ErrAccess)
		wantErr(t, chmod(t, b, x, 0o777), vfs.ErrPerm)
		if got := content(t, b, x); got != "secret" { // and now the descriptor is cached
			t.Errorf("bob reads %q", got)
		}
		if err := chmod(t, a, x, 0); err != nil {
			t.Fatal(err)
		}
		_, err = readAll(t.Context(), b, x)
		wantErr(t, err, vfs.ErrAccess)
		wantErr(t, write(t, b, x), vfs.ErrAccess)
		if got := content(t, a, x); got != "secret" { // the owner, whatever the mode
			t.Errorf("alice reads %q", got)
		}
		if err := chmod(t, a, x, 0o111); err != nil {
			t.Fatal(err)
		}
		if got := content(t, b, x); got != "secret" { // a caller that may run it must read it
			t.Errorf("bob reads %q of a program", got)
		}
		if err := chmod(t, a, home, 0o700); err != nil {
			t.Fatal(err)
		}
		_, _, _, err = b.Lookup(t.Context(), home, "x")
		wantErr(t, err, vfs.ErrAccess)
		for _, err := range b.ReadDir(t.Context(), home, vfs.Pos{}, 0, 0) {
			wantErr(t, err, vfs.ErrAccess)
		}
	})
}

func TestGroupsAreTaken(t *testing.T) {
	needRoot(t)
	f := open(t, t.TempDir(), mapOptions(t))
	shared := dirOf(t, f, "shared", &vfs.Caller{UID: 0, GID: team}, 0o2770)
	x := mkfile(t, f.As(alice()), shared, "x", "")
	if got := attrOf(t, f, x); got.GID != team {
		t.Errorf("group %d in a set-gid directory, want %d", got.GID, team)
	}
	_, _, _, err := f.As(bob()).Lookup(t.Context(), shared, "x")
	wantErr(t, err, vfs.ErrAccess)
}

// TestWriteClearsSetUID checks what root's own thread would not do.
func TestWriteClearsSetUID(t *testing.T) {
	needRoot(t)
	f := open(t, t.TempDir(), mapOptions(t))
	x := mkfile(t, f, root(t, f), "x", "program")
	if err := chmod(t, f, x, 0o6777); err != nil {
		t.Fatal(err)
	}
	if err := write(t, f.As(bob()), x); err != nil {
		t.Fatal(err)
	}
	if got := attrOf(t, f, x).Mode; got != 0o777 {
		t.Errorf("mode %o after another user's write", got)
	}
}

func TestACL(t *testing.T) {
	needRoot(t)
	f := open(t, t.TempDir(), mapOptions(t))
	x := mkfile(t, f, root(t, f), "x", "listed")
	d, err := f.object(x)
	if err != nil {
		t.Fatal(err)
	}
	defer f.fds.Unpin(d)
	if err := chmod(t, f, x, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = readAll(t.Context(), f.As(bob()), x)
	wantErr(t, err, vfs.ErrAccess)
	// user::rw-, user:bob:r--, group::---, mask::r--, other::---
	acl := []byte{2, 0, 0, 0,
		1, 0, 6, 0, 255, 255, 255, 255,
		2, 0, 4, 0, 0xe2, 0x2e, 0, 0,
		4, 0, 0, 0, 255, 255, 255, 255,
		16, 0, 4, 0, 255, 255, 255, 255,
		32, 0, 0, 0, 255, 255, 255, 255}
	if err := unix.Setxattr(linux.ProcPath(d.FD), "system.posix_acl_access", acl, 0); err != nil {
		t.Skipf("no access control lists here: %v", err)
	}
	if got := content(t, f.As(bob()), x); got != "listed" {
		t.Errorf("bob, who is on the list, reads %q", got)
	}
	_, err = readAll(t.Context(), f.As(alice()), x)
	wantErr(t, err, vfs.ErrAccess)
	wantErr(t, write(t, f.As(bob()), x), vfs.ErrAccess)
}

// TestThreadsStayClean runs many callers at once and looks at the ids of every
// thread that it can get hold of afterwards.
func TestThreadsStayClean(t *testing.T) {
	needRoot(t)
	f := open(t, t.TempDir(), mapOptions(t))
	var own linux.Caps
	if err := linux.GetCaps(&own); err != nil {
		t.Fatal(err)
	}
	pub := dirOf(t, f, "pub", &vfs.Caller{}, 0o777)
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			c := &vfs.Caller{UID: uint32(20000 + i), GID: uint32(20000 + i)}
			v := f.As(c)
			for range 20 {
				name := strings.Repeat("x", i+1)
				x, a, _, err := v.Create(t.Context(), pub, name, &vfs.CreateHow{Type: vfs.TypeDir})
				if err != nil || a.UID != c.UID || a.GID != c.GID {
					t.Errorf("caller %d: %v is %d:%d, %v", c.UID, x, a.UID, a.GID, err)
				}
				if _, err := v.Remove(t.Context(), pub, name, true); err != nil {
					t.Error(err)
				}
				if a := attrOf(t, f, pub); a.UID != 0 {
					t.Error("the directory has changed hands")
				}
			}
		})
	}
	wg.Wait()
	for range 64 {
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			uid, err := unix.SetfsuidRetUid(-1)
			if err != nil || uid != 0 {
				t.Errorf("a thread has the fsuid %d, %v", uid, err)
			}
			var c linux.Caps
			if err := linux.GetCaps(&c); err != nil || c != own {
				t.Errorf("a thread has the capabilities %v, %v", c, err)
			}
		})
	}
	wg.Wait()
}
