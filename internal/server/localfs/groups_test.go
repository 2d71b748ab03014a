//go:build linux

package localfs

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// groupsEnv makes the process the one with groups of its own.
const groupsEnv = "NFSBOX_TEST_GROUPS"

// TestGroupsOfTheProcess: the groups of a root that has some, as after a login, are
// nobody else's. It runs in a process that has them.
func TestGroupsOfTheProcess(t *testing.T) {
	needRoot(t)
	if os.Getenv(groupsEnv) == "" {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestGroupsOfTheProcess$", "-test.v")
		child.Env = append(os.Environ(), groupsEnv+"=1")
		child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Groups: []uint32{0, team}}}
		if out, err := child.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS: TestGroupsOfTheProcess/map")) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	if own, err := unix.Getgroups(); err != nil || !slices.Equal(own, []int{0, team}) {
		t.Fatalf("the process is in the groups %v, %v", own, err)
	}
	bothModes(t, func(t *testing.T, o Options) {
		dir := t.TempDir()
		for name, gid := range map[string]int{"root": 0, "team": team} {
			if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(filepath.Join(dir, name), 0, gid); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(dir, name), 0o770); err != nil {
				t.Fatal(err)
			}
		}
		f := open(t, dir, o)
		for _, c := range []struct {
			who        *vfs.Caller
			root, team error
		}{
			{bob(), vfs.ErrAccess, vfs.ErrAccess},
			{alice(), vfs.ErrAccess, nil},
			{&vfs.Caller{UID: 12003, GID: team}, vfs.ErrAccess, nil},
			{&vfs.Caller{UID: 12003, GID: 12003, Groups: []uint32{0}}, nil, vfs.ErrAccess},
			{&vfs.Caller{UID: 12003, GID: 0}, nil, vfs.ErrAccess},
			{&vfs.Caller{UID: 12003, GID: 0, Groups: []uint32{team}}, nil, nil},
		} {
			for name, want := range map[string]error{"root": c.root, "team": c.team} {
				x, _, _, err := f.Lookup(t.Context(), f.root, name)
				if err != nil {
					t.Fatal(err)
				}
				if _, _, _, err = f.As(c.who).Create(t.Context(), x, "new", &vfs.CreateHow{Type: vfs.TypeReg}); err == nil {
					_, err = f.Remove(t.Context(), x, "new", false)
				}
				t.Logf("%+v, a directory of %s", *c.who, name)
				wantErr(t, err, want)
			}
		}
	})
}
