package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

// mountedTree is a tree with a file system mounted on "src/mount", in which there are a
// directory and a file, with a file bound over "src/bound", and with another file system
// mounted on "dst/src/other".
func mountedTree(t *testing.T) string {
	t.Helper()
	need.Root(t, "mounts")
	top := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	mount := func(what, where, kind string, flags uintptr) {
		t.Helper()
		where = filepath.Join(top, where)
		if err := unix.Mount(what, where, kind, flags, ""); err != nil {
			need.Missing(t, "root", "mount: "+err.Error())
		}
		t.Cleanup(func() {
			if err := unix.Unmount(where, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
	}
	write("src/bound", "beneath")
	write("src/other/file", "into a mount")
	write("elsewhere", "bound")
	for _, dir := range []string{"src/mount", "dst/src/other"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mount("none", "src/mount", "tmpfs", 0)
	mount("none", "dst/src/other", "tmpfs", 0)
	mount(filepath.Join(top, "elsewhere"), "src/bound", "", unix.MS_BIND)
	write("src/mount/deep/file", "mounted")
	return top
}

// lastLine runs the command, which must exit with want, and returns the last line of
// its output.
func lastLine(t *testing.T, want int, args ...string) string {
	t.Helper()
	got, out, errs := command(t, args...)
	if got != want {
		t.Fatalf("nfsbox %s: exit status %d, want %d\n%s%s", strings.Join(args, " "), got, want, out, errs)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return lines[len(lines)-1]
}

// TestRootMountsBelowAreCopied copies a source that has mounts below it onto a
// destination that has one.
func TestRootMountsBelowAreCopied(t *testing.T) {
	top := mountedTree(t)
	src, dst := filepath.Join(top, "src"), filepath.Join(top, "dst", "src")
	lastLine(t, exitOK, "cp", "-r", "--json", src, filepath.Dir(dst))
	want := map[string]string{"bound": "bound", "mount/deep/file": "mounted", "other/file": "into a mount"}
	for name, content := range want {
		if b, err := os.ReadFile(filepath.Join(dst, name)); err != nil || string(b) != content {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	lastLine(t, exitOK, "verify", "--json", src, dst)
	// Verify must see what is missing below a mount.
	if err := os.Remove(filepath.Join(dst, "mount/deep/file")); err != nil {
		t.Fatal(err)
	}
	lastLine(t, exitDiffers, "verify", "--json", src, dst)
}

// TestRootOneFileSystem leaves what is mounted below the source, and says so.
func TestRootOneFileSystem(t *testing.T) {
	top := mountedTree(t)
	src, dst := filepath.Join(top, "src"), filepath.Join(top, "copy")
	for _, args := range [][]string{
		{"cp", "-r", "--json", "--one-file-system", src, dst},
		{"verify", "--json", "-x", src, dst},
	} {
		var sum struct {
			Skipped uint64 `json:"mounts_skipped"`
			Files   uint64
		}
		line := lastLine(t, exitOK, args...)
		if err := json.Unmarshal([]byte(line), &sum); err != nil || sum.Skipped != 1 || sum.Files != 2 {
			t.Errorf("%s: %s, %v; want one mount left, two files", args[0], line, err)
		}
	}
	if names, err := os.ReadDir(filepath.Join(dst, "mount")); err != nil || len(names) != 0 {
		t.Errorf("the mount point was copied with %v, %v", names, err)
	}
}

// TestRootOneFileSystemEverywhere: each command that goes down into trees leaves the same directories out, and counts them, of
// this host and of a server that crosses mounts.
func TestRootOneFileSystemEverywhere(t *testing.T) {
	top := mountedTree(t)
	src := filepath.Join(top, "src")
	if err := unix.Mount(filepath.Join(src, "other"), filepath.Join(src, "other"), "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(filepath.Join(src, "other"), unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	s := serveProcess(t, nil, src, "--listen", "127.0.0.1:0", "--state-dir", t.TempDir(), "--crossmnt", "--localio", "off")
	defer s.stop(t)
	for i, place := range []string{src, s.url} {
		dst := filepath.Join(top, fmt.Sprint("copy", i))
		for _, args := range [][]string{
			{"cp", "-r", "-x", place, dst}, {"sync", "-x", "--delete", place, dst}, {"verify", "-x", place, dst},
			{"du", "-x", place}, {"find", "-x", place}, {"scan", "-x", place}, {"grep", "-r", "--one-file-system", "o", place},
		} {
			var sum struct {
				Skipped uint64 `json:"mounts_skipped"`
			}
			line := lastLine(t, exitOK, append(args, "--json")...)
			if err := json.Unmarshal([]byte(line), &sum); err != nil || sum.Skipped != 2 {
				t.Errorf("%s: %s, %v; want two directories left out", strings.Join(args, " "), line, err)
			}
		}
	}
	line := lastLine(t, exitIncomplete, "rm", "-r", "--all", "-x", "--json", s.url)
	if !strings.Contains(line, `"mounts_skipped":2`) || !strings.Contains(line, `"errors":3`) { // and the bound file
		t.Errorf("rm: %s", line)
	}
	if b, err := os.ReadFile(filepath.Join(src, "mount/deep/file")); err != nil || string(b) != "mounted" {
		t.Errorf("what is mounted: %q, %v", b, err)
	}
}

// TestFewDescriptors copies and compares, as a process that may have 64 descriptors,
// more at once than those are enough for.
func TestFewDescriptors(t *testing.T) {
	need.Time(t, "copies with 64 descriptors")
	top := t.TempDir()
	src, dst := filepath.Join(top, "src"), filepath.Join(top, "dst")
	for i := range 300 {
		dir := filepath.Join(src, fmt.Sprint(i%3), strings.Repeat("d/", i%40))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), bytes.Repeat([]byte{byte(i)}, i*10), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	nfsbox := filepath.Join(top, "nfsbox") // by whose name the test's program is the command
	if err := os.Symlink(self, nfsbox); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"cp", "-r", "--verify", "--parallel", "64", src, dst}, {"verify", "--parallel", "64", src, dst}} {
		cmd := exec.Command("/bin/sh", append([]string{"-c", `ulimit -n 64; exec "$@"`, "sh", nfsbox}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", args[0], err, out)
		}
	}
}
