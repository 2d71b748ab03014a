//go:build linux

package localfs

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

const shareBoth = vfs.ShareRead | vfs.ShareWrite

// hostOpen opens x for another process, and closes it with the test.
func hostOpen(t testing.TB, f *FS, x vfs.Handle, how vfs.HostOpen) (*os.File, vfs.Attr) {
	t.Helper()
	how.Peer = self(t)
	file, a, err := f.OpenHost(t.Context(), x, &how)
	if err != nil {
		t.Fatalf("OpenHost %+v: %v", how, err)
	}
	t.Cleanup(func() {
		if err := file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	})
	return file, a
}

// self is the process of the test, as the peer of a session.
func self(t testing.TB) vfs.Caller {
	t.Helper()
	who := vfs.Caller{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	for _, g := range must[[]int](t)(os.Getgroups()) {
		who.Groups = append(who.Groups, uint32(g))
	}
	return who
}

// sealable skips a test where files cannot be sealed.
func sealable(t *testing.T, f *FS, x vfs.Handle) {
	t.Helper()
	file, _, err := f.OpenHost(t.Context(), x, &vfs.HostOpen{Access: vfs.ShareRead, Sealed: true})
	if errors.Is(err, vfs.ErrNotSupp) {
		need.Missing(t, "root", "no read-only double of a mount can be made here")
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestOpenHost hands files out for all that they can be used for: each a fresh
// description, that waits, that does not append and that no child inherits.
func TestOpenHost(t *testing.T) {
	bothModes(t, func(t *testing.T, o Options) {
		f := open(t, t.TempDir(), o)
		x := mkfile(t, f, root(t, f), "x", "hello")
		for _, c := range []struct {
			access vfs.Share
			flags  int
		}{
			{vfs.ShareRead, unix.O_RDONLY}, {vfs.ShareWrite, unix.O_WRONLY}, {shareBoth, unix.O_RDWR},
		} {
			file, a := hostOpen(t, f, x, vfs.HostOpen{Access: c.access})
			want, err := f.GetAttr(t.Context(), x, vfs.MaskV3)
			if err != nil || a != want {
				t.Errorf("access %d: attributes %+v, want %+v, %v", c.access, a, want, err)
			}
			fd := int(file.Fd())
			const all = unix.O_ACCMODE | unix.O_NONBLOCK | unix.O_APPEND | unix.O_PATH | unix.O_SYNC | unix.O_DIRECT
			if got := must[int](t)(unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)) & all; got != c.flags {
				t.Errorf("access %d: flags %#x, want %#x", c.access, got, c.flags)
			}
			if got := must[int](t)(unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)); got != unix.FD_CLOEXEC {
				t.Errorf("access %d: descriptor flags %#x", c.access, got)
			}
			if c.access&vfs.ShareWrite != 0 {
				must[int](t)(file.WriteAt([]byte("h"), 0))
			}
			if c.access&vfs.ShareRead == 0 {
				continue
			}
			// The offset moves for this description alone.
			must[int64](t)(file.Seek(1, io.SeekStart))
			other, _ := hostOpen(t, f, x, vfs.HostOpen{Access: c.access})
			if got := string(must[[]byte](t)(io.ReadAll(other))); got != "hello" {
				t.Errorf("access %d: %q", c.access, got)
			}
		}
	})
}

// TestOpenHostRefuses holds the errors against those of reading and writing.
func TestOpenHostRefuses(t *testing.T) {
	bothModes(t, func(t *testing.T, o Options) {
		dir := t.TempDir()
		f := open(t, dir, o)
		r := root(t, f)
		x := mkfile(t, f, r, "x", "hello")
		uid := mkfile(t, f, r, "set-uid", "")
		gid := mkfile(t, f, r, "set-gid", "")
		for name, mode := range map[string]uint32{"set-uid": 0o4755, "set-gid": 0o2755} {
			if err := unix.Chmod(filepath.Join(dir, name), mode); err != nil {
				t.Fatal(err)
			}
		}
		made := func(typ vfs.Type) vfs.Handle {
			y, _, _, err := f.Create(t.Context(), r, typ.String(), &vfs.CreateHow{Type: typ, Target: "x"})
			if err != nil {
				t.Fatal(err)
			}
			return y
		}
		subdir, link, fifo := made(vfs.TypeDir), made(vfs.TypeSymlink), made(vfs.TypeFIFO)
		gone := mkfile(t, f, r, "gone", "")
		kept, _ := hostOpen(t, f, gone, vfs.HostOpen{Access: vfs.ShareRead})
		if _, err := f.Remove(t.Context(), r, "gone", false); err != nil {
			t.Fatal(err)
		}
		if n, err := kept.ReadAt(make([]byte, 1), 0); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("what is open does not outlive its name: %d, %v", n, err)
		}
		bad := must[vfs.Handle](t)(vfs.MakeHandle([]byte("bad")))
		for _, c := range []struct {
			what string
			x    vfs.Handle
			how  vfs.HostOpen
			want error
		}{
			{"a directory", subdir, vfs.HostOpen{Access: vfs.ShareRead}, vfs.ErrIsDir},
			{"a symbolic link", link, vfs.HostOpen{Access: vfs.ShareRead}, vfs.ErrInval},
			{"a pipe", fifo, vfs.HostOpen{Access: shareBoth}, vfs.ErrInval},
			{"what is gone", gone, vfs.HostOpen{Access: vfs.ShareRead}, vfs.ErrStale},
			{"no handle", bad, vfs.HostOpen{Access: vfs.ShareRead}, vfs.ErrBadHandle},
			{"for nothing", x, vfs.HostOpen{}, vfs.ErrInval},
			{"for what there is not", x, vfs.HostOpen{Access: 4}, vfs.ErrInval},
			{"sealed and to be written", x, vfs.HostOpen{Access: shareBoth, Sealed: true}, vfs.ErrInval},
			{"set-uid, to be written", uid, vfs.HostOpen{Access: vfs.ShareWrite}, vfs.ErrNotSupp},
			{"set-gid, to be written", gid, vfs.HostOpen{Access: shareBoth}, vfs.ErrNotSupp},
			{"set-uid, to be read and run", uid, vfs.HostOpen{Access: vfs.ShareRead}, vfs.ErrNotSupp},
			{"set-gid, to be read and run", gid, vfs.HostOpen{Access: vfs.ShareRead}, vfs.ErrNotSupp},
		} {
			c.how.Peer = self(t)
			file, _, err := f.OpenHost(t.Context(), c.x, &c.how)
			if !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", c.what, err, c.want)
			}
			if err == nil {
				if err := file.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// TestOpenHostCapabilities hands out sealed alone a file that raises a process that runs it.
func TestOpenHostCapabilities(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir, mapOptions(t))
	x := mkfile(t, f, root(t, f), "x", "")
	raw := make([]byte, 20) // VFS_CAP_REVISION_2, effective: CAP_NET_RAW
	raw[0], raw[3], raw[5] = 1, 2, 1<<5
	if err := unix.Setxattr(filepath.Join(dir, "x"), xattrCapability, raw, 0); err != nil {
		need.Missing(t, "root", "a file cannot be given capabilities: "+err.Error())
	}
	for _, access := range []vfs.Share{vfs.ShareRead, vfs.ShareWrite, shareBoth} {
		_, _, err := f.OpenHost(t.Context(), x, &vfs.HostOpen{Access: access})
		wantErr(t, err, vfs.ErrNotSupp)
	}
	sealable(t, f, x)
}

// TestOpenHostOfReadOnly hands nothing out to be written, nor what could be opened
// again to be.
func TestOpenHostOfReadOnly(t *testing.T) {
	o := mapOptions(t)
	o.ReadOnly = true
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x"), []byte("hello"), 0o666); err != nil {
		t.Fatal(err)
	}
	f := open(t, dir, o)
	x, _, _, err := f.Lookup(t.Context(), root(t, f), "x")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = f.OpenHost(t.Context(), x, &vfs.HostOpen{Access: shareBoth})
	wantErr(t, err, vfs.ErrROFS)
	_, _, err = f.OpenHost(t.Context(), x, &vfs.HostOpen{Access: vfs.ShareRead})
	wantErr(t, err, vfs.ErrNotSupp)
	sealable(t, f, x)
}

// TestSealed tries what root can do by a file that was handed out sealed, which is
// to read it; the file is found wherever it has gone.
func TestSealed(t *testing.T) {
	bothModes(t, func(t *testing.T, o Options) {
		dir := t.TempDir()
		f := open(t, dir, o)
		r := root(t, f)
		x := mkfile(t, f, r, "x", "hello")
		sealable(t, f, x)
		sub := mkdir(t, f, r, "sub")
		if _, _, err := f.Rename(t.Context(), r, "x", sub, "y"); err != nil {
			t.Fatal(err)
		}
		file, a := hostOpen(t, f, x, vfs.HostOpen{Access: vfs.ShareRead, Sealed: true})
		if want, err := f.GetAttr(t.Context(), x, vfs.MaskV3); err != nil || a.FileID != want.FileID || a.FSID != want.FSID {
			t.Errorf("attributes %+v, want %+v, %v", a, want, err)
		}
		if got := string(must[[]byte](t)(io.ReadAll(file))); got != "hello" {
			t.Errorf("%q", got)
		}
		if err := os.Chmod(filepath.Join(dir, "sub", "y"), os.ModeSetuid|0o755); err != nil {
			t.Fatal(err)
		}
		hostOpen(t, f, x, vfs.HostOpen{Access: vfs.ShareRead, Sealed: true}) // from a mount that is nosuid
		fd := int(file.Fd())
		for what, attack := range map[string]struct {
			want error
			try  func() (int, error)
		}{
			"opened to be written": {unix.EROFS, func() (int, error) { return unix.Open(linux.ProcPath(fd), unix.O_WRONLY, 0) }},
			"a clone of the mount": {unix.EINVAL, func() (int, error) {
				return unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.AT_EMPTY_PATH)
			}},
			"an unsealed mount": {unix.EINVAL, func() (int, error) {
				return -1, unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
			}},
			"a remount": {unix.EINVAL, func() (int, error) {
				return -1, unix.Mount("", linux.ProcPath(fd), "", unix.MS_REMOUNT|unix.MS_BIND, "")
			}},
			"a bind": {unix.EINVAL, func() (int, error) {
				return -1, unix.Mount(linux.ProcPath(fd), filepath.Join(dir, "sub", "y"), "", unix.MS_BIND, "")
			}},
		} {
			got, err := attack.try()
			if !errors.Is(err, attack.want) {
				t.Errorf("%s: %v, want %v", what, err, attack.want)
			}
			if got >= 0 {
				_ = unix.Close(got)
			}
		}
	})
}

// TestSealedDeep has a file lie deeper than a path can be long: READ reaches it, so
// that it may not be called impossible to read.
func TestSealedDeep(t *testing.T) {
	bothModes(t, func(t *testing.T, o Options) {
		f := open(t, t.TempDir(), o)
		at := root(t, f)
		sealable(t, f, mkfile(t, f, at, "x", "hello"))
		for range unix.PathMax/200 + 1 {
			at = mkdir(t, f, at, strings.Repeat("d", 200))
		}
		x := mkfile(t, f, at, "x", "hello")
		file, _, err := f.OpenHost(t.Context(), x, &vfs.HostOpen{Access: vfs.ShareRead, Sealed: true})
		if err != nil {
			wantErr(t, err, vfs.ErrNotSupp)
		} else if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestOpenHostRights hands out what may be read and written, also where the process
// cannot act for others and what they may is told by the mode alone.
func TestOpenHostRights(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir, mapOptions(t))
	x := mkfile(t, f, root(t, f), "x", "hello")
	own := &vfs.Caller{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	for _, c := range []struct {
		who         *vfs.Caller
		mode        uint32
		read, write error
	}{
		{nil, 0o600, nil, nil}, {own, 0o600, nil, nil},
		{bob(), 0o600, vfs.ErrAccess, vfs.ErrAccess}, {bob(), 0o604, nil, vfs.ErrAccess},
		{bob(), 0o606, nil, nil}, {bob(), 0o602, vfs.ErrAccess, nil}, {bob(), 0o601, nil, vfs.ErrAccess},
	} {
		if err := os.Chmod(filepath.Join(dir, "x"), os.FileMode(c.mode)); err != nil {
			t.Fatal(err)
		}
		for access, want := range map[vfs.Share]error{
			vfs.ShareRead: c.read, vfs.ShareWrite: c.write, shareBoth: errors.Join(c.read, c.write),
		} {
			file, _, err := f.As(c.who).(*FS).OpenHost(t.Context(), x, &vfs.HostOpen{Access: access, Peer: self(t)})
			if (err == nil) != (want == nil) || want != nil && !errors.Is(err, vfs.ErrAccess) {
				t.Errorf("%+v, mode %o, access %d: %v, want %v", c.who, c.mode, access, err, want)
			}
			if err == nil {
				if err := file.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// TestOpenHostSquashed does as one user what all callers ask for: another user, root
// among them, could make more of what is not sealed than that one may.
func TestOpenHostSquashed(t *testing.T) {
	if isRoot() {
		t.Skip("root acts for anyone; TestUnprivileged comes here")
	}
	dir := t.TempDir()
	f := open(t, dir, mapOptions(t))
	x := mkfile(t, f, root(t, f), "x", "hello")
	if err := os.Chmod(filepath.Join(dir, "x"), 0o666); err != nil {
		t.Fatal(err)
	}
	more := self(t)
	more.Groups = append(more.Groups, 1)
	for _, c := range []struct {
		what    string
		peer    vfs.Caller
		trusted bool
		want    error
	}{
		{"the same user", self(t), false, nil},
		{"root", vfs.Caller{}, false, vfs.ErrNotSupp},
		{"another", *bob(), false, vfs.ErrNotSupp},
		{"the same with another group", more, false, vfs.ErrNotSupp},
		{"whoever is trusted", *bob(), true, nil},
	} {
		for _, access := range []vfs.Share{vfs.ShareRead, vfs.ShareWrite, shareBoth} {
			file, _, err := f.As(&c.peer).(*FS).OpenHost(t.Context(), x, &vfs.HostOpen{Access: access, Peer: c.peer, Trusted: c.trusted})
			if !errors.Is(err, c.want) {
				t.Errorf("%s, access %d: %v, want %v", c.what, access, err, c.want)
			}
			if err == nil {
				if err := file.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// TestUnsealable is told that files cannot be sealed, and does not try again.
func TestUnsealable(t *testing.T) {
	if isRoot() {
		t.Skip("root can seal; TestUnprivileged comes here")
	}
	var reported int
	o := mapOptions(t)
	o.Report = func(error) { reported++ }
	f := open(t, t.TempDir(), o)
	x := mkfile(t, f, root(t, f), "x", "hello")
	for range 2 {
		_, _, err := f.OpenHost(t.Context(), x, &vfs.HostOpen{Access: vfs.ShareRead, Sealed: true})
		wantErr(t, err, vfs.ErrNotSupp)
	}
	if reported != 1 {
		t.Errorf("reported %d times", reported)
	}
}

// TestHostWriters leaves attributes from before a write out once another process may
// write too, and not before.
func TestHostWriters(t *testing.T) {
	f := open(t, t.TempDir(), mapOptions(t))
	r := root(t, f)
	x := mkfile(t, f, r, "x", "hello")
	file := openFile(t, f, x)
	for _, c := range []struct {
		access vfs.Share
		known  bool
	}{{vfs.ShareRead, true}, {vfs.ShareWrite, false}, {vfs.ShareRead, false}} {
		hostOpen(t, f, x, vfs.HostOpen{Access: c.access})
		var w vfs.Written
		must[int](t)(file.WriteAt(t.Context(), []byte("x"), 0, vfs.Unstable, &w))
		if known := w.WCC.Before.Valid != 0; known != c.known {
			t.Errorf("access %d: attributes from before the write are told: %t", c.access, known)
		}
		_, wcc, err := f.Link(t.Context(), x, r, "link")
		if err != nil || wcc.Before.Valid == 0 {
			t.Errorf("of directories, in which nobody else writes: %+v, %v", wcc.Before, err)
		}
		must[vfs.WCC](t)(f.Remove(t.Context(), r, "link", false))
	}
}

// TestOpenHostLeaks hands out more files than the cache may have open: none is
// counted, but the double through which they are sealed is, once.
func TestOpenHostLeaks(t *testing.T) {
	bothModes(t, func(t *testing.T, o Options) {
		o.MaxOpen = 8
		f := open(t, t.TempDir(), o)
		x := mkfile(t, f, root(t, f), "x", "hello")
		hostOpen(t, f, x, vfs.HostOpen{Access: vfs.ShareRead})
		before := f.Snapshot().Open
		for range 3 * o.MaxOpen {
			hostOpen(t, f, x, vfs.HostOpen{Access: vfs.ShareRead})
			hostOpen(t, f, x, vfs.HostOpen{Access: shareBoth})
		}
		if n := f.Snapshot().Open; n != before {
			t.Errorf("%d descriptors are counted, %d before", n, before)
		}
		sealable(t, f, x)
		for range 3 * o.MaxOpen {
			hostOpen(t, f, x, vfs.HostOpen{Access: vfs.ShareRead, Sealed: true})
		}
		if n := f.Snapshot().Open; n != before+1 {
			t.Errorf("%d descriptors are counted with a double, %d before", n, before)
		}
	})
}
