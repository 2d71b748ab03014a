package v3_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/nfsclient/v3"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// TestCallers looks at the credentials that reach the server.
func TestCallers(t *testing.T) {
	var got oncrpc.AuthSys
	st := play(t, script{nfs3.NFSPROC3_GETATTR: func(_ int, c *oncrpc.Call) xdr.Appender {
		if c.Auth.Flavor != oncrpc.AuthSysFlavor || got.Decode(c.Auth.Body) != nil {
			return nil
		}
		return &nfs3.GETATTR3res{}
	}}, v3.Options{Caller: vfs.Caller{UID: 5, GID: 6, Groups: []uint32{7}}, Machine: "here"})
	var many []uint32
	for i := range uint32(20) {
		many = append(many, i)
	}
	for _, tc := range []struct {
		caller *vfs.Caller
		want   oncrpc.AuthSys
	}{
		{nil, oncrpc.AuthSys{UID: 5, GID: 6, GIDs: []uint32{7}}},
		{&vfs.Caller{UID: 1, GID: 2}, oncrpc.AuthSys{UID: 1, GID: 2}},
		{&vfs.Caller{UID: 1, GID: 2, Groups: many}, oncrpc.AuthSys{UID: 1, GID: 2, GIDs: many[:16]}},
	} {
		view := st.fs.As(&vfs.Caller{UID: 99}).As(tc.caller)
		if _, err := view.GetAttr(t.Context(), handle(t, "x"), vfs.MaskV3); err != nil {
			t.Fatal(err)
		}
		if got.UID != tc.want.UID || got.GID != tc.want.GID || !slices.Equal(got.GIDs, tc.want.GIDs) || got.Machine != "here" {
			t.Errorf("%+v: the server saw %+v", tc.caller, got)
		}
		if st.fs.As(tc.caller) != view {
			t.Errorf("%+v: two views", tc.caller)
		}
	}
	for i := range uint32(1000) {
		st.fs.As(&vfs.Caller{UID: i})
	}
	if _, err := v3.New(st.rpc, handle(t, "root"), v3.Options{Machine: fmt.Sprintf("%256d", 1)}); err == nil {
		t.Error("a machine name of 256 bytes was taken")
	}
}

// TestReadOnly sends nothing that changes anything.
func TestReadOnly(t *testing.T) {
	st := play(t, script{}, v3.Options{ReadOnly: true})
	ctx, h := t.Context(), handle(t, "x")
	_, e1 := st.fs.SetAttr(ctx, h, &vfs.SetAttr{}, nil)
	_, _, _, e2 := st.fs.Create(ctx, h, "n", &vfs.CreateHow{Type: vfs.TypeReg})
	_, _, e3 := st.fs.Link(ctx, h, h, "n")
	_, e4 := st.fs.Remove(ctx, h, "n", false)
	_, _, e5 := st.fs.Rename(ctx, h, "n", h, "m")
	_, _, e6 := st.fs.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareWrite})
	_, _, e7 := st.fs.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead, Trunc: true})
	for i, err := range []error{e1, e2, e3, e4, e5, e6, e7} {
		if !errors.Is(err, vfs.ErrROFS) {
			t.Errorf("change %d: %v", i+1, err)
		}
	}
	f, _, err := st.fs.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(ctx, []byte("x"), 0, vfs.Unstable, new(vfs.Written)); !errors.Is(err, vfs.ErrAccess) {
		t.Errorf("write: %v", err)
	}
	if err := f.Close(ctx); err != nil {
		t.Error(err)
	}
	if n := st.rpc.Stats().Calls; n != 0 {
		t.Errorf("%d calls", n)
	}
}

// TestGuard does not ask for a ctime that no object can have.
func TestGuard(t *testing.T) {
	st := play(t, script{nfs3.NFSPROC3_SETATTR: func(_ int, c *oncrpc.Call) xdr.Appender {
		var args nfs3.SETATTR3args
		if args.DecodeXDR(&c.Args) != nil || !args.Guard.Check || args.Guard.ObjCtime != (nfs3.Nfstime3{Seconds: 9, Nseconds: 8}) {
			return &nfs3.SETATTR3res{Status: nfs3.NFS3ERR_NOT_SYNC}
		}
		return &nfs3.SETATTR3res{}
	}}, v3.Options{})
	at, before := time.Unix(9, 8), time.Unix(-1, 0)
	if _, err := st.fs.SetAttr(t.Context(), handle(t, "x"), &vfs.SetAttr{}, &at); err != nil {
		t.Error(err)
	}
	if _, err := st.fs.SetAttr(t.Context(), handle(t, "x"), &vfs.SetAttr{}, &before); !errors.Is(err, vfs.ErrNotSync) {
		t.Error(err)
	}
	if n := st.called(nfs3.NFSPROC3_SETATTR); n != 1 {
		t.Errorf("%d calls", n)
	}
}

// TestRoot keeps ".." of the root to the root.
func TestRoot(t *testing.T) {
	st := play(t, script{
		nfs3.NFSPROC3_GETATTR: always(&nfs3.GETATTR3res{Resok: nfs3.GETATTR3resok{ObjAttributes: nfs3.Fattr3{Type: nfs3.NF3DIR}}}),
		nfs3.NFSPROC3_LOOKUP:  always(&nfs3.LOOKUP3res{Resok: nfs3.LOOKUP3resok{Object: nfs3.NfsFh3{Data: []byte("outside")}}}),
	}, v3.Options{})
	root := handle(t, "root")
	h, attr, _, err := st.fs.Lookup(t.Context(), root, "..")
	if h != root || attr.Type != vfs.TypeDir || err != nil {
		t.Errorf("%v, %+v, %v", h, attr, err)
	}
	if h, _, _, err := st.fs.Lookup(t.Context(), handle(t, "sub"), ".."); h != handle(t, "outside") || err != nil {
		t.Errorf("%v, %v", h, err)
	}
}

// TestOpenCreates is about what Open makes of CREATE.
func TestOpenCreates(t *testing.T) {
	made := &nfs3.CREATE3res{Resok: nfs3.CREATE3resok{Obj: nfs3.PostOpFh3{HandleFollows: true, Handle: nfs3.NfsFh3{Data: []byte("new")}}}}
	exists := &nfs3.CREATE3res{Status: nfs3.NFS3ERR_EXIST}
	denied := &nfs3.CREATE3res{Status: nfs3.NFS3ERR_ACCES}
	found := func(typ nfs3.Ftype3) *nfs3.LOOKUP3res {
		return &nfs3.LOOKUP3res{Resok: nfs3.LOOKUP3resok{
			Object:        nfs3.NfsFh3{Data: []byte("old")},
			ObjAttributes: nfs3.PostOpAttr{AttributesFollow: true, Attributes: nfs3.Fattr3{Type: typ}},
		}}
	}
	missing := &nfs3.LOOKUP3res{Status: nfs3.NFS3ERR_NOENT}
	size := vfs.SetAttr{Valid: vfs.MaskSize, Size: 3}
	for name, tc := range map[string]struct {
		create  *nfs3.CREATE3res
		lookup  *nfs3.LOOKUP3res
		how     vfs.CreateHow
		trunc   bool
		h       string
		created bool
		setattr int
		err     error
	}{
		"new":                     {create: made, h: "new", created: true},
		"new, truncated":          {create: made, trunc: true, h: "new", created: true},
		"new, sized, truncated":   {create: made, how: vfs.CreateHow{Set: size}, trunc: true, h: "new", created: true, setattr: 1},
		"old":                     {create: exists, lookup: found(nfs3.NF3REG), h: "old"},
		"old, sized":              {create: exists, lookup: found(nfs3.NF3REG), how: vfs.CreateHow{Set: size}, h: "old", setattr: 1},
		"old, truncated":          {create: exists, lookup: found(nfs3.NF3REG), trunc: true, h: "old", setattr: 1},
		"old, in a locked dir":    {create: denied, lookup: found(nfs3.NF3REG), h: "old"},
		"nothing in a locked dir": {create: denied, lookup: missing, err: vfs.ErrAccess},
		"a directory":             {create: exists, lookup: found(nfs3.NF3DIR), err: vfs.ErrIsDir},
		"a link":                  {create: exists, lookup: found(nfs3.NF3LNK), err: vfs.ErrExist},
		"there and gone, ever on": {create: exists, lookup: missing, err: vfs.ErrBusy},
		"exclusive":               {create: made, how: vfs.CreateHow{Mode: vfs.CreateExclusive}, h: "new", created: true},
		"exclusive with set":      {create: made, how: vfs.CreateHow{Mode: vfs.CreateExclusive, Set: size}, h: "new", created: true, setattr: 1},
		"exclusive, old":          {create: exists, how: vfs.CreateHow{Mode: vfs.CreateExclusive}, err: vfs.ErrExist},
		"without a handle":        {create: &nfs3.CREATE3res{}, lookup: found(nfs3.NF3REG), h: "old", created: true},
	} {
		t.Run(name, func(t *testing.T) {
			st := play(t, script{
				nfs3.NFSPROC3_CREATE:  always(tc.create),
				nfs3.NFSPROC3_LOOKUP:  always(tc.lookup),
				nfs3.NFSPROC3_SETATTR: always(&nfs3.SETATTR3res{}),
			}, v3.Options{})
			tc.how.Type = vfs.TypeReg
			if tc.how.Mode == vfs.CreateGuarded {
				tc.how.Mode = vfs.CreateUnchecked
			}
			f, o, err := st.fs.Open(t.Context(), vfs.At{Dir: handle(t, "dir"), Name: "x"},
				&vfs.OpenHow{Access: vfs.ShareWrite, Create: &tc.how, Trunc: tc.trunc})
			if !errors.Is(err, tc.err) {
				t.Fatalf("%v, want %v", err, tc.err)
			}
			if n := st.called(nfs3.NFSPROC3_SETATTR); n != tc.setattr {
				t.Errorf("%d SETATTRs, want %d", n, tc.setattr)
			}
			if tc.err != nil {
				return
			}
			if string(o.H.Bytes()) != tc.h || o.Created != tc.created {
				t.Errorf("%s, created %v", o.H.Bytes(), o.Created)
			}
			if err := f.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if err := f.Close(t.Context()); !errors.Is(err, vfs.ErrInval) {
				t.Errorf("second close: %v", err)
			}
		})
	}
}
