package exporttest

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// peerEnv in the environment says that this process is a peer; its socket is peerFD.
const (
	peerEnv = "EXPORTTEST_PEER"
	peerFD  = 3
)

// peerPatience is how long the test waits for a peer.
const peerPatience = 30 * time.Second

// peer is a process of some user that gets descriptors.
type peer struct {
	who  vfs.Caller
	conn *net.UnixConn
}

// startPeer runs this test once more as another user, until the test ends.
func startPeer(t *testing.T, who vfs.Caller) *peer {
	t.Helper()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(ends[1]), "peer")
	conn, err := packets(os.NewFile(uintptr(ends[0]), "peer"))
	if err != nil {
		t.Fatal(err)
	}
	test, _, _ := strings.Cut(t.Name(), "/")
	// It ends when the socket is closed, which is after the test's context has ended.
	ctx := context.WithoutCancel(t.Context())
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "-test.run=^"+test+"$", "-test.count=1")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), peerEnv+"=1")
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: who.UID, Gid: who.GID, Groups: who.Groups}}
	if err := errors.Join(cmd.Start(), theirs.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(conn.Close(), cmd.Wait()); err != nil {
			t.Errorf("a peer of uid %d: %v", who.UID, err)
		}
	})
	return &peer{who: who, conn: conn}
}

// packets makes a connection of f, and closes f.
func packets(f *os.File) (*net.UnixConn, error) {
	c, err := net.FileConn(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return c.(*net.UnixConn), nil
}

// attack has the peer try all attacks on f, and returns the outcome of each: 0 if it
// succeeded.
func (p *peer) attack(t *testing.T, f *os.File, attic string) []unix.Errno {
	t.Helper()
	if err := p.conn.SetDeadline(time.Now().Add(peerPatience)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.conn.WriteMsgUnix([]byte(attic), unix.UnixRights(int(f.Fd())), nil); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 2*len(attacks))
	if n, err := p.conn.Read(answer); err != nil || n != len(answer) {
		t.Fatalf("a peer of uid %d has answered %d bytes: %v", p.who.UID, n, err)
	}
	outcome := make([]unix.Errno, len(attacks))
	for i := range outcome {
		outcome[i] = unix.Errno(binary.NativeEndian.Uint16(answer[2*i:]))
	}
	return outcome
}

// IsPeer reports whether [Descriptors] has started this process, which must then call
// Peer and do nothing else.
func IsPeer() bool { return os.Getenv(peerEnv) != "" }

// Peer attacks the files that [Descriptors] hands to this process, until the socket is
// closed.
func Peer(t *testing.T) {
	conn, err := packets(os.NewFile(peerFD, "peer"))
	if err != nil {
		t.Fatal(err)
	}
	for {
		fd, attic, err := receive(conn)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		var answer []byte
		for _, a := range attacks {
			answer = binary.NativeEndian.AppendUint16(answer, uint16(errnoOf(a.try(fd, attic))))
		}
		if err := unix.Close(fd); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(answer); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

// errnoOf is the number of err: 0 for nil, and an unused one for what is no errno.
func errnoOf(err error) unix.Errno {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[unix.Errno](err); ok {
		return e
	}
	return 0xffff
}

// receive returns the next descriptor, and the directory to make links in.
func receive(conn *net.UnixConn) (fd int, attic string, err error) {
	buf, oob := make([]byte, unix.PathMax), make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := conn.ReadMsgUnix(buf, oob)
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err != nil {
		return -1, "", err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(messages) != 1 {
		return -1, "", errors.Join(err, errors.New("no descriptor has come"))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return -1, "", err
	}
	return fds[0], string(buf[:n]), nil
}
