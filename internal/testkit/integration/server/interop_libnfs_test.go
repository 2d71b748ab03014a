package server

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// libnfs finds a tool of libnfs-utils. Where there is none the test is skipped,
// unless NFSBOX_REQUIRE demands it.
func libnfs(t *testing.T, tool string) string {
	t.Helper()
	path, err := exec.LookPath(tool)
	if err != nil {
		need.Missing(t, "libnfs", fmt.Sprintf("%v (Debian: libnfs-utils)", err))
	}
	return path
}

// run runs a tool and returns what it printed.
func run(t *testing.T, tool string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), libnfs(t, tool), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s%s", tool, args, err, out, stderr.Bytes())
	}
	return out
}

// url names a path of the server as libnfs wants it. Its tools mount what stands
// before the last slash; for a file in the root that is the empty path, which
// libnfs itself refuses once it looks for exports within exports. So it is told
// not to look.
func (r *rig) url(path string) string {
	_, port, err := net.SplitHostPort(r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	return "nfs://127.0.0.1" + path + "?nfsport=" + port + "&mountport=" + port + "&auto-traverse-mounts=0"
}

// put writes a file into the file system, past the server.
func (r *rig) put(path string, data []byte) {
	r.t.Helper()
	ctx := r.t.Context()
	dir, _, err := r.fs.Root(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for _, part := range parts[:len(parts)-1] {
		h, _, _, err := r.fs.Lookup(ctx, dir, part)
		if err != nil {
			set := vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o777}
			if h, _, _, err = r.fs.Create(ctx, dir, part, &vfs.CreateHow{Type: vfs.TypeDir, Set: set}); err != nil {
				r.t.Fatal(err)
			}
		}
		dir = h
	}
	set := vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o666}
	f, _, err := r.fs.Open(ctx, vfs.At{Dir: dir, Name: parts[len(parts)-1]}, &vfs.OpenHow{
		Access: vfs.ShareWrite, Create: &vfs.CreateHow{Type: vfs.TypeReg, Mode: vfs.CreateUnchecked, Set: set},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	var w vfs.Written
	if _, err := vfs.WriteFull(ctx, f, data, 0, vfs.FileSync, &w); err != nil {
		r.t.Fatal(err)
	}
	if err := f.Close(ctx); err != nil {
		r.t.Fatal(err)
	}
}

// get reads a file from the file system, past the server.
func (r *rig) get(path string) []byte {
	r.t.Helper()
	ctx := r.t.Context()
	dir, _, err := r.fs.Root(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	found, err := vfs.Resolve(ctx, r.fs, dir, path, true)
	if err != nil {
		r.t.Fatal(err)
	}
	f, opened, err := r.fs.Open(ctx, vfs.At{H: found.Handle}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		r.t.Fatal(err)
	}
	data := make([]byte, opened.Attr.Size)
	if _, _, err := vfs.ReadFull(ctx, f, data, 0); err != nil {
		r.t.Fatal(err)
	}
	if err := f.Close(ctx); err != nil {
		r.t.Fatal(err)
	}
	return data
}

func noise(n int) []byte {
	b := make([]byte, n)
	rnd := rand.New(rand.NewPCG(uint64(n), 1))
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}

// libnfsFiles are the files with which libnfs is tried: in the root, for which it
// mounts the empty path, and below, large and empty, with a space in the name.
var libnfsFiles = map[string][]byte{
	"/root.txt":           []byte("in the root\n"),
	"/empty":              {},
	"/dir/sub/deep.txt":   []byte("further down\n"),
	"/dir/five.bin":       noise(5<<20 + 7),
	"/dir/with space.txt": []byte("a name of two words\n"),
}

func TestInteropLibnfsList(t *testing.T) {
	r := newRig(t, memfs.Options{})
	for path, data := range libnfsFiles {
		r.put(path, data)
	}
	for dir, want := range map[string][]string{
		"/":        {"root.txt", "empty", "dir"},
		"/dir":     {"sub", "five.bin", "with space.txt"},
		"/dir/sub": {"deep.txt"},
	} {
		out := string(run(t, "nfs-ls", r.url(dir)))
		for _, name := range want {
			if !strings.Contains(out, " "+name+"\n") {
				t.Errorf("nfs-ls %s does not name %q:\n%s", dir, name, out)
			}
		}
		if lines := strings.Count(out, "\n"); lines != len(want) {
			t.Errorf("nfs-ls %s: %d lines, want %d:\n%s", dir, lines, len(want), out)
		}
	}
	out := string(run(t, "nfs-ls", "-R", r.url("/")))
	for path := range libnfsFiles {
		if !strings.Contains(out, " "+path[1:]+"\n") {
			t.Errorf("nfs-ls -R does not name %q:\n%s", path, out)
		}
	}
}

// TestInteropLibnfsManyFiles lists a directory that takes libnfs many pages.
func TestInteropLibnfsManyFiles(t *testing.T) {
	r := newRig(t, memfs.Options{})
	names := make(map[string]bool)
	for i := range 3000 {
		name := strings.Repeat("x", i%40) + "-" + string(rune('a'+i%26)) + "-" + strings.Repeat("y", i/40)
		if !names[name] {
			names[name] = true
			r.put("/many/"+name, nil)
		}
	}
	out := string(run(t, "nfs-ls", r.url("/many")))
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) == 0 || !names[f[len(f)-1]] {
			t.Fatalf("a line too many: %q", line)
		}
		delete(names, f[len(f)-1])
	}
	if len(names) != 0 {
		t.Errorf("%d names are missing", len(names))
	}
}

// TestInteropLibnfsTraverse lets libnfs look for exports within exports.
func TestInteropLibnfsTraverse(t *testing.T) {
	r := newRig(t, memfs.Options{})
	for path, data := range libnfsFiles {
		r.put(path, data)
		if strings.Count(path, "/") == 1 {
			path = "/" + path // the path to mount is then "/"
		}
		url, _, _ := strings.Cut(r.url(path), "&auto-traverse-mounts")
		if out := run(t, "nfs-cat", url); !bytes.Equal(out, data) {
			t.Errorf("nfs-cat %s: %d bytes that differ from the file's %d", path, len(out), len(data))
		}
	}
}

func TestInteropLibnfsCat(t *testing.T) {
	r := newRig(t, memfs.Options{})
	for path, data := range libnfsFiles {
		r.put(path, data)
		if out := run(t, "nfs-cat", r.url(path)); !bytes.Equal(out, data) {
			t.Errorf("nfs-cat %s: %d bytes that differ from the file's %d", path, len(out), len(data))
		}
	}
}

func TestInteropLibnfsCopy(t *testing.T) {
	r := newRig(t, memfs.Options{})
	dir := t.TempDir()
	r.put("/dir/sub/x", nil)
	for path, data := range libnfsFiles {
		up, down := filepath.Join(dir, "up"), filepath.Join(dir, "down")
		if err := os.WriteFile(up, data, 0o644); err != nil {
			t.Fatal(err)
		}
		run(t, "nfs-cp", up, r.url(path))
		if got := r.get(path); !bytes.Equal(got, data) {
			t.Errorf("nfs-cp to %s: %d bytes arrived, want %d", path, len(got), len(data))
		}
		run(t, "nfs-cp", r.url(path), down)
		got, err := os.ReadFile(down)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, data) {
			t.Errorf("nfs-cp from %s: %d bytes arrived, want %d", path, len(got), len(data))
		}
		if err := os.Remove(down); err != nil {
			t.Fatal(err)
		}
	}
}
