package mounter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/expect"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/mountopt"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestMountInfo: what is mounted is what the kernel says, the uppermost.
func TestMountInfo(t *testing.T) {
	const text = `22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
91 22 0:50 / /mnt rw,nosuid,nodev - fuse.nfsbox nfs://h/x rw,user_id=4711,group_id=12,allow_other
92 22 0:51 / /with\040space\134 rw master:1 propagate_from:2 - fuse.nfsbox nfs://h/x rw,user_id=0,group_id=0
93 22 0:52 / /twice rw - fuse.nfsbox a rw,user_id=1,group_id=1
94 93 0:53 / /twice rw - tmpfs none rw
95 22 0:54 / /odd rw - fuse.nfsbox
96 22
97 22 0:55 / /number rw - fuse.nfsbox a rw,user_id=x
`
	for dir, want := range map[string]mountPoint{
		"/": {kind: "ext4"}, "/mnt": {fuseType, 4711, 12}, `/with space\`: {kind: fuseType}, "/twice": {kind: "tmpfs"},
		"/odd": {}, "/none": {}, "/number": {kind: fuseType}, "": {},
	} {
		if got := mountIn(text, dir); got != want {
			t.Errorf("%s: %+v, want %+v", dir, got, want)
		}
	}
}

// FuzzMountInfo: nothing that stands there breaks the reader, and what the kernel escapes is read back.
func FuzzMountInfo(f *testing.F) {
	f.Add(`1 2 0:50 / /a\040b rw - fuse.nfsbox a rw,user_id=1`, "/a b")
	f.Add(`\`, `\04`)
	f.Fuzz(func(t *testing.T, text, dir string) {
		mountIn(text, dir)
		escaped := strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`).Replace(dir)
		if got := unescape(escaped); got != dir {
			t.Errorf("%q is read as %q", dir, got)
		}
	})
}

// TestCheckDir: DIR has to be a directory, and its name is the one that the kernel knows.
func TestCheckDir(t *testing.T) {
	at, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(at, "dir"), 0o755), os.WriteFile(filepath.Join(at, "file"), nil, 0o644), os.Symlink("dir", filepath.Join(at, "link"))); err != nil {
		t.Fatal(err)
	}
	note := func(text string) { t.Errorf("noted: %s", text) }
	for _, name := range []string{"dir", "link", "dir/../link/."} {
		if got, err := CheckDir(filepath.Join(at, name), false, note); err != nil || got != filepath.Join(at, "dir") {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	for name, want := range map[string]error{"none": fs.ErrNotExist, "none/below": fs.ErrNotExist, "file": syscall.ENOTDIR, "file/below": syscall.ENOTDIR} {
		_, err := CheckDir(filepath.Join(at, name), false, note)
		if !errors.Is(err, want) || !errors.Is(err, place.ErrUsage) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	var u usage
	if _, err := CheckDir(filepath.Join(at, "none"), false, note); !errors.As(err, &u) || !strings.Contains(u.Advice(), "mkdir") {
		t.Errorf("no advice: %v", err)
	}
}

// TestUnmountNothing: a directory that is no mount of ours stays as it is.
func TestUnmountNothing(t *testing.T) {
	for dir, want := range map[string]string{t.TempDir(): "nothing is mounted there", "/proc": "type proc", filepath.Join(t.TempDir(), "none"): "no such file"} {
		if _, err := os.Stat("/proc/self/mountinfo"); err != nil {
			t.Skipf("NOT TESTED: %v", err)
		}
		if r, err := Unmount(t.Context(), dir, Unmounting{}); err == nil || !errors.Is(err, place.ErrUsage) || !strings.Contains(err.Error(), want) || r != nil {
			t.Errorf("%s: %+v, %v; want %q", dir, r, err, want)
		}
	}
}

// refused is the URL of a port at which nothing listens.
func refused(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := fmt.Sprintf("nfs://%s/", l.Addr())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return url
}

// TestBackground: with bg a server that does not answer is tried again behind mount's back, which is told once; without
// retry it is tried once.
func TestBackground(t *testing.T) {
	m, err := mountopt.Parse(refused(t), "bg")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var said []string
	ready := 0
	o := Options{Mount: m, Dir: t.TempDir(), Note: func(text string) { said = append(said, text) }, Ready: func(at *Mounted) error {
		if at != nil {
			t.Errorf("mounted: %+v", at)
		}
		ready++
		cancel() // as a signal does
		return nil
	}}
	if r, err := Run(ctx, o); err == nil || r != nil || ready != 1 || len(said) != 1 || !strings.Contains(said[0], "tried again for 166h40m0s") {
		t.Errorf("%+v, %v; ready %d times, noted %q", r, err, ready, said)
	}
	m.Retry, m.Background, said = 0, false, nil
	if r, err := Run(t.Context(), o); !errors.Is(err, place.ErrUnreachable) || r != nil || ready != 1 || len(said) != 0 {
		t.Errorf("%+v, %v; ready %d times, noted %q", r, err, ready, said)
	}
	broken := errors.New("the user has gone")
	m.Retry, m.Background = time.Hour, true
	o.Ready = func(*Mounted) error { return broken }
	if r, err := Run(t.Context(), o); !errors.Is(err, broken) || r != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestPassing: only a server that has said nothing is tried again.
func TestPassing(t *testing.T) {
	_, none := place.OpenStore(t.Context(), t.TempDir(), place.StoreOptions{})
	for _, c := range []struct {
		err  error
		want bool
	}{
		{fmt.Errorf("x: %w", place.ErrUnreachable), true},
		{fmt.Errorf("x: %w: %w", place.ErrUnreachable, vfs.ErrAccess), false},
		{fmt.Errorf("x: %w: %w: %w", place.ErrUnreachable, vfs.ErrIO, vfs.ErrNoAnswer), true},
		{fmt.Errorf("x: %w: %w", place.ErrUnreachable, syscall.EACCES), false},
		{none, false},
		{vfs.ErrNoEnt, false},
		{place.ErrUsage, false},
	} {
		if got := passing(c.err); got != c.want {
			t.Errorf("%v: %t", c.err, got)
		}
	}
}

// served serves a file system in memory on loopback until the test ends, and is its URL without a path.
func served(t *testing.T, f vfs.FS) string {
	t.Helper()
	table, err := export.NewTable(export.Key{1, 2, 3}, export.Export{Path: "/e", FS: f})
	expect.OK(t, err)
	srv, err := nfsserver.New(nfsserver.Options{Exports: table})
	expect.OK(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	expect.OK(t, err)
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	t.Cleanup(func() {
		expect.OK(t, srv.Close())
		if err := <-ended; !errors.Is(err, nfsserver.ErrClosed) {
			t.Error(err)
		}
	})
	return "nfs://" + l.Addr().String()
}

// TestNoStore: where a server answers that there is no store, or nothing at all, the mount of a snapshot has failed at once.
func TestNoStore(t *testing.T) {
	f := memfs.New(memfs.Options{Now: time.Now})
	root, _, err := f.Root(t.Context())
	expect.OK(t, err)
	_, _, _, err = f.Create(t.Context(), root, "empty", &vfs.CreateHow{Type: vfs.TypeDir})
	expect.OK(t, err)
	url := served(t, f)
	for _, path := range []string{"/e/none", "/e/none/below", "/e/empty", "/other"} {
		m, err := Parse(url + path + "::home")
		expect.OK(t, err)
		o := Options{Mount: m, Dir: t.TempDir(), Note: func(text string) { t.Errorf("%s: noted: %s", path, text) }, Ready: func(*Mounted) error { return nil }}
		if r, err := Run(t.Context(), o); !errors.Is(err, place.ErrUnreachable) || r != nil {
			t.Errorf("%s: %+v, %v", path, r, err)
		}
	}
}
