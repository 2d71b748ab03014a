package nfsclient

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/nfsclient/v3"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// TestDialBounded gives a host up from which nothing comes back at all, though neither
// the context nor the dialer has an end. Two ports are tried for MOUNT.
func TestDialBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		o    Options
		took time.Duration
	}{
		"by itself": {Options{}, 2 * maxDial},
		"patient":   {Options{Timeout: time.Hour}, 2 * maxDial},
		"impatient": {Options{Timeout: 2 * time.Second, Retries: 3}, 16 * time.Second},
		"hasty":     {Options{Timeout: time.Millisecond, Retries: -1}, 2 * minDial},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour) // of the test
				defer cancel()
				o := tc.o
				o.Host, o.Path, o.FS.Machine = "filer", "/export", "test"
				o.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				start := time.Now()
				_, err := Mount(ctx, o)
				if err == nil || !strings.Contains(err.Error(), "mountport=") {
					t.Errorf("%v", err)
				}
				if took := time.Since(start); took != tc.took {
					t.Errorf("given up after %v, want %v", took, tc.took)
				}
			})
		})
	}
}

// TestDiagnoseInterrupted ends with the step that was cut off, which has not failed,
// and gives no advice about it.
func TestDiagnoseInterrupted(t *testing.T) {
	for _, at := range []string{"connect", "nfs", "getattr", "list"} {
		t.Run(at, func(t *testing.T) {
			h := newHost(t, "10.0.0.1")
			h.at("7000", listed(), h.mountd(nil, "/export/a/b"))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var steps []Step
			err := Diagnose(ctx, h.options(Options{Port: 7000}), DiagnoseOptions{Read: true, Write: true}, func(s Step) {
				if steps = append(steps, s); s.Name == at {
					cancel()
				}
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
			for _, s := range steps {
				if s.Err != nil || s.Advice != "" && s.Name != "getattr" {
					t.Errorf("%+v", s)
				}
			}
			if last := steps[len(steps)-1]; last.Name != at {
				t.Errorf("went on to %+v", last)
			}
			if at == "getattr" || at == "list" {
				h.asked("MNT /export/a/b", "UMNT /export/a/b")
			}
		})
	}
}

// TestDiagnoseCutOff is interrupted in the middle of a step.
func TestDiagnoseCutOff(t *testing.T) {
	h := newHost(t, "10.0.0.1")
	h.at("7000", nfs())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := h.options(Options{NFSPort: 7000, MountPort: 7001})
	o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if strings.HasSuffix(address, ":7001") {
			cancel()
			return nil, ctx.Err()
		}
		return h.net.DialContext(ctx, network, address)
	}
	var last Step
	err := Diagnose(ctx, o, DiagnoseOptions{}, func(s Step) { last = s })
	if !errors.Is(err, context.Canceled) || last.Name != "mount" || last.Err != nil || last.Advice != "" || !last.Skipped || !strings.Contains(last.Detail, "interrupted") {
		t.Errorf("%+v, %v", last, err)
	}
}

// listed is a server with a directory in which there is nothing.
func listed() oncrpc.Service {
	return serve(&nfs3.NFS_V3, map[*xdr.Proc]func(*oncrpc.Call) xdr.Appender{
		nfs3.NFSPROC3_GETATTR: func(*oncrpc.Call) xdr.Appender {
			return &nfs3.GETATTR3res{Resok: nfs3.GETATTR3resok{ObjAttributes: nfs3.Fattr3{Type: nfs3.NF3DIR}}}
		},
		nfs3.NFSPROC3_FSINFO: func(*oncrpc.Call) xdr.Appender {
			return &nfs3.FSINFO3res{Resok: nfs3.FSINFO3resok{Rtmax: 1 << 20, Wtmax: 1 << 20}}
		},
		nfs3.NFSPROC3_ACCESS: func(*oncrpc.Call) xdr.Appender { return &nfs3.ACCESS3res{} },
		nfs3.NFSPROC3_READDIRPLUS: func(*oncrpc.Call) xdr.Appender {
			return &nfs3.READDIRPLUS3res{Resok: nfs3.READDIRPLUS3resok{Reply: nfs3.Dirlistplus3{Eof: true}}}
		},
	})
}

// TestDiagnoseBusy tells a server that puts everything off from one that is not there,
// when the patience with either has ended.
func TestDiagnoseBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, "10.0.0.1")
		h.at("7000", serve(&nfs3.NFS_V3, map[*xdr.Proc]func(*oncrpc.Call) xdr.Appender{
			nfs3.NFSPROC3_GETATTR: func(*oncrpc.Call) xdr.Appender { return &nfs3.GETATTR3res{Status: nfs3.NFS3ERR_JUKEBOX} },
		}), h.mountd(nil, "/export/a/b"))
		o := h.options(Options{Port: 7000})
		o.Rand = func(p []byte) { clear(p) } // the longest pauses
		var last Step
		start := time.Now()
		err := Diagnose(t.Context(), o, DiagnoseOptions{}, func(s Step) { last = s })
		if err == nil || last.Name != "mount" || !strings.Contains(last.Advice, "JUKEBOX") || !errors.Is(last.Err, vfs.ErrBusy) {
			t.Errorf("%+v, %v", last, err)
		}
		if took := time.Since(start); took > tryTime+time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// TestDiagnoseHangs has a server answer up to some procedure, and nothing from there
// on: each step ends in time, and the first of them says that there is no answer.
func TestDiagnoseHangs(t *testing.T) {
	for i, silent := range []*xdr.Proc{nfs3.NFSPROC3_NULL, nfs3.NFSPROC3_GETATTR, nfs3.NFSPROC3_FSINFO, nfs3.NFSPROC3_ACCESS, nfs3.NFSPROC3_READDIRPLUS, nfs3.NFSPROC3_CREATE} {
		t.Run(silent.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHost(t, "10.0.0.1")
				s := listed()
				s.Handlers[silent.Number] = func(context.Context, *oncrpc.Call) error { return oncrpc.ErrDrop }
				h.at("7000", s, h.mountd(nil, "/export/a/b"))
				var steps []Step
				err := Diagnose(t.Context(), h.options(Options{Port: 7000}), DiagnoseOptions{Read: true, Write: true}, func(s Step) { steps = append(steps, s) })
				if !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v", err)
				}
				last := steps[len(steps)-1]
				if want := [...]string{"nfs", "mount", "fsinfo", "getattr", "list", "write"}[i]; want != last.Name && want != "list" {
					t.Errorf("%+v, want %s", last, want)
				}
				for _, s := range steps {
					if s.Took > stepTime+tryTime {
						t.Errorf("%s took %v", s.Name, s.Took)
					}
					if s.Err != nil && s.Name != "write" && !strings.Contains(s.Advice, "no answer") {
						t.Errorf("%+v", s)
					}
				}
			})
		})
	}
}

// TestAdviceOnStatuses advises on what a server has answered, and never as if it could
// not be reached.
func TestAdviceOnStatuses(t *testing.T) {
	d := new(diagnosis)
	for s := vfs.Status(1); s <= vfs.ErrBusy; s++ {
		if name := s.Name(); name[0] >= '0' && name[0] <= '9' {
			continue // there is no such status
		}
		err := fmt.Errorf("write: %w", &v3.StatusError{Proc: nfs3.NFSPROC3_WRITE, Status: s})
		if text := d.advise(err); text == "" || strings.Contains(text, "can be reached") || strings.Contains(text, "Kerberos") {
			t.Errorf("%v: %s", err, text)
		}
	}
	if text := d.advise(syscall.ELOOP); !strings.Contains(text, "symbolic links") {
		t.Errorf("ELOOP: %s", text)
	}
	if text := d.advise(&fs.PathError{Op: "resolve", Path: "a", Err: vfs.ErrOutside}); !strings.Contains(text, "what the link leads to") {
		t.Errorf("a link that leads out: %s", text)
	}
	if text := d.advise(takesAuthSys([]int32{390003})); !strings.Contains(text, "Kerberos") {
		t.Errorf("Kerberos alone: %s", text)
	}
}
