//go:build linux

package client

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/testkit/ganesha"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

// startGanesha starts a private nfs-ganesha until the test ends, and returns the
// directory that it exports and its URL.
func startGanesha(t *testing.T) (dir, url string) {
	t.Helper()
	if err := ganesha.Missing(); err != nil {
		need.Missing(t, "ganesha", err.Error())
	}
	dir = filepath.Join(t.TempDir(), "export")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	s := ganesha.Start(t, fmt.Sprintf("EXPORT { Export_Id = 1; Path = %s; Pseudo = /export; "+
		"Access_Type = RW; Attr_Expiration_Time = 0; FSAL { Name = VFS; } }", dir))
	return dir, s.URL(dir)
}

// badType is ganesha's answer wherever an object is not of the type that the
// operation wants.
const badType = "ganesha answers BADTYPE, which RFC 1813 has for MKNOD alone"

// noLists is what becomes of the protocol of access control lists.
const noLists = "ganesha 4.3 answers GETACL with empty lists, or with less than a result, and decodes no SETACL"

// noLocks is what becomes of locks.
const noLocks = "ganesha's lock manager is switched off here, and has a test of its own: TestLocksGanesha"

// ganeshaDifferences are what nfs-ganesha does in its own way.
var ganeshaDifferences = map[string]string{
	"setattr/size-of-directory":        badType,
	"create/unchecked-over-others":     badType,
	"link/of-directory":                badType,
	"create/unchecked-sets-other-size": "ganesha obeys the size of an unchecked CREATE over a file only if it is 0",
	"concurrent/create-and-list":       "ganesha 4.3 at times lists a file twice, or answers NOENT, if names come and go meanwhile",

	"acl/of-mode":          noLists,
	"acl/set":              noLists,
	"acl/mask-is-added":    noLists,
	"acl/mode-follows":     noLists,
	"acl/chmod-moves-mask": noLists,
	"acl/minimal":          noLists,
	"acl/default":          noLists,
	"acl/inherited":        noLists,
	"acl/no-list":          noLists,
	"acl/unknown-rights":   noLists,
	"acl/no-directory":     noLists,
	"acl/stale":            noLists,
	"acl/renamed":          noLists,
	"acl/linked":           noLists,
	"acl/grants":           noLists,
	"acl/owner-only":       noLists,
	"acl/cancelled":        noLists,
	"powers/acler":         noLists,

	"lock/one-alone":            noLocks,
	"lock/many-share":           noLocks,
	"lock/ranges":               noLocks,
	"lock/own-are-no-hindrance": noLocks,
	"lock/kinds-change":         noLocks,
	"lock/split-and-merge":      noLocks,
	"lock/unlock-nothing":       noLocks,
	"lock/to-the-end":           noLocks,
	"lock/too-far":              noLocks,
	"lock/tells-the-holder":     noLocks,
	"lock/owners":               noLocks,
	"lock/release":              noLocks,
	"lock/files":                noLocks,
	"lock/survives-rename":      noLocks,
	"lock/survives-removal":     noLocks,
	"lock/no-file":              noLocks,
	"lock/rights":               noLocks,
	"lock/one-at-a-time":        noLocks,
	"lock/cancelled":            noLocks,
	"lock/model":                noLocks,
	"powers/locker":             noLocks,
}

// TestInteropGanesha runs the suite against nfs-ganesha.
func TestInteropGanesha(t *testing.T) {
	need.Time(t, "the suite against nfs-ganesha")
	t.Parallel() // it waits for the disk
	dir, url := startGanesha(t)
	n := 0
	vfstest.Run(t, vfstest.Config{
		Callers:     true,
		Differences: ganeshaDifferences,
		New: func(t *testing.T) vfs.FS {
			n++
			name := fmt.Sprintf("suite%d", n)
			if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
				t.Fatal(err)
			}
			return dial(t, strings.Replace(url, "?", "/"+name+"?", 1)).FS()
		},
	})
}

// TestInteropGaneshaData moves some data both ways, past the suite: what is
// written here is on the disk there.
func TestInteropGaneshaData(t *testing.T) {
	dir, url := startGanesha(t)
	c := dial(t, url)
	data := bytes.Repeat([]byte("nfsbox and ganesha "), 400_000)
	put(t, c.FS(), "a/b/data", data)
	got, err := os.ReadFile(filepath.Join(dir, "a/b/data"))
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if got := get(t, c.FS(), "a/b/data"); !bytes.Equal(got, data) {
		t.Errorf("read back %d bytes, and not those that were written", len(got))
	}
	// The export's path ends somewhere in the URL's.
	deep := dial(t, strings.Replace(url, "?", "/a/b/data?", 1))
	if deep.Target() != "data" {
		t.Errorf("target %q", deep.Target())
	}
	ctx, cancel := context.WithTimeout(t.Context(), ganesha.Patience)
	defer cancel()
	exports, err := nfsbox.Exports(ctx, url)
	if err != nil || len(exports) != 1 || exports[0].Path != dir {
		t.Errorf("%+v, %v", exports, err)
	}
}
