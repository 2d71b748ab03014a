//go:build linux

package client

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/testkit/ganesha"
	"github.com/nfsbox/nfsbox/internal/tools/dirfs"
	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/osfs"
)

// attributed makes a directory and a file in it, both with an access control list and an extended
// attribute, and a plain file.
func attributed(t *testing.T) job.Place {
	t.Helper()
	top := t.TempDir()
	dir := filepath.Join(top, "d")
	err := errors.Join(os.Mkdir(dir, 0o750), os.WriteFile(filepath.Join(dir, "f"), []byte("contents"), 0o640),
		os.WriteFile(filepath.Join(dir, "plain"), []byte("contents"), 0o640))
	if err != nil {
		t.Fatal(err)
	}
	f := tree(t, top)
	list := vfs.ACL{Access: []vfs.ACLEntry{
		{Tag: vfs.ACLUserObj, Perm: 7}, {Tag: vfs.ACLUser, ID: 12345, Perm: 7}, {Tag: vfs.ACLGroupObj, Perm: 5},
		{Tag: vfs.ACLMask, Perm: 7}, {Tag: vfs.ACLOther},
	}}
	for _, name := range []string{"d", "d/f"} {
		r, err := vfs.Resolve(t.Context(), f.FS, f.Handle, name, false)
		if err == nil {
			err = f.FS.(vfs.Xattrer).SetXattr(t.Context(), r.Handle, "user.origin", []byte("here"), vfs.XattrEither)
		}
		if err == nil {
			err = f.FS.(vfs.ACLer).SetACL(t.Context(), r.Handle, list)
		}
		if errors.Is(err, vfs.ErrNotSupp) {
			t.Skip("NOT TESTED: no lists and attributes here")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// tree is a directory of this host, for the tools.
func tree(t *testing.T, dir string) job.Place {
	t.Helper()
	f, err := dirfs.New(dir, dirfs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return job.Place{FS: f, Handle: rootOf(t, f)}
}

// TestCopiedLists: what becomes of access control lists and extended attributes by destination, and
// each time that the job runs. They are kept, or counted as lost, and then the mode gives nobody
// more than the source does.
func TestCopiedLists(t *testing.T) {
	src := attributed(t)
	for _, c := range []struct {
		name        string
		dest        func(t *testing.T) (job.Place, string) // and the directory that it is
		acls, marks uint64                                 // lost
		mode        os.FileMode                            // of d/f
	}{
		{"a directory", func(t *testing.T) (job.Place, string) {
			dir := t.TempDir()
			return tree(t, dir), dir
		}, 0, 0, 0o770},
		{"our server", func(t *testing.T) (job.Place, string) {
			dir := t.TempDir()
			f, err := osfs.Open(dir, osfs.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = vfs.CloseFS(f) })
			fs := dial(t, "nfs://127.0.0.1:"+serve(t, export.Export{Path: "/", FS: f})+"/?"+self()).FS()
			return job.Place{FS: fs, Handle: rootOf(t, fs)}, dir
		}, 0, 2, 0o770},
		{"nfs-ganesha", func(t *testing.T) (job.Place, string) {
			if ganesha.Missing() != nil {
				t.Skip("NOT TESTED: nfs-ganesha cannot run here")
			}
			dir, url := startGanesha(t)
			fs := dial(t, url).FS()
			return job.Place{FS: fs, Handle: rootOf(t, fs)}, dir
		}, 2, 2, 0o750},
	} {
		t.Run(c.name, func(t *testing.T) {
			dest, dir := c.dest(t)
			record, err := os.OpenRoot(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = record.Close() }()
			for run := range 3 {
				s, err := job.Copy(t.Context(), job.CopyOptions{
					Source: src, Dest: dest, Name: "copy", Pool: new(bufpool.Pool), Random: rand.Reader, Now: time.Now,
					Record: record, ID: "copy", Owner: true,
				})
				if err != nil || s.Errors != 0 || s.ACLsLost != c.acls || s.XattrsLost != c.marks || s.AttrsSet != 0 {
					t.Errorf("run %d: %+v, %v; want %d lists and %d attributes to be lost", run, s, err, c.acls, c.marks)
				}
				for _, name := range []string{"d", "d/f", "d/plain"} {
					named := name != "d/plain"
					path := filepath.Join(dir, "copy", name)
					if got := has(path, "system.posix_acl_access"); got != (named && c.acls == 0) {
						t.Errorf("run %d: %s has a list: %v", run, name, got)
					}
					if got := has(path, "user.origin"); got != (named && c.marks == 0) {
						t.Errorf("run %d: %s has an extended attribute: %v", run, name, got)
					}
					if info, err := os.Stat(path); err != nil || named && info.Mode().Perm() != c.mode {
						t.Errorf("run %d: %s: %v, %v", run, name, info.Mode(), err)
					}
				}
			}
		})
	}
}

// self are the arguments of a URL for a caller that is this process.
func self() string { return fmt.Sprintf("uid=%d&gid=%d", os.Geteuid(), os.Getegid()) }

// has reports whether a file has an extended attribute.
func has(path, name string) bool {
	_, err := syscall.Getxattr(path, name, nil)
	return err == nil
}
