package v3_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/nfsclient/v3"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// busyFor answers JUKEBOX to the first n calls.
func busyFor(n int, then xdr.Appender) func(int, *oncrpc.Call) xdr.Appender {
	return func(i int, _ *oncrpc.Call) xdr.Appender {
		if i <= n {
			return &nfs3.GETATTR3res{Status: nfs3.NFS3ERR_JUKEBOX}
		}
		return then
	}
}

func TestBusy(t *testing.T) {
	zeros, ones := func(p []byte) { clear(p) }, func(p []byte) {
		for i := range p {
			p[i] = 0xff
		}
	}
	for _, tc := range []struct {
		name  string
		busy  int
		rand  func([]byte)
		err   error
		calls int
		took  time.Duration
	}{
		{"at once", 0, zeros, nil, 1, 0},
		{"three times", 3, zeros, nil, 4, 700 * time.Millisecond},
		{"three times, jittered", 3, ones, nil, 4, 350 * time.Millisecond},
		{"while a tape is fetched", 36, zeros, nil, 37, 156300 * time.Millisecond},
		{"for ever", 1000, zeros, vfs.ErrBusy, 42, 180 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := play(t, script{nfs3.NFSPROC3_GETATTR: busyFor(tc.busy, &nfs3.GETATTR3res{})}, v3.Options{Rand: tc.rand})
				start := time.Now()
				_, err := st.fs.GetAttr(t.Context(), handle(t, "file"), vfs.MaskV3)
				if !errors.Is(err, tc.err) {
					t.Errorf("%v, want %v", err, tc.err)
				}
				if n := st.called(nfs3.NFSPROC3_GETATTR); n != tc.calls {
					t.Errorf("%d calls, want %d", n, tc.calls)
				}
				if took := time.Since(start); took.Round(time.Millisecond) != tc.took {
					t.Errorf("took %v, want %v", took, tc.took)
				}
			})
		})
	}
}

// TestBusyRead makes sure that a READ that was put off still finds its buffer,
// and that a change that was put off and then given up is known not to have
// happened.
func TestBusyRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := play(t, script{
			nfs3.NFSPROC3_READ: func(n int, _ *oncrpc.Call) xdr.Appender {
				if n <= 2 {
					return &nfs3.READ3res{Status: nfs3.NFS3ERR_JUKEBOX}
				}
				return &nfs3.READ3res{Resok: nfs3.READ3resok{Count: 3, Data: []byte("abc")}}
			},
			nfs3.NFSPROC3_WRITE: always(&nfs3.WRITE3res{Status: nfs3.NFS3ERR_JUKEBOX}),
		}, v3.Options{})
		f := st.open(t)
		buf := make([]byte, 8)
		if n, _, err := f.ReadAt(t.Context(), buf, 0, nil); n != 3 || err != nil || string(buf[:n]) != "abc" {
			t.Errorf("%d, %q, %v", n, buf, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var w vfs.Written
		_, err := f.WriteAt(ctx, buf, 0, vfs.Unstable, &w)
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, vfs.ErrUnknownOutcome) {
			t.Errorf("%v", err)
		}
		if busy, ok := errors.AsType[*v3.BusyError](err); !ok || busy.Tries < 4 {
			t.Errorf("%v does not say how often the server was busy", err)
		}
	})
}
