package localio

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/base/session"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/localio"
	"github.com/nfsbox/nfsbox/vfs"
)

// The environment of a child: what it is to do, and where.
const (
	childVar  = "LOCALIO_TEST_CHILD"
	dirVar    = "LOCALIO_TEST_DIR"
	addrVar   = "LOCALIO_TEST_ADDR"
	handleVar = "LOCALIO_TEST_HANDLE"
)

// ann is another user, who has one further group.
const (
	ann      = 12345
	annGroup = 12346
)

// claims are callers that a child says that it acts for, by turns.
var claims = []vfs.Caller{
	{UID: ann, GID: ann},
	{UID: ann, GID: annGroup, Groups: []uint32{ann}},
	{UID: 0, GID: 0},
	{UID: ann + 1, GID: ann},
	{UID: ann, GID: 0},
	{UID: ann, GID: ann, Groups: []uint32{0}},
}

// TestChild is no test, but the other process of those below: it becomes local,
// asks for a file on behalf of each of claims, and prints the answers.
func TestChild(t *testing.T) {
	if os.Getenv(childVar) == "" {
		return
	}
	n := greeted(t, os.Getenv(dirVar), DefaultMaxFiles)
	c := dial(t, os.Getenv(addrVar))
	if _, err := call1(t, c, n.nonce[:]); err != nil {
		t.Fatal(err)
	}
	n.isBound()
	var handle []byte
	if _, err := fmt.Sscanf(os.Getenv(handleVar), "%x", &handle); err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, claim := range claims {
		got := n.open(localio.SessionOpenFile{
			Handle: handle, Access: localio.SESSION_READ, Uid: claim.UID, Gid: claim.GID, Groups: claim.Groups,
		})[0]
		said = append(said, got.Why.String())
	}
	fmt.Println("answers:", strings.Join(said, " "))
}

// runChild runs TestChild as another process, and returns the answers.
func (r *rig) runChild(h vfs.Handle, attr *syscall.SysProcAttr) []string {
	r.t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestChild$", "-test.count=1")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), childVar+"=1", dirVar+"="+r.dir, addrVar+"="+r.serve(), handleVar+"="+h.String())
	cmd.SysProcAttr = attr
	out, err := cmd.CombinedOutput()
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) {
		need.Missing(r.t, "userns", err.Error())
	}
	if err != nil {
		r.t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if said, ok := strings.CutPrefix(line, "answers: "); ok {
			return strings.Fields(said)
		}
	}
	r.t.Fatalf("no answers:\n%s", out)
	return nil
}

// TestAnotherUser may claim to be herself, and nobody else.
func TestAnotherUser(t *testing.T) {
	need.Root(t, "to be another user takes root")
	r := newRig(t, Options{})
	got := r.runChild(r.file("f", 0o644), &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: ann, Gid: ann, Groups: []uint32{annGroup}},
	})
	want := []string{
		"SESSION_OK", "SESSION_OK", "SESSION_IDENTITY", "SESSION_IDENTITY", "SESSION_IDENTITY", "SESSION_IDENTITY",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	for _, how := range r.host.asked {
		if p := how.Peer; p.UID != ann || p.GID != ann || !slices.Equal(p.Groups, []uint32{annGroup}) {
			t.Errorf("asked for %+v", p)
		}
	}
}

// TestAnotherUserNamespace is root there, and nobody here.
func TestAnotherUserNamespace(t *testing.T) {
	r := newRig(t, Options{})
	maps := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
	got := r.runChild(r.file("f", 0o644), &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER, UidMappings: maps,
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	})
	for i, why := range got {
		if why != "SESSION_IDENTITY" {
			t.Errorf("%+v: %s", claims[i], why)
		}
	}
	if len(got) != len(claims) {
		t.Errorf("%v", got)
	}
}

// TestSaysItsNamespace believes a client whose namespace cannot be looked at when it
// says that it is another.
func TestSaysItsNamespace(t *testing.T) {
	own := session.UserNS()
	for _, x := range []struct {
		kernel, says, ours uint64
		want               bool
	}{
		{own, 0, own, false}, {own, own + 1, own, false}, {own + 1, own, own, true},
		{0, own, own, false}, {0, own + 1, own, true}, {0, 0, own, false}, {own, own, 0, false},
	} {
		if got := foreign(x.kernel, x.says, x.ours); got != x.want {
			t.Errorf("%+v: %t", x, got)
		}
	}
}

// TestGone judges the rules by the RPC connection's address even when it is closed.
func TestGone(t *testing.T) {
	r := newRig(t, Options{})
	h := r.file("f", 0o644)
	n := greeted(t, r.dir, DefaultMaxFiles)
	c := oncrpc.NewClient(oncrpc.ClientOptions{Dial: dialer(r.serve())})
	if _, err := call1(t, c, n.nonce[:]); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	n.isBound()
	if got := n.open(want(h))[0]; got.Why != localio.SESSION_OK {
		t.Errorf("%+v", got)
	}
}
