package v3_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/nfsbox/nfsbox/internal/client/nfsclient/v3"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

func sized(n uint64) nfs3.PostOpAttr {
	return nfs3.PostOpAttr{AttributesFollow: true, Attributes: nfs3.Fattr3{Type: nfs3.NF3REG, Size: n}}
}

func TestReadReplies(t *testing.T) {
	for name, tc := range map[string]struct {
		ok     nfs3.READ3resok
		n      int
		eof    bool
		untrue bool
		err    bool // any
	}{
		"full":              {ok: nfs3.READ3resok{Count: 4, Data: []byte("abcd")}, n: 4},
		"short":             {ok: nfs3.READ3resok{Count: 3, Data: []byte("abc")}, n: 3},
		"end":               {ok: nfs3.READ3resok{Count: 3, Data: []byte("abc"), Eof: true, FileAttributes: sized(13)}, n: 3, eof: true},
		"end, no size":      {ok: nfs3.READ3resok{Count: 3, Data: []byte("abc"), Eof: true}, n: 3, eof: true},
		"nothing but end":   {ok: nfs3.READ3resok{Eof: true, FileAttributes: sized(99)}, eof: true},
		"end is contested":  {ok: nfs3.READ3resok{Count: 3, Data: []byte("abc"), Eof: true, FileAttributes: sized(99)}, n: 3},
		"count above data":  {ok: nfs3.READ3resok{Count: 4, Data: []byte("abc")}, untrue: true},
		"count below data":  {ok: nfs3.READ3resok{Count: 2, Data: []byte("abc")}, untrue: true},
		"no progress":       {ok: nfs3.READ3resok{FileAttributes: sized(99)}, untrue: true},
		"more than asked":   {ok: nfs3.READ3resok{Count: 5, Data: []byte("abcde")}, err: true},
		"count and no data": {ok: nfs3.READ3resok{Count: 1 << 31}, untrue: true},
	} {
		t.Run(name, func(t *testing.T) {
			st := play(t, script{nfs3.NFSPROC3_READ: always(&nfs3.READ3res{Resok: tc.ok})}, v3.Options{})
			buf := []byte("....#")
			var post vfs.Attr
			n, eof, err := st.open(t).ReadAt(t.Context(), buf[:4], 10, &post)
			if n != tc.n || eof != tc.eof || (err != nil) != (tc.err || tc.untrue) {
				t.Errorf("%d, %v, %v; want %d, %v", n, eof, err, tc.n, tc.eof)
			}
			if tc.untrue {
				isUntrue(t, err)
			}
			if name == "no progress" && !errors.Is(err, io.ErrNoProgress) {
				t.Errorf("%v is not io.ErrNoProgress", err)
			}
			if err == nil && !bytes.Equal(buf[:n], tc.ok.Data) || buf[4] != '#' {
				t.Errorf("buffer is %q", buf)
			}
			if err == nil && post.Has(vfs.MaskSize) != tc.ok.FileAttributes.AttributesFollow {
				t.Errorf("attributes %+v", post)
			}
		})
	}
}

func TestWriteReplies(t *testing.T) {
	for name, tc := range map[string]struct {
		ok nfs3.WRITE3resok
		n  int
	}{
		"full":            {nfs3.WRITE3resok{Count: 4, Committed: nfs3.FILE_SYNC}, 4},
		"short":           {nfs3.WRITE3resok{Count: 1, Committed: nfs3.DATA_SYNC}, 1},
		"nothing":         {nfs3.WRITE3resok{Committed: nfs3.FILE_SYNC}, 0},
		"more than asked": {nfs3.WRITE3resok{Count: 5, Committed: nfs3.FILE_SYNC}, 0},
		"less stable":     {nfs3.WRITE3resok{Count: 4, Committed: nfs3.UNSTABLE}, 0},
		"no stability":    {nfs3.WRITE3resok{Count: 4, Committed: 7}, 0},
		"negative":        {nfs3.WRITE3resok{Count: 4, Committed: -1}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tc.ok.Verf = nfs3.Writeverf3{1, 2, 3}
			st := play(t, script{nfs3.NFSPROC3_WRITE: always(&nfs3.WRITE3res{Resok: tc.ok})}, v3.Options{})
			var w vfs.Written
			n, err := st.open(t).WriteAt(t.Context(), []byte("abcd"), 0, vfs.DataSync, &w)
			if n != tc.n || (err == nil) != (tc.n > 0) {
				t.Fatalf("%d, %v; want %d", n, err, tc.n)
			}
			if err != nil {
				isUntrue(t, err)
				if !errors.Is(err, vfs.ErrUnknownOutcome) {
					t.Errorf("%v: nobody knows what was written", err)
				}
				return
			}
			if w.Verf != (vfs.Verifier{1, 2, 3}) || w.Committed != vfs.Stability(tc.ok.Committed) {
				t.Errorf("%+v", w)
			}
		})
	}
}

// TestTransferSizes holds requests to the sizes that server and options allow.
func TestTransferSizes(t *testing.T) {
	data := make([]byte, 10000)
	st := play(t, script{
		nfs3.NFSPROC3_FSINFO: always(&nfs3.FSINFO3res{Resok: nfs3.FSINFO3resok{Rtmax: 1 << 30, Wtmax: 3000}}),
		nfs3.NFSPROC3_READ: func(_ int, c *oncrpc.Call) xdr.Appender {
			var args nfs3.READ3args
			if args.DecodeXDR(&c.Args) != nil {
				return nil
			}
			return &nfs3.READ3res{Resok: nfs3.READ3resok{Count: args.Count, Data: data[:args.Count]}}
		},
		nfs3.NFSPROC3_WRITE: func(_ int, c *oncrpc.Call) xdr.Appender {
			var args nfs3.WRITE3args
			if args.DecodeXDR(&c.Args) != nil || int(args.Count) != len(args.Data) {
				return nil
			}
			return &nfs3.WRITE3res{Resok: nfs3.WRITE3resok{Count: args.Count, Committed: nfs3.FILE_SYNC}}
		},
	}, v3.Options{ReadMax: 4000})
	f := st.open(t)
	if n, _, err := f.ReadAt(t.Context(), make([]byte, 10000), 0, nil); n != 4000 || err != nil {
		t.Errorf("read %d, %v", n, err)
	}
	var w vfs.Written
	if n, err := f.WriteAt(t.Context(), data, 0, vfs.Unstable, &w); n != 3000 || err != nil {
		t.Errorf("wrote %d, %v", n, err)
	}
	if n, err := f.WriteAt(t.Context(), data, 1<<64-1, vfs.Unstable, &w); n != 0 || !errors.Is(err, vfs.ErrFBig) {
		t.Errorf("wrote %d, %v", n, err)
	}
	if n := st.called(nfs3.NFSPROC3_FSINFO); n != 1 {
		t.Errorf("FSINFO was called %d times", n)
	}
}

// TestFsinfoRefused goes on with sizes that every server takes, and asks again.
func TestFsinfoRefused(t *testing.T) {
	st := play(t, script{nfs3.NFSPROC3_FSINFO: always(&nfs3.FSINFO3res{Status: nfs3.NFS3ERR_ACCES})}, v3.Options{})
	for range 2 {
		info, err := st.fs.Info(t.Context(), handle(t, "root"), vfs.InfoLimits)
		if err != nil || info.ReadMax != 8192 || info.WriteMax != 8192 {
			t.Errorf("%+v, %v", info, err)
		}
	}
	if n := st.called(nfs3.NFSPROC3_FSINFO); n != 2 {
		t.Errorf("FSINFO was called %d times", n)
	}
}

func TestBadHandles(t *testing.T) {
	ctx := t.Context()
	st := play(t, script{nfs3.NFSPROC3_LOOKUP: always(&nfs3.LOOKUP3res{})}, v3.Options{})
	_, _, _, err := st.fs.Lookup(ctx, handle(t, "dir"), "name")
	isUntrue(t, err)
	for _, h := range []vfs.Handle{{}, handle(t, strings.Repeat("x", 65))} {
		if _, _, _, err := st.fs.Lookup(ctx, h, "name"); !errors.Is(err, vfs.ErrBadHandle) {
			t.Errorf("lookup: %v", err)
		}
		if _, err := st.fs.GetAttr(ctx, h, vfs.MaskV3); !errors.Is(err, vfs.ErrBadHandle) {
			t.Errorf("getattr: %v", err)
		}
		if _, _, err := st.fs.Link(ctx, h, handle(t, "dir"), "x"); !errors.Is(err, vfs.ErrBadHandle) {
			t.Errorf("link: %v", err)
		}
		if _, _, err := st.fs.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead}); !errors.Is(err, vfs.ErrBadHandle) {
			t.Errorf("open: %v", err)
		}
		if _, err := v3.New(st.rpc, h, v3.Options{}); !errors.Is(err, vfs.ErrBadHandle) {
			t.Errorf("new: %v", err)
		}
	}
	if n := st.called(nfs3.NFSPROC3_LOOKUP); n != 1 {
		t.Errorf("%d lookups reached the server", n)
	}
}

func TestReadlinkReplies(t *testing.T) {
	long := nfs3.READLINK3resok{Data: bytes.Repeat([]byte("x"), vfs.MaxPath+1)}
	st := play(t, script{nfs3.NFSPROC3_READLINK: func(n int, _ *oncrpc.Call) xdr.Appender {
		if n == 1 {
			return &nfs3.READLINK3res{Resok: long}
		}
		return &nfs3.READLINK3res{Resok: nfs3.READLINK3resok{Data: []byte("../\xff")}}
	}}, v3.Options{})
	_, _, err := st.fs.Readlink(t.Context(), handle(t, "link"))
	isUntrue(t, err)
	if target, _, err := st.fs.Readlink(t.Context(), handle(t, "link")); target != "../\xff" || err != nil {
		t.Errorf("%q, %v", target, err)
	}
}

// TestAccessAnswers takes out what was not asked for.
func TestAccessAnswers(t *testing.T) {
	st := play(t, script{nfs3.NFSPROC3_ACCESS: always(&nfs3.ACCESS3res{Resok: nfs3.ACCESS3resok{Access: 1<<32 - 1}})}, v3.Options{})
	if got, _, err := st.fs.Access(t.Context(), handle(t, "file"), vfs.AccessRead|vfs.AccessExecute); got != vfs.AccessRead|vfs.AccessExecute || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

// TestGarbage answers every procedure with bytes that are no result.
func TestGarbage(t *testing.T) {
	s := make(script)
	for i := range nfs3.NFS_V3.Procs {
		s[&nfs3.NFS_V3.Procs[i]] = always(raw{0, 0, 0, 0, 0, 0, 0, 9})
	}
	st := play(t, s, v3.Options{})
	ctx, dir, fs := t.Context(), handle(t, "dir"), st.fs
	_, err := fs.GetAttr(ctx, dir, vfs.MaskV3)
	errs := map[string]error{"getattr": err}
	_, errs["setattr"] = fs.SetAttr(ctx, dir, &vfs.SetAttr{}, nil)
	_, _, _, errs["lookup"] = fs.Lookup(ctx, dir, "x")
	_, _, errs["access"] = fs.Access(ctx, dir, 1)
	_, _, errs["readlink"] = fs.Readlink(ctx, dir)
	for typ, name := range map[vfs.Type]string{vfs.TypeReg: "create", vfs.TypeDir: "mkdir", vfs.TypeSymlink: "symlink", vfs.TypeFIFO: "mknod"} {
		_, _, _, errs[name] = fs.Create(ctx, dir, "x", &vfs.CreateHow{Type: typ, Target: "x"})
	}
	_, errs["remove"] = fs.Remove(ctx, dir, "x", false)
	_, errs["rmdir"] = fs.Remove(ctx, dir, "x", true)
	_, _, errs["rename"] = fs.Rename(ctx, dir, "x", dir, "y")
	_, _, errs["link"] = fs.Link(ctx, dir, dir, "x")
	for i, want := range []vfs.InfoMask{vfs.InfoLimits, vfs.InfoNames, vfs.InfoSpace} {
		_, errs["info"+string(rune('0'+i))] = fs.Info(ctx, dir, want)
	}
	for i, want := range []vfs.Mask{0, vfs.MaskV3} {
		for _, err := range fs.ReadDir(ctx, dir, vfs.Pos{}, want, 0) {
			errs["readdir"+string(rune('0'+i))] = err
		}
	}
	if len(errs) != 18 {
		t.Errorf("only %d procedures were tried", len(errs))
	}
	for name, err := range errs {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		changes := strings.Contains("setattr create mkdir symlink mknod remove rmdir rename link", name)
		if errors.Is(err, vfs.ErrUnknownOutcome) != changes {
			t.Errorf("%s: %v: unknown outcome is %v", name, err, !changes)
		}
	}
}

// raw is a result of any bytes.
type raw []byte

func (r raw) AppendXDR(b []byte) ([]byte, error) { return append(b, r...), nil }

// inBubble runs a test in which patience costs no time.
func inBubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// TestUnknownOutcome loses replies, by cutting the connection and by cancelling.
func TestUnknownOutcome(t *testing.T) {
	dir := handle(t, "dir")
	ops := map[string]func(ctx context.Context, st *stage, f vfs.File) error{
		"remove": func(ctx context.Context, st *stage, _ vfs.File) error {
			_, err := st.fs.Remove(ctx, dir, "x", true)
			return err
		},
		"setattr": func(ctx context.Context, st *stage, _ vfs.File) error {
			_, err := st.fs.SetAttr(ctx, dir, &vfs.SetAttr{}, nil)
			return err
		},
		"write": func(ctx context.Context, _ *stage, f vfs.File) error {
			_, err := f.WriteAt(ctx, []byte("x"), 0, vfs.Unstable, new(vfs.Written))
			return err
		},
		"getattr": func(ctx context.Context, st *stage, _ vfs.File) error {
			_, err := st.fs.GetAttr(ctx, dir, vfs.MaskV3)
			return err
		},
	}
	for name, op := range ops {
		for _, how := range []string{"cut", "cancelled"} {
			inBubble(t, name+" "+how, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var st *stage
				lose := func(int, *oncrpc.Call) xdr.Appender {
					if how == "cut" {
						st.cut(t)
					} else {
						cancel()
					}
					return nil
				}
				st = play(t, script{
					nfs3.NFSPROC3_RMDIR: lose, nfs3.NFSPROC3_SETATTR: lose,
					nfs3.NFSPROC3_WRITE: lose, nfs3.NFSPROC3_GETATTR: lose,
				}, v3.Options{})
				err := op(ctx, st, st.open(t))
				if err == nil || errors.Is(err, vfs.ErrUnknownOutcome) != (name != "getattr") {
					t.Errorf("%v", err)
				}
				if errors.Is(err, context.Canceled) != (how == "cancelled") {
					t.Errorf("%v", err)
				}
				if how == "cancelled" {
					if err := op(ctx, st, st.open(t)); !errors.Is(err, context.Canceled) || errors.Is(err, vfs.ErrUnknownOutcome) {
						t.Errorf("with a context that had ended: %v", err)
					}
				}
			})
		}
	}
}
