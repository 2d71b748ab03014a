package nfsclient

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestDiagnose breaks one thing at a time: the last step must be the one that
// meets it, and its advice must name what is to be done.
func TestDiagnose(t *testing.T) {
	const mount, nfsd = "7001", "7000"
	ports := map[uint32]uint32{mount3.MOUNT_V3.Number: 7001, nfs3.NFS_V3.Number: 7000}
	here := []string{"/export/a/b"}
	for name, tc := range map[string]struct {
		setup  func(h *host)
		o      Options
		last   string // the step that fails
		advice string // part of what it says
	}{
		"nobody there":    {func(*host) {}, Options{}, "connect", "nothing listens"},
		"no NFS":          {func(h *host) { h.at(mount, h.mountd(nil, here...)) }, Options{NFSPort: 7000, MountPort: 7001}, "connect", "nothing listens"},
		"no MOUNT":        {func(h *host) { h.at(nfsd, nfs()) }, Options{NFSPort: 7000, MountPort: 7001}, "mount", "nothing listens"},
		"NFS 4 alone":     {func(h *host) { h.at(nfsd, nfs4()); h.at(mount, h.mountd(nil, here...)) }, Options{NFSPort: 7000, MountPort: 7001}, "nfs", "versions 4 to 4"},
		"MOUNT elsewhere": {func(h *host) { h.at(nfsd, nfs()); h.at(mount, nfs()) }, Options{NFSPort: 7000, MountPort: 7001}, "mount", "another service is at this port"},
		"not allowed": {func(h *host) { h.at(nfsd, nfs()); h.at(mount, h.mountd(nil)) },
			Options{NFSPort: 7000, MountPort: 7001}, "mount", "/export is exported (to 10.0.0.0/8 @lab)"},
		"no such export": {func(h *host) { h.at(nfsd, nfs()); h.at(mount, h.mountd(nil)) },
			Options{NFSPort: 7000, MountPort: 7001, Path: "/elsewhere"}, "mount", "lies in no export; there are /export (to 10.0.0.0/8 @lab), /open (to everybody)"},
		"Kerberos alone": {func(h *host) { h.at(nfsd, nfs()); h.at(mount, h.mountd([]int32{390003}, here...)) },
			Options{NFSPort: 7000, MountPort: 7001}, "mount", "allow sec=sys"},
		"by the portmapper, no FSINFO": {func(h *host) { h.at(nfsd, nfs()); h.at(mount, h.mountd(nil, here...)); h.at("111", portmap(ports)) },
			Options{}, "fsinfo", "the server failed"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, "10.0.0.1")
			tc.setup(h)
			o := h.options(tc.o)
			if tc.o.Path != "" {
				o.Path = tc.o.Path
			}
			var steps []Step
			err := Diagnose(t.Context(), o, DiagnoseOptions{Read: true, Write: true}, func(s Step) { steps = append(steps, s) })
			if len(steps) == 0 {
				t.Fatalf("no step: %v", err)
			}
			last := steps[len(steps)-1]
			if last.Name != tc.last || last.Err == nil || !errors.Is(err, last.Err) {
				t.Errorf("%+v, %v; want %s to fail", last, err, tc.last)
			}
			if !strings.Contains(last.Advice, tc.advice) {
				t.Errorf("advice is %q, want %q", last.Advice, tc.advice)
			}
			for _, s := range steps {
				if s.Err != nil && s.Advice == "" {
					t.Errorf("no advice with %+v", s)
				}
				if s.Err != nil && strings.Contains(s.Detail, s.Err.Error()) {
					t.Errorf("%+v says it twice", s)
				}
			}
		})
	}
}

// TestPortmapStep: a portmapper that is not there is no failure, since Mount does
// without; one that knows no NFS is.
func TestPortmapStep(t *testing.T) {
	for name, tc := range map[string]struct {
		setup  func(h *host)
		failed bool
		advice string
	}{
		"nobody": {func(*host) {}, false, "port 2049 is tried instead"},
		"no NFS": {func(h *host) { h.at("111", portmap(map[uint32]uint32{mount3.MOUNT_V3.Number: 7001})) }, true, "nfsport="},
		"no MNT": {func(h *host) { h.at("111", portmap(map[uint32]uint32{nfs3.NFS_V3.Number: 7000})) }, true, "mountport="},
		"at work": {func(h *host) {
			h.at("111", portmap(map[uint32]uint32{nfs3.NFS_V3.Number: 7000, mount3.MOUNT_V3.Number: 7001}))
		}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, "10.0.0.1")
			tc.setup(h)
			var got Step
			err := Diagnose(t.Context(), h.options(Options{}), DiagnoseOptions{}, func(s Step) {
				if s.Name == "portmap" {
					got = s
				}
			})
			if err == nil || (got.Err != nil) != tc.failed || !strings.Contains(got.Advice, tc.advice) || got.Advice != "" && tc.advice == "" || got.Detail == "" && !tc.failed {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// TestAdviceOnPorts says what an unprivileged port may be to blame for.
func TestAdviceOnPorts(t *testing.T) {
	for port, want := range map[int]bool{1023: false, 1024: true, 40000: true} {
		d := &diagnosis{local: &net.TCPAddr{Port: port}, exports: []Export{{Path: "/e", Groups: []string{"h"}}}}
		refusal := &MountError{Path: "/e/x", Status: 13}
		if got := strings.Contains(d.advise(refusal), "insecure"); got != want {
			t.Errorf("port %d: %s", port, d.advise(refusal))
		}
	}
}

// TestAdviceOnErrors has something to say about whatever a network does.
func TestAdviceOnErrors(t *testing.T) {
	d := new(diagnosis)
	var said []string
	for _, err := range []error{syscall.ECONNREFUSED, syscall.EHOSTUNREACH, context.DeadlineExceeded, errors.Join(os.ErrDeadlineExceeded, syscall.ECONNREFUSED), syscall.ECONNRESET, syscall.EACCES, errors.New("other")} {
		text := d.advise(err)
		if text == "" || slices.Contains(said, text) {
			t.Errorf("%v: %q", err, text)
		}
		said = append(said, text)
	}
}

// TestClock compares the time of a new file with the times around its making.
func TestClock(t *testing.T) {
	before := time.Unix(1000, 0)
	for name, tc := range map[string]struct {
		mtime  time.Duration
		say    string
		advice bool
	}{
		"the same": {5 * time.Millisecond, "agrees with this host's to within 60ms", false},
		"ahead":    {550 * time.Millisecond, "500ms ahead of this host's, give or take 60ms", false},
		"coarse":   {-1800 * time.Millisecond, "agrees with this host's to within 2.05s", false},
		"behind":   {-time.Hour + 50*time.Millisecond, "1h0m0s behind this host's", true},
	} {
		var got Step
		d := &diagnosis{report: func(s Step) { got = s }}
		if name == "coarse" {
			d.grain = 2 * time.Second
		}
		d.clock(&vfs.Attr{Valid: vfs.MaskMtime, Mtime: before.Add(tc.mtime)}, before, before.Add(100*time.Millisecond))
		if !strings.Contains(got.Detail, tc.say) || (got.Advice != "") != tc.advice || got.Err != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
