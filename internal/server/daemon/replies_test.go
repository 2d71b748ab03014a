package daemon

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/server/daemon/ops"
	"github.com/nfsbox/nfsbox/internal/testkit/logbuf"
	"github.com/nfsbox/nfsbox/oncrpc/replycache"
)

// withReplies is a server that is about to begin, or has ended, in dir.
func withReplies(t *testing.T, dir string, key byte) *daemon {
	d := stateOf(t.TempDir(), dir)
	d.own, d.key, d.replies = dir, export.Key{key}, replycache.New(replycache.Options{})
	return d
}

// TestRepliesDamaged refuses what is not exactly what this server has left, and
// leaves nothing behind that a later one could find.
func TestRepliesDamaged(t *testing.T) {
	dir := t.TempDir()
	if err := withReplies(t, dir, 1).saveReplies(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, repliesName)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := withReplies(t, dir, 1).readReplies(path); err != nil {
		t.Errorf("what was left is refused: %v", err)
	}
	if err := withReplies(t, dir, 2).readReplies(path); err == nil {
		t.Error("another server's are taken over")
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x10
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := withReplies(t, dir, 1).readReplies(path); err == nil {
			t.Errorf("a changed byte %d passes", i)
		}
		if err := os.WriteFile(path, good[:i], 0o600); err != nil {
			t.Fatal(err)
		}
		if err := withReplies(t, dir, 1).readReplies(path); err == nil {
			t.Errorf("%d of %d bytes pass", i, len(good))
		}
	}
	log := &logbuf.Buffer{}
	d := withReplies(t, dir, 1)
	d.log = ops.NewLogs(&d.c.Log, log, time.Now).Logger()
	d.loadReplies()
	if err := d.dropReplies(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "are lost") {
		t.Errorf("nothing is said of the loss:\n%s", log)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestRepliesNotFollowed takes no link and no pipe for the file.
func TestRepliesNotFollowed(t *testing.T) {
	dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "file")
	if err := withReplies(t, filepath.Dir(elsewhere), 1).saveReplies(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, repliesName)
	if err := os.Symlink(filepath.Join(filepath.Dir(elsewhere), repliesName), path); err != nil {
		t.Fatal(err)
	}
	if err := withReplies(t, dir, 1).readReplies(path); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Error(err)
	}
}
