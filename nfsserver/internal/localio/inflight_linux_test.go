package localio

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/proto/localio"
)

// TestInFlight has a client take nothing until the kernel lets the server's user
// send no more descriptors (unix(7), ETOOMANYREFS). Root has no such bound.
func TestInFlight(t *testing.T) {
	if os.Geteuid() == 0 {
		runAsAnn(t)
		return
	}
	r := newRig(t, Options{})
	n := r.local()
	h := r.file("f", 0o644)
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	const room = 64
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: room, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	first := n.next
	all := slices.Repeat([]localio.SessionOpenFile{want(h)}, localio.SESSION_MAX_OPENS)
	const messages = 6
	for range messages {
		n.ask(all...)
	}
	eventually(t, "all is answered", func() bool {
		st := r.s.Stats()
		return st.Opened+st.Refused["crowded"] == messages*uint64(len(all))
	})
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	good := 0
	for _, f := range n.answers(first, messages*len(all)) {
		switch {
		case f.Why == localio.SESSION_OK && n.valid(f):
			good++
		case f.Why != localio.SESSION_CROWDED || f.Slot != 0:
			t.Errorf("%+v", f)
		}
	}
	if good == 0 || good > room+maxOpening {
		t.Errorf("%d files in flight", good)
	}
	if st := r.s.Stats(); st.Files != good || st.Opened != uint64(good) || int(r.host.watches.Load()) != good {
		t.Errorf("%d files arrived, of %+v", good, st)
	}
	if got := n.open(want(h))[0]; got.Why != localio.SESSION_OK {
		t.Errorf("then: %+v", got)
	}
}

// runAsAnn runs the test once more, as a user without privileges.
func runAsAnn(t *testing.T) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.v")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "TMPDIR="+annsDir(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ann, Gid: ann}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("as user %d: %v\n%s", ann, err, out)
	}
}

// annsDir is a directory of hers.
func annsDir(t *testing.T) string {
	t.Helper()
	d := sharedDir(t)
	if err := os.Chown(d, ann, ann); err != nil {
		t.Fatal(err)
	}
	return d
}
