package v3_test

import (
	"context"
	"errors"
	"os"
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

// TestGetAttrsPatience asks a server that does not answer for many objects: they are
// given up together, when the patience of one call has ended.
func TestGetAttrsPatience(t *testing.T) {
	const patience = oncrpc.DefaultTimeout * (oncrpc.DefaultRetries + 1)
	synctest.Test(t, func(t *testing.T) {
		st := play(t, script{nfs3.NFSPROC3_GETATTR: func(int, *oncrpc.Call) xdr.Appender { return nil }}, v3.Options{})
		hs := make([]vfs.Handle, 200)
		for i := range hs {
			hs[i] = handle(t, "file")
		}
		attrs, errs := make([]vfs.Attr, len(hs)), make([]error, len(hs))
		start := time.Now()
		st.fs.GetAttrs(t.Context(), hs, vfs.MaskV3, attrs, errs)
		if took := time.Since(start); took > patience+time.Second {
			t.Errorf("given up after %v, want %v", took, patience)
		}
		for i, err := range errs {
			if !errors.Is(err, syscall.EIO) || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("object %d: %v", i, err)
			}
		}
	})
}

// TestGetAttrsSilentOne has one object of which the server says nothing: it alone is
// given up.
func TestGetAttrsSilentOne(t *testing.T) {
	const patience = oncrpc.DefaultTimeout * (oncrpc.DefaultRetries + 1)
	synctest.Test(t, func(t *testing.T) {
		st := play(t, script{nfs3.NFSPROC3_GETATTR: func(_ int, c *oncrpc.Call) xdr.Appender {
			var args nfs3.GETATTR3args
			if args.DecodeXDR(&c.Args) != nil || string(args.Object.Data) == "silent" {
				return nil
			}
			return &nfs3.GETATTR3res{}
		}}, v3.Options{})
		hs := make([]vfs.Handle, 100)
		for i := range hs {
			hs[i] = handle(t, "file")
		}
		hs[7] = handle(t, "silent")
		attrs, errs := make([]vfs.Attr, len(hs)), make([]error, len(hs))
		start := time.Now()
		st.fs.GetAttrs(t.Context(), hs, vfs.MaskV3, attrs, errs)
		if took := time.Since(start); took > patience+time.Second {
			t.Errorf("took %v, want %v", took, patience)
		}
		for i, err := range errs {
			if (err != nil) != (i == 7) || err == nil && !attrs[i].Has(vfs.MaskType) {
				t.Errorf("object %d: %+v, %v", i, attrs[i], err)
			}
		}
	})
}

// TestBusyInterrupted says that the server is there, and busy, when a context ends
// while it is asked again.
func TestBusyInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := play(t, script{nfs3.NFSPROC3_GETATTR: busyFor(1000, nil)}, v3.Options{Hard: true, Rand: func(p []byte) { clear(p) }})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := st.fs.GetAttr(ctx, handle(t, "file"), vfs.MaskV3)
		busy, ok := errors.AsType[*v3.BusyError](err)
		if !ok || busy.Tries != 4 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

// TestOpenWithoutAttributes finds a link by the name that is to be created: though the
// server sends no attributes with the name, the link is not opened as a file.
func TestOpenWithoutAttributes(t *testing.T) {
	for kind, want := range map[nfs3.Ftype3]error{nfs3.NF3REG: nil, nfs3.NF3LNK: vfs.ErrExist, nfs3.NF3DIR: vfs.ErrIsDir} {
		st := play(t, script{
			nfs3.NFSPROC3_CREATE:  always(&nfs3.CREATE3res{Status: nfs3.NFS3ERR_EXIST}),
			nfs3.NFSPROC3_LOOKUP:  always(&nfs3.LOOKUP3res{Resok: nfs3.LOOKUP3resok{Object: nfs3.NfsFh3{Data: []byte("x")}}}),
			nfs3.NFSPROC3_GETATTR: always(&nfs3.GETATTR3res{Resok: nfs3.GETATTR3resok{ObjAttributes: nfs3.Fattr3{Type: kind}}}),
		}, v3.Options{})
		f, _, err := st.fs.Open(t.Context(), vfs.At{Dir: handle(t, "dir"), Name: "x"}, &vfs.OpenHow{
			Access: vfs.ShareWrite, Create: &vfs.CreateHow{Type: vfs.TypeReg, Mode: vfs.CreateUnchecked},
		})
		if !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%v: %v, want %v", kind, err, want)
		}
		if err == nil {
			if err := f.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestGetAttrsBusy has many objects on tapes: they are asked for again together, and take
// no longer than one would. One of them is asked for in vain.
func TestGetAttrsBusy(t *testing.T) {
	const patience = oncrpc.DefaultTimeout * (oncrpc.DefaultRetries + 1)
	for lost, took := range map[string]time.Duration{"": 35 * time.Second, "lost": patience} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			st := play(t, script{nfs3.NFSPROC3_GETATTR: func(_ int, c *oncrpc.Call) xdr.Appender {
				var args nfs3.GETATTR3args
				if args.DecodeXDR(&c.Args) != nil {
					return nil
				}
				tape := string(args.Object.Data) == "tape" && time.Since(start) < 30*time.Second
				if tape || string(args.Object.Data) == "lost" {
					return &nfs3.GETATTR3res{Status: nfs3.NFS3ERR_JUKEBOX}
				}
				return &nfs3.GETATTR3res{}
			}}, v3.Options{})
			hs := make([]vfs.Handle, 60)
			for i := range hs {
				hs[i] = handle(t, [...]string{"disk", "tape"}[i%2])
			}
			if lost != "" {
				hs[7] = handle(t, lost)
			}
			attrs, errs := make([]vfs.Attr, len(hs)), make([]error, len(hs))
			st.fs.GetAttrs(t.Context(), hs, vfs.MaskV3, attrs, errs)
			if d := time.Since(start); d < 30*time.Second || d > took+time.Second {
				t.Errorf("took %v, want %v", d, took)
			}
			for i, err := range errs {
				bad := lost != "" && i == 7
				if errors.Is(err, vfs.ErrBusy) != bad || (err != nil) != bad || !bad && !attrs[i].Has(vfs.MaskType) {
					t.Errorf("object %d: %+v, %v", i, attrs[i], err)
				}
			}
		})
	}
}
