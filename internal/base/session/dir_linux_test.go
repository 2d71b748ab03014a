package session

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall" // its Setgroups is of all threads
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/proto/localio"
)

func TestNames(t *testing.T) {
	if got := FormatUUID(testUUID); got != "01020304-0506-0708-090a-0b0c0d0e0f10" {
		t.Error(got)
	}
	dir := runtimeDir(t)
	l := listen(t, dir, testUUID)
	if got := l.Path(); got != dir+"/01020304-0506-0708-090a-0b0c0d0e0f10.sock" {
		t.Error(got)
	}
	if st, err := os.Lstat(l.Path()); err != nil || st.Mode() != fs.ModeSocket|0o666 {
		t.Errorf("the socket is %v, %v", st.Mode(), err)
	}
}

func TestDirs(t *testing.T) {
	for env, want := range map[string][]string{
		"":           {"/run/nfsbox"},
		"relative":   {"/run/nfsbox"},
		"/run/user/": {"/run/nfsbox", "/run/user/nfsbox"},
	} {
		t.Setenv("XDG_RUNTIME_DIR", env)
		if got := Dirs(); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", env, got, want)
		}
		own := want[len(want)-1]
		if os.Geteuid() == 0 {
			own = want[0]
		} else if len(want) == 1 {
			own = ""
		}
		if got := DefaultDir(); got != own {
			t.Errorf("%q: %q, want %q", env, got, own)
		}
	}
}

// TestLongPath has a directory whose path no sockaddr_un holds, in one that does
// not exist before.
func TestLongPath(t *testing.T) {
	noneLeft(t)
	dir := filepath.Join(runtimeDir(t), strings.Repeat("x", 200))
	old := unix.Umask(0o077)
	l, err := Listen(dir, testUUID)
	unix.Umask(old)
	if err != nil {
		t.Fatal(err)
	}
	closes(t, l)
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("the directory is %v, %v", st.Mode(), err)
	}
	connect(t, dir, testUUID)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("Close left %v, %v", left, err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close: %v", err)
	}
}

// TestSwapped has somebody put something else in the place of a directory that was
// just made: it keeps its mode.
func TestSwapped(t *testing.T) {
	noneLeft(t)
	dir := runtimeDir(t)
	secret := filepath.Join(dir, "secret")
	if err := os.Mkdir(secret, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "made")
	if err := os.Symlink(secret, path); err != nil {
		t.Fatal(err)
	}
	if d, err := openMade(path); err == nil {
		t.Errorf("a symbolic link is taken for what was made: %v", d.close())
	}
	if os.Geteuid() == 0 {
		if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700), os.Chown(path, other, other)); err != nil {
			t.Fatal(err)
		}
		if d, err := openMade(path); err == nil {
			t.Errorf("another's directory is taken for what was made: %v", d.close())
		}
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o700 {
			t.Errorf("another's directory is %v, %v", st.Mode(), err)
		}
	}
	if st, err := os.Stat(secret); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("the directory is %v, %v", st.Mode(), err)
	}
}

// TestConnectRefused has nothing, or something wrong, where a socket should be.
func TestConnectRefused(t *testing.T) {
	noneLeft(t)
	dir := runtimeDir(t)
	listen(t, dir, testUUID)
	dead := [localio.UUID_SIZE]byte{0xdd}
	deadSocket(t, filepath.Join(dir, FormatUUID(dead)+suffix))
	open := runtimeDir(t)
	listen(t, open, testUUID)
	if err := os.Chmod(open, 0o775); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		dir  string
		uuid [localio.UUID_SIZE]byte
		why  string // "": fs.ErrNotExist
	}{
		"no directory":  {filepath.Join(dir, "none"), testUUID, ""},
		"no socket":     {dir, [localio.UUID_SIZE]byte{9}, ""},
		"dead":          {dir, dead, "nobody listens"},
		"writable":      {open, testUUID, "written by others"},
		"no directory!": {file, testUUID, "not a directory"},
	} {
		c, err := Connect(t.Context(), x.dir, x.uuid)
		if c != nil || err == nil {
			t.Errorf("%s: connected", name)
			continue
		}
		r, isRefused := errors.AsType[*Refused](err)
		switch {
		case x.why == "" && !errors.Is(err, fs.ErrNotExist), x.why != "" && errors.Is(err, fs.ErrNotExist),
			!strings.Contains(err.Error(), x.why), (name == "dead" || name == "writable") != isRefused:
			t.Errorf("%s: %v (%v)", name, err, r)
		}
	}
	if _, err := Listen(open, [localio.UUID_SIZE]byte{5}); err == nil || !strings.Contains(err.Error(), "written by others") {
		t.Errorf("listening in a directory that others can write to: %v", err)
	}
}

// deadSocket leaves a socket as a killed server does. A test's directory may have any length, and
// a socket's path may not.
func deadSocket(t *testing.T, path string) {
	t.Helper()
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }() // nothing was written
	short := fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), filepath.Base(path))
	l, err := net.ListenUnix(network, &net.UnixAddr{Name: short, Net: network})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestSweep removes dead servers' sockets, and nothing else.
func TestSweep(t *testing.T) {
	noneLeft(t)
	dir := runtimeDir(t)
	live := listen(t, dir, testUUID)
	deadSocket(t, filepath.Join(dir, "dead"+suffix))
	deadSocket(t, filepath.Join(dir, "another name"))
	if err := os.WriteFile(filepath.Join(dir, "file"+suffix), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("dead"+suffix, filepath.Join(dir, "link"+suffix)); err != nil {
		t.Fatal(err)
	}
	next := listen(t, dir, [localio.UUID_SIZE]byte{7})
	var got []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		got = append(got, e.Name())
	}
	want := []string{filepath.Base(live.Path()), filepath.Base(next.Path()), "another name", "file" + suffix, "link" + suffix}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("left are %v, want %v", got, want)
	}
	connect(t, dir, testUUID)
	connect(t, dir, [localio.UUID_SIZE]byte{7})
}

// TestSameUUID has a second server take the first one's name: it keeps it.
func TestSameUUID(t *testing.T) {
	noneLeft(t)
	dir := runtimeDir(t)
	first, second := listen(t, dir, testUUID), listen(t, dir, testUUID)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	connect(t, dir, testUUID)
	c, err := second.Accept()
	if err != nil {
		t.Fatal(err)
	}
	closes(t, c)
}

func TestPeer(t *testing.T) {
	noneLeft(t)
	client, server := ends(t)
	groups, err := os.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []Peer{client.Peer(), server.Peer()} {
		if p.UID != uint32(os.Geteuid()) || p.GID != uint32(os.Getegid()) || p.PID != int32(os.Getpid()) ||
			p.UserNS != UserNS() || p.UserNS == 0 || len(p.Groups) != len(groups) {
			t.Errorf("this process is %+v", p)
		}
		for _, g := range groups {
			if !p.InGroup(uint32(g)) {
				t.Errorf("group %d is missing in %+v", g, p)
			}
		}
	}
}

// TestAnotherUser is seen as the user that it is.
func TestAnotherUser(t *testing.T) {
	dir := sharedDir(t)
	l := listen(t, dir, testUUID)
	asOther(t, "connect", dir)
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	closes(t, c)
	p := c.Peer()
	if p.UID != other || p.GID != other || !slices.Equal(p.Groups, []uint32{other + 1}) || p.UserNS != UserNS() ||
		!p.InGroup(other) || !p.InGroup(other+1) || p.InGroup(0) {
		t.Errorf("the other is %+v", p)
	}
}

// TestManyGroups has more groups than the first guess has room for.
func TestManyGroups(t *testing.T) {
	need.Root(t, "to have many groups takes root")
	old, err := syscall.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	many := make([]int, 1000)
	for i := range many {
		many[i] = 20000 + i
	}
	if err := syscall.Setgroups(many); err != nil {
		t.Fatal(err)
	}
	client, server := ends(t)
	if err := syscall.Setgroups(old); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Conn{client, server} {
		if p := c.Peer(); len(p.Groups) != len(many) || !p.InGroup(20999) {
			t.Errorf("%d groups", len(p.Groups))
		}
	}
}

// sharedDir is a runtime directory that another user reaches.
func sharedDir(t *testing.T) string {
	t.Helper()
	d, err := os.MkdirTemp("", "session")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(d); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(d, 0o755); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestFakeServer is another user's, in a directory that is not his any more: it is
// not to be used. In a directory of his own it is.
func TestFakeServer(t *testing.T) {
	dir := sharedDir(t)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	need.Root(t, "to be another user takes root")
	// He listens in a directory of his own, which is then somebody else's.
	if err := errors.Join(os.Chown(dir, other, other), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	asOther(t, "listen", dir)
	connect(t, dir, testUUID)
	if err := os.Chown(dir, 0, 0); err != nil {
		t.Fatal(err)
	}
	_, err := Connect(t.Context(), dir, testUUID)
	if r, ok := errors.AsType[*Refused](err); !ok || r.Why == "" {
		t.Errorf("a fake server: %v", err)
	}
	// The user's own directory must be the user's own.
	run := sharedDir(t)
	t.Setenv("XDG_RUNTIME_DIR", run)
	own := filepath.Join(run, "nfsbox")
	if err := os.Symlink(dir, own); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, other, other); err != nil {
		t.Fatal(err)
	}
	if _, err := Connect(t.Context(), own, testUUID); err == nil {
		t.Error("another user's runtime directory is taken for ours")
	}
}
