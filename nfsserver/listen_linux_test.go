package nfsserver_test

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/iofs"
	"github.com/nfsbox/nfsbox/vfs/memfs"
)

// otherUser is the variable that tells a child process, which has another user, the server.
const otherUser = "NFSBOX_TEST_SERVE_URL"

// TestServeUsers: a program of this host is the user that the kernel says. One that claims
// to be root may not do what root may.
func TestServeUsers(t *testing.T) {
	if url := os.Getenv(otherUser); url != "" {
		claimRoot(t, url)
		return
	}
	need.Root(t, "to be another user")
	url, stop := serve(t, export.Export{Path: "/", FS: memfs.New(memfs.Options{Mode: 0o755})})
	if err := dial(t, url+"/", func(tree *iofs.FS) {
		if err := tree.WriteFile("of-root", nil, 0o600); err != nil {
			t.Errorf("root: %v", err)
		}
	}, nfsbox.WithCaller(vfs.Caller{UID: 0})); err != nil {
		t.Error(err)
	}
	child := exec.Command("/proc/self/exe", "-test.run=^TestServeUsers$", "-test.v")
	child.Dir, child.Env = "/", append(os.Environ(), otherUser+"="+url+"/")
	child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65533, Gid: 65533}}
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func claimRoot(t *testing.T, url string) {
	if err := dial(t, url, func(tree *iofs.FS) {
		if err := tree.WriteFile("of-another", nil, 0o600); !errors.Is(err, vfs.ErrAccess) {
			t.Errorf("who says that it is root makes a file: %v", err)
		}
		if _, err := tree.ReadFile("of-root"); !errors.Is(err, vfs.ErrAccess) {
			t.Errorf("who says that it is root reads what is root's: %v", err)
		}
	}, nfsbox.WithCaller(vfs.Caller{UID: 0})); err != nil {
		t.Error(err)
	}
}
