package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// The client of these tests is a process of its own: this test once more, told by
// the environment what to do. Its connections are made by this process, and handed
// to it: it may have no network.
const (
	elsewhereEnv  = "NFSBOX_TEST_ELSEWHERE"
	elsewhereTime = time.Minute // a client takes seconds
	doorFD        = 3           // where it asks for connections
	limitFiles    = 40          // that a client opens at once which has no room for them
	limitSpare    = 8           // descriptors that it has left for them
)

// task is what a client elsewhere is to do.
type task struct {
	URL, Run string
	Squeeze  bool // open many files, with few descriptors left
	Remote   bool // it is not let past the network, so that reading again until it was would never end
}

// finding is what a client elsewhere has found.
type finding struct {
	Net      string // its network namespace
	Content  string // of the file
	Bad      []string
	Stats    nfsbox.LocalIOStats
	Networks int // interfaces that are up
}

// elsewhere runs a client in a process of its own, which attr makes.
func elsewhere(t *testing.T, n *neighbour, what task, attr *syscall.SysProcAttr) (found finding) {
	t.Helper()
	what.URL = "nfs://" + n.addr + "/"
	env, err := json.Marshal(what)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "door"), os.NewFile(uintptr(pair[1]), "door")
	var work sync.WaitGroup
	work.Go(func() { doorkeeper(t, ours, n.addr) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), elsewhereTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, "-test.run=^TestLocalIOElsewhere$", "-test.count=1")
	cmd.Env = append(os.Environ(), elsewhereEnv+"="+string(env))
	cmd.ExtraFiles, cmd.SysProcAttr = []*os.File{theirs}, attr
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	err = cmd.Run()
	// doorkeeper ends with the last process that could ask.
	if e := theirs.Close(); err == nil {
		err = e
	}
	work.Wait()
	if errors.Is(err, syscall.EPERM) {
		need.Missing(t, "root", "namespaces are made by root: "+err.Error())
	}
	first, _, _ := bytes.Cut(out.Bytes(), []byte("\n"))
	if e := json.Unmarshal(first, &found); err != nil || e != nil {
		t.Fatalf("%v, %v\n%s\n%s", err, e, &out, &log)
	}
	for _, bad := range found.Bad {
		t.Error(bad)
	}
	return found
}

// doorkeeper hands out a connection to addr for each request, until the other end of the
// socket is closed.
func doorkeeper(t *testing.T, door *os.File, addr string) {
	defer func() {
		if err := door.Close(); err != nil {
			t.Error(err)
		}
	}()
	for {
		p := make([]byte, 1)
		if n, err := unix.Read(int(door.Fd()), p); n == 0 || err != nil {
			return
		}
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Error(err)
			return
		}
		f, err := c.(*net.TCPConn).File()
		if err == nil {
			err = errors.Join(unix.Sendmsg(int(door.Fd()), p, unix.UnixRights(int(f.Fd())), nil, 0), f.Close())
		}
		if err = errors.Join(err, c.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestLocalIOElsewhere is the client's side, in its own process; by itself it does
// nothing.
func TestLocalIOElsewhere(t *testing.T) {
	env := os.Getenv(elsewhereEnv)
	if env == "" {
		return
	}
	var what task
	if err := json.Unmarshal([]byte(env), &what); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	ask := func(context.Context, string, string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		return fromDoor()
	}
	c := dial(t, what.URL, nfsbox.WithCaller(here()), nfsbox.WithLocalIO(nfsbox.LocalIOAuto), nfsbox.WithEagerLocalIO(), nfsbox.WithLocalIODir(what.Run), nfsbox.WithDialer(ask))
	eventually(t, func() bool { s := c.Stats().LocalIO; return s.State == "local" || s.Why != "" },
		func() string { return "no word of local I/O" })
	var found finding
	if what.Remote {
		for range 20 { // none of which may go past the network
			found.Content = string(get(t, c.FS(), "file"))
		}
	} else {
		found.Content = string(getLocally(t, c, "file"))
	}
	var err error
	if found.Net, err = os.Readlink("/proc/self/ns/net"); err != nil {
		t.Fatal(err)
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		if i.Flags&net.FlagUp != 0 {
			found.Networks++
		}
	}
	if what.Squeeze {
		found.Bad = squeeze(t, c)
	}
	found.Stats = c.Stats().LocalIO
	line, err := json.Marshal(found)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%s\n", line)
}

// fromDoor is a connection that the other process has made.
func fromDoor() (net.Conn, error) {
	if _, err := unix.Write(doorFD, []byte{1}); err != nil {
		return nil, err
	}
	p, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(doorFD, p, oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, err
	}
	all, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(all) != 1 {
		return nil, fmt.Errorf("%d descriptors came: %w", len(all), err)
	}
	fds, err := unix.ParseUnixRights(&all[0])
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fds[0]), "connection")
	c, err := net.FileConn(f)
	return c, errors.Join(err, f.Close())
}

// squeeze opens and reads many files at once, while the process may have only few
// descriptors more than it has.
func squeeze(t *testing.T, c *nfsbox.Client) (bad []string) {
	used, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0) // the lowest that is free
	if err == nil {
		err = unix.Close(used)
	}
	if err != nil {
		t.Fatal(err)
	}
	limit := unix.Rlimit{Cur: uint64(used + limitSpare), Max: uint64(used + limitSpare)}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	root := rootOf(t, c.FS())
	files := make([]vfs.File, limitFiles)
	for i := range files {
		f, _, err := c.FS().Open(t.Context(), vfs.At{Dir: root, Name: fmt.Sprint(i)}, &vfs.OpenHow{Access: vfs.ShareRead | vfs.ShareWrite})
		if err != nil {
			t.Fatal(err)
		}
		files[i] = f
	}
	for i := range 3 * limitFiles {
		f, p := files[i%limitFiles], make([]byte, 5000)
		want := pattern(uint64(i%limitFiles), 1, 0, len(p))
		if n, _, err := vfs.ReadFull(t.Context(), f, p, 0); err != nil || n != len(p) || !bytes.Equal(p, want) {
			bad = append(bad, fmt.Sprintf("file %d: %d bytes, %v", i%limitFiles, n, err))
		}
		if _, err := f.WriteAt(t.Context(), want[:100], 0, vfs.FileSync, new(vfs.Written)); err != nil {
			bad = append(bad, fmt.Sprintf("file %d: write: %v", i%limitFiles, err))
		}
	}
	for _, f := range files {
		if err := f.Close(t.Context()); err != nil {
			bad = append(bad, err.Error())
		}
	}
	return bad
}

// TestLocalIONamespaces has client and server in two network namespaces: what
// decides is the directory, which they share or do not.
func TestLocalIONamespaces(t *testing.T) {
	need.Root(t, "a network namespace takes root")
	n := newNeighbour(t, localfs.HandlesMap, export.Rule{})
	n.onDisk("file", []byte("content"))
	mine, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{n.run: "local", filepath.Join(t.TempDir(), "none"): "remote"} {
		found := elsewhere(t, n, task{Run: dir}, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET})
		if found.Net == mine || found.Networks != 0 {
			t.Errorf("no other network: %+v", found)
		}
		if found.Content != "content" || found.Stats.State != want || (found.Stats.Reads > 0) != (want == "local") {
			t.Errorf("%s: %+v", want, found)
		}
	}
}

// TestLocalIOUserNamespace has the client in a user namespace in which it calls
// itself root: it is not, and stays remote.
func TestLocalIOUserNamespace(t *testing.T) {
	n := newNeighbour(t, localfs.HandlesMap, export.Rule{})
	n.onDisk("file", []byte("content"))
	uid, gid := os.Getuid(), os.Getgid()
	found := elsewhere(t, n, task{Run: n.run, Remote: true}, &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: gid, Size: 1}},
	})
	if found.Content != "content" || found.Stats.Reads != 0 {
		t.Errorf("%+v", found)
	}
}

// TestLocalIOSqueezed leaves a client no room for the descriptors of its files: it
// does with those that it has, and over the network with the rest.
func TestLocalIOSqueezed(t *testing.T) {
	n := newNeighbour(t, localfs.HandlesMap, export.Rule{})
	n.onDisk("file", []byte("content"))
	for i := range limitFiles {
		n.onDisk(fmt.Sprint(i), pattern(uint64(i), 1, 0, 5000))
	}
	found := elsewhere(t, n, task{Run: n.run, Squeeze: true}, nil)
	if s := found.Stats; s.Reads == 0 || s.Fallbacks == 0 || !strings.HasPrefix(found.Content, "content") {
		t.Errorf("%+v", found)
	}
}
