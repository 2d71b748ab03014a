package mounted

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/export/exporttest"
	"github.com/nfsbox/nfsbox/internal/testkit/expect"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/osfs"
)

// TestRights is the matrix of rights by users of one mount, without a cache and with one: what POSIX gives a user, and
// nothing of what NFSv3 gives besides, since an open asks for its rights (ACCESS).
func TestRights(t *testing.T) {
	bin := command(t)
	for _, cache := range []bool{false, true} {
		t.Run(fmt.Sprintf("cache %t", cache), func(t *testing.T) {
			every := 101
			if soak() {
				every = 1
			}
			exporttest.Rights(t, exporttest.Config{Every: every, New: func(t *testing.T, rule export.Rule) exporttest.Place {
				at := home(t)
				srv := makeDir(t, at, "srv")
				below, err := osfs.Open(srv, osfs.Options{})
				expect.OK(t, err)
				t.Cleanup(func() { expect.OK(t, below.Close()) })
				url, _ := serve(t, bin, srv, "--localio=off", fmt.Sprint("--squash=", rule.Squash), fmt.Sprint("--ro=", rule.ReadOnly))
				options := "localio=off"
				if cache {
					options += ",cache=" + makeDir(t, at, "cache")
				}
				m := mountAt(t, bin, url.String(), makeDir(t, at, "mnt"), options)
				return exporttest.Place{Below: below, Dir: srv, As: func(c *vfs.Caller) vfs.FS {
					return &user{dir: m.dir, who: *c, readOnly: rule.ReadOnly}
				}}
			}})
		})
	}
}

// TestCachedRights: bytes that the kernel has, or the cache, are read only by users who may read them.
func TestCachedRights(t *testing.T) {
	bin := command(t)
	at := home(t)
	srv, cache, mnt := makeDir(t, at, "srv"), makeDir(t, at, "cache"), makeDir(t, at, "mnt")
	names := secrets(t, srv)
	made := time.Now()
	url, _ := serve(t, bin, srv, "--localio=off", "--squash=none")
	expect.Soon(t, "files that were not changed just now", func() bool { return time.Since(made) > 3*time.Second })
	// The first mount fills the cache, and the second finds it full.
	for range 2 {
		m := mountAt(t, bin, url.String(), mnt, "localio=off,cache="+cache)
		for _, warm := range []bool{false, true} {
			for i := range names {
				if warm {
					content(t, filepath.Join(mnt, names[i].name)) // by root: the kernel has it
				}
				for _, who := range readers {
					names[i].tryRead(t, mnt, &who)
				}
			}
		}
		if !m.end() {
			t.Fatal("the mount does not end")
		}
	}
	var status struct{ Hits, Entries int }
	out := tool(t, "/", bin, "cache", "status", "--json", "--dir", cache)
	expect.OK(t, json.Unmarshal([]byte(strings.SplitN(out, "\n", 2)[0]), &status))
	if status.Hits == 0 {
		t.Errorf("the cache was of no use:\n%s", out)
	}
}

// secret is a file, and whose it is.
type secret struct {
	name     string
	uid, gid uint32
	mode     uint32
}

// readers are users who try to read them: root, the owner, one of the group, one by a further group, and others.
var readers = []vfs.Caller{
	{}, {UID: 1000, GID: 1000}, {UID: 1001, GID: 2000}, {UID: 1003, GID: 1003, Groups: []uint32{7, 2000}}, {UID: 1002, GID: 1002, Groups: []uint32{1002}},
}

const secretSize = 100_000

// secrets makes them in dir.
func secrets(t *testing.T, dir string) (all []secret) {
	t.Helper()
	for _, mode := range []uint32{0, 0o400, 0o040, 0o004, 0o600, 0o640, 0o644, 0o604, 0o044} {
		s := secret{fmt.Sprintf("secret %04o", mode), 1000, 2000, mode}
		path := filepath.Join(dir, s.name)
		expect.OK(t, os.WriteFile(path, []byte(strings.Repeat("s", secretSize)), 0o600))
		expect.OK(t, os.Chown(path, int(s.uid), int(s.gid)))
		expect.OK(t, unix.Chmod(path, mode))
		all = append(all, s)
	}
	return all
}

// open reports whether POSIX lets somebody read it.
func (s *secret) open(who *vfs.Caller) bool {
	switch {
	case who.UID == 0:
		return true
	case who.UID == s.uid:
		return s.mode&0o400 != 0
	case who.GID == s.gid || slices.Contains(who.Groups, s.gid):
		return s.mode&0o040 != 0
	}
	return s.mode&0o004 != 0
}

func (s *secret) tryRead(t *testing.T, dir string, who *vfs.Caller) {
	t.Helper()
	var text []byte
	err := as(who, func() (err error) {
		text, err = os.ReadFile(filepath.Join(dir, s.name))
		return err
	})
	if s.open(who) != (err == nil) || err == nil && len(text) != secretSize {
		t.Errorf("%s: uid %d, groups %d %v: %d bytes, %v", s.name, who.UID, who.GID, who.Groups, len(text), err)
	}
}

func content(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	expect.OK(t, err)
	if len(text) != secretSize {
		t.Errorf("%s holds %d bytes", path, len(text))
	}
}
