package dirfs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// xattrs is a directory with files, of which some have extended attributes.
func xattrs(t testing.TB) (dir string, f *FS) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{"none", "one", "other"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Setxattr(filepath.Join(dir, "one"), "user.x", []byte("x"), 0); err != nil {
		t.Skipf("NOT TESTED with extended attributes: %v", err)
	}
	return dir, open(t, dir, Options{})
}

// TestHasXattrs: an open file and its name say the same; a list is no extended attribute. An open file knows whether it may have
// one, where the file system names it.
func TestHasXattrs(t *testing.T) {
	dir, f := xattrs(t)
	root, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h, _, _, err := f.Lookup(t.Context(), root, "other")
	if err != nil {
		t.Fatal(err)
	}
	set := true
	acl := vfs.ACL{Access: []vfs.ACLEntry{
		{Tag: vfs.ACLUserObj, Perm: 7}, {Tag: vfs.ACLUser, ID: 12345, Perm: 7}, {Tag: vfs.ACLGroupObj, Perm: 5},
		{Tag: vfs.ACLMask, Perm: 7}, {Tag: vfs.ACLOther, Perm: 0},
	}}
	if err := f.SetACL(t.Context(), h, acl); err != nil {
		t.Logf("without a list: %v", err)
		set = false
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	named := slices.Contains([]int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC}, int64(st.Type))
	for name, want := range map[string]bool{"none": false, "one": true, "other": false} {
		h, _, _, err := f.Lookup(t.Context(), root, name)
		if err != nil {
			t.Fatal(err)
		}
		opened, _, err := f.Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
		if err != nil {
			t.Fatal(err)
		}
		byFile, list := opened.(*file).Extras(t.Context())
		if want := name == "other" && set || !named; list != want {
			t.Errorf("%s may have a list: %v, want %v", name, list, want)
		}
		if got := f.HasXattrs(t.Context(), h); got != want || byFile != want {
			t.Errorf("%s in %s: %v, open %v, want %v", name, dir, got, byFile, want)
		}
		if err := opened.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestHasXattrsUnread: what cannot be read counts as an object with extended attributes, and
// what is gone does not.
func TestHasXattrsUnread(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"d/f", "gone"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700), os.WriteFile(filepath.Join(dir, name), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	f := open(t, dir, Options{})
	root, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gone, _, _, err := f.Lookup(t.Context(), root, "gone")
	if err != nil {
		t.Fatal(err)
	}
	d, _, _, err := f.Lookup(t.Context(), root, "d")
	if err != nil {
		t.Fatal(err)
	}
	h, _, _, err := f.Lookup(t.Context(), d, "f")
	if err != nil {
		t.Fatal(err)
	}
	opened, _, err := f.Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(opened.Close(t.Context()), os.Remove(filepath.Join(dir, "gone"))); err != nil {
		t.Fatal(err)
	}
	if f.HasXattrs(t.Context(), gone) {
		t.Error("what is gone has extended attributes")
	}
	if xattrs, list := opened.(*file).Extras(t.Context()); !xattrs || !list {
		t.Error("a file that cannot be read has no extended attributes, or no list")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if !f.HasXattrs(ended, h) {
		t.Error("what was not asked has no extended attributes")
	}
	if err := os.Chmod(filepath.Join(dir, "d"), 0); err != nil {
		t.Fatal(err)
	}
	if !unprivileged(t, func() bool { return f.HasXattrs(t.Context(), h) }) {
		t.Error("what may not be looked at has no extended attributes")
	}
	if err := os.Chmod(filepath.Join(dir, "d"), 0o700); err != nil {
		t.Error(err)
	}
}

// unprivileged calls has on a thread without root's privileges over files.
func unprivileged(t *testing.T, has func() bool) (had bool) {
	t.Helper()
	if os.Geteuid() != 0 {
		return has()
	}
	var err error
	var done sync.WaitGroup
	done.Go(func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine
		if err = unix.Setfsuid(12345); err == nil {
			had = has()
		}
	})
	done.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return had
}

// BenchmarkExtras is what each file of a local source costs more.
func BenchmarkExtras(b *testing.B) {
	_, f := xattrs(b)
	root, _, err := f.Root(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	h, _, _, err := f.Lookup(b.Context(), root, "none")
	if err != nil {
		b.Fatal(err)
	}
	opened, _, err := f.Open(b.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		b.Fatal(err)
	}
	x := opened.(*file)
	for b.Loop() {
		x.Extras(b.Context())
	}
	if err := opened.Close(b.Context()); err != nil {
		b.Error(err)
	}
}

// TestXattrsOfLinks: a symbolic link has attributes of its own, and not its target's. It has none of users.
func TestXattrsOfLinks(t *testing.T) {
	dir, f := xattrs(t)
	link := filepath.Join(dir, "to one")
	if err := os.Symlink("one", link); err != nil {
		t.Fatal(err)
	}
	if err := unix.Lsetxattr(link, "trusted.nfsbox", []byte("link"), 0); err != nil {
		t.Skipf("NOT TESTED: no trusted extended attributes: %v", err)
	}
	root, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h, _, _, err := f.Lookup(t.Context(), root, "to one")
	if err != nil {
		t.Fatal(err)
	}
	if names, err := f.Xattrs(t.Context(), h); err != nil || len(names) != 1 || names[0] != "trusted.nfsbox" {
		t.Errorf("%q, %v", names, err)
	}
	if err := f.SetXattr(t.Context(), h, "trusted.nfsbox", []byte("other"), vfs.XattrReplace); err != nil {
		t.Error(err)
	}
	if value, err := f.Xattr(t.Context(), h, "trusted.nfsbox"); err != nil || string(value) != "other" {
		t.Errorf("%q, %v", value, err)
	}
	if err := f.RemoveXattr(t.Context(), h, "trusted.nfsbox"); err != nil {
		t.Error(err)
	}
	if err := f.SetXattr(t.Context(), h, "user.x", nil, vfs.XattrEither); !errors.Is(err, vfs.ErrNotSupp) {
		t.Error(err)
	}
	if got, err := unix.Llistxattr(filepath.Join(dir, "one"), make([]byte, 100)); err != nil || got != len("user.x")+1 {
		t.Errorf("the target has %d bytes of names, %v", got, err)
	}
}
