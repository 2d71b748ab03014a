package acl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"testing"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	client "github.com/nfsbox/nfsbox/internal/client/nfsclient/v3"
	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/nfsserver/internal/peer"
	"github.com/nfsbox/nfsbox/nfsserver/internal/v3"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfsacl3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
	"github.com/nfsbox/nfsbox/xdr"
)

// rig is a server of NFS and NFSACL on loopback, and a raw client of it.
type rig struct {
	t    *testing.T
	rpc  *oncrpc.Client
	auth oncrpc.Auth
	root vfs.Handle
	acl  *Service
}

// serve exports fs as "/" until the test ends.
func serve(t *testing.T, fs vfs.FS) *rig {
	t.Helper()
	table, err := export.NewTable(export.Key{1}, export.Export{Path: "/", FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	var buffers bufpool.Pool
	log := slog.New(slog.DiscardHandler)
	r := &rig{t: t, acl: New(log)}
	srv, err := oncrpc.NewServer([]oncrpc.Service{v3.New(v3.Options{Log: log, Buffers: &buffers}).RPC(), r.acl.RPC()}, oncrpc.ServerOptions{
		MaxRecord: v3.MaxTransfer + 1<<16,
		NewConn:   func(remote, _ net.Addr) (any, error) { return peer.NewConn(table, remote), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, oncrpc.ErrServerClosed) {
			t.Errorf("Serve returned %v", err)
		}
	})
	r.rpc = oncrpc.NewClient(oncrpc.ClientOptions{Dial: func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", l.Addr().String())
	}})
	t.Cleanup(func() {
		if err := r.rpc.Close(); err != nil {
			t.Error(err)
		}
	})
	r.as(0)
	if r.root, _, err = table.As(&vfs.Caller{}).Root(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

// as makes the calls that follow those of another user.
func (r *rig) as(uid uint32) {
	r.t.Helper()
	var err error
	if r.auth, err = (&oncrpc.AuthSys{Machine: "test", UID: uid, GID: uid}).Auth(); err != nil {
		r.t.Fatal(err)
	}
}

// fs is the file system at the far end.
func (r *rig) fs() *client.FS {
	r.t.Helper()
	fs, err := client.New(r.rpc, r.root, client.Options{Machine: "test"})
	if err != nil {
		r.t.Fatal(err)
	}
	return fs
}

func (r *rig) file(mode uint32) vfs.Handle {
	r.t.Helper()
	h, _, _, err := r.fs().Create(r.t.Context(), r.root, fmt.Sprintf("file%d", rand.Uint64()),
		&vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: mode}})
	if err != nil {
		r.t.Fatal(err)
	}
	return h
}

func (r *rig) dir() vfs.Handle {
	r.t.Helper()
	h, _, _, err := r.fs().Create(r.t.Context(), r.root, fmt.Sprintf("dir%d", rand.Uint64()),
		&vfs.CreateHow{Type: vfs.TypeDir, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o755}})
	if err != nil {
		r.t.Fatal(err)
	}
	return h
}

func (r *rig) call(p *xdr.Proc, args xdr.Appender, res xdr.Unmarshaler) {
	r.t.Helper()
	reply, err := r.rpc.Call(r.t.Context(), p, r.auth, args, res)
	if err != nil {
		r.t.Fatalf("%v: %v", p, err)
	}
	r.t.Cleanup(reply.Release)
}

func (r *rig) get(h vfs.Handle, mask uint32) *nfsacl3.GETACL3res {
	r.t.Helper()
	var res nfsacl3.GETACL3res
	r.call(nfsacl3.ACLPROC3_GETACL, &nfsacl3.GETACL3args{Fh: nfsacl3.NfsFh3{Data: h.Bytes()}, Mask: mask}, &res)
	return &res
}

func (r *rig) set(h vfs.Handle, w nfsacl3.Secattr) *nfsacl3.SETACL3res {
	r.t.Helper()
	var res nfsacl3.SETACL3res
	r.call(nfsacl3.ACLPROC3_SETACL, &nfsacl3.SETACL3args{Fh: nfsacl3.NfsFh3{Data: h.Bytes()}, Acl: w}, &res)
	return &res
}

// TestSuite runs the suite's lists through our own client: on the fake, and on a
// directory of this host.
func TestSuite(t *testing.T) {
	for name, open := range map[string]func(*testing.T) (fs vfs.FS, callers bool){
		"memory": func(*testing.T) (vfs.FS, bool) { return memfs.New(memfs.Options{}), true },
		"disk": func(t *testing.T) (vfs.FS, bool) {
			fs, err := localfs.New(t.TempDir(), localfs.Options{Handles: localfs.HandlesMap, Volatile: true})
			if errors.Is(err, vfs.ErrNotSupp) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := fs.Close(); err != nil {
					t.Error(err)
				}
			})
			return fs, !fs.Squashed()
		},
	} {
		t.Run(name, func(t *testing.T) {
			fs, callers := open(t)
			vfstest.Run(t, vfstest.Config{
				Groups:  []string{"acl"},
				Callers: callers,
				New:     func(t *testing.T) vfs.FS { return serve(t, fs).fs() },
			})
		})
	}
}

const both = nfsacl3.NA_ACL | nfsacl3.NA_DFACL

func ent(typ int32, id, perm uint32) nfsacl3.Aclent {
	return nfsacl3.Aclent{Type: typ, Id: id, Perm: perm}
}

// plain is the list of a mode as clients send it: with a mask.
func plain(flag int32, user, group, other uint32) []nfsacl3.Aclent {
	return []nfsacl3.Aclent{
		ent(nfsacl3.NA_USER_OBJ|flag, 0, user), ent(nfsacl3.NA_GROUP_OBJ|flag, 0, group),
		ent(nfsacl3.NA_CLASS_OBJ|flag, 0, group), ent(nfsacl3.NA_OTHER_OBJ|flag, 0, other),
	}
}

func TestGet(t *testing.T) {
	r := serve(t, memfs.New(memfs.Options{}))
	h := r.dir()
	list := append(plain(0, 7, 5, 1), ent(nfsacl3.NA_USER, 42, 6), ent(nfsacl3.NA_GROUP, 41, 2))
	dflt := plain(nfsacl3.NA_ACL_DEFAULT, 7, 0, 0)
	if res := r.set(h, nfsacl3.Secattr{Mask: both, Aclcnt: 6, Aclent: list, Dfaclcnt: 4, Dfaclent: dflt}); res.Status != nfsacl3.NFS3_OK ||
		!res.Resok.Attr.AttributesFollow || res.Resok.Attr.Attributes.Mode != 0o751 || res.Resok.Attr.Attributes.Type != nfsacl3.NF3DIR {
		t.Fatalf("%+v", res)
	}
	want := []nfsacl3.Aclent{list[0], list[4], list[1], list[5], list[2], list[3]}
	for _, tc := range []struct {
		mask         uint32
		count, dcnt  int32
		access, dflt []nfsacl3.Aclent
	}{
		{both, 6, 4, want, dflt},
		{nfsacl3.NA_ACL, 6, 0, want, nil},
		{nfsacl3.NA_DFACL, 0, 4, nil, dflt},
		{nfsacl3.NA_ACLCNT, 6, 0, nil, nil},
		{nfsacl3.NA_DFACLCNT | nfsacl3.NA_ACL, 6, 4, want, nil},
		{allMasks, 6, 4, want, dflt},
		{0, 0, 0, nil, nil},
	} {
		res := r.get(h, tc.mask)
		acl := &res.Resok.Acl
		if res.Status != nfsacl3.NFS3_OK || !res.Resok.Attr.AttributesFollow || acl.Mask != tc.mask || acl.Aclcnt != tc.count || acl.Dfaclcnt != tc.dcnt ||
			!slices.Equal(acl.Aclent, tc.access) || !slices.Equal(acl.Dfaclent, tc.dflt) {
			t.Errorf("mask %#x: %+v", tc.mask, res)
		}
	}
}

// TestPlain reads and sets the list of a file that has a mode and nothing else:
// it must not get a list by that.
func TestPlain(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	r := serve(t, fs)
	h := r.file(0o640)
	res := r.get(h, both)
	if !slices.Equal(res.Resok.Acl.Aclent, plain(0, 6, 4, 0)) || res.Resok.Acl.Aclcnt != 4 || res.Resok.Acl.Dfaclcnt != 0 {
		t.Errorf("%+v", res.Resok.Acl)
	}
	if got := r.set(h, nfsacl3.Secattr{Mask: both, Aclcnt: 4, Aclent: plain(0, 7, 5, 5)}); got.Status != nfsacl3.NFS3_OK {
		t.Fatalf("%+v", got)
	}
	// A mask that took part would now hold the group's rights back.
	if _, err := r.fs().SetAttr(t.Context(), h, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o770}, nil); err != nil {
		t.Fatal(err)
	}
	if got := r.get(h, nfsacl3.NA_ACL).Resok.Acl.Aclent; !slices.Equal(got, plain(0, 7, 7, 0)) {
		t.Errorf("%+v", got)
	}
}

// TestOneList sets one list and leaves the other as it is.
func TestOneList(t *testing.T) {
	r := serve(t, memfs.New(memfs.Options{}))
	h := r.dir()
	dflt := plain(nfsacl3.NA_ACL_DEFAULT, 7, 0, 0)
	for _, w := range []nfsacl3.Secattr{
		{Mask: nfsacl3.NA_DFACL, Dfaclcnt: 4, Dfaclent: dflt, Aclcnt: 99},
		{Mask: nfsacl3.NA_ACL, Aclcnt: 4, Aclent: plain(0, 7, 1, 1)},
		{Mask: nfsacl3.NA_ACLCNT, Aclcnt: 1},
		{},
	} {
		if res := r.set(h, w); res.Status != nfsacl3.NFS3_OK {
			t.Fatalf("mask %#x: %v", w.Mask, res.Status)
		}
	}
	acl := r.get(h, both).Resok.Acl
	if !slices.Equal(acl.Aclent, plain(0, 7, 1, 1)) || !slices.Equal(acl.Dfaclent, dflt) {
		t.Errorf("%+v", acl)
	}
	if res := r.set(h, nfsacl3.Secattr{Mask: nfsacl3.NA_DFACL}); res.Status != nfsacl3.NFS3_OK {
		t.Fatal(res.Status)
	}
	if acl := r.get(h, both).Resok.Acl; acl.Dfaclcnt != 0 || acl.Aclcnt != 4 {
		t.Errorf("%+v", acl)
	}
}

// TestHostile sends lists that are none. What was there stays.
func TestHostile(t *testing.T) {
	r := serve(t, memfs.New(memfs.Options{}))
	h := r.dir()
	good := plain(0, 7, 5, 0)
	flagged := plain(nfsacl3.NA_ACL_DEFAULT, 7, 5, 0)
	before := r.get(h, both).Resok.Acl
	with := func(e ...nfsacl3.Aclent) []nfsacl3.Aclent { return append(slices.Clone(good), e...) }
	for name, w := range map[string]nfsacl3.Secattr{
		"count too small":       {Mask: both, Aclcnt: 3, Aclent: good},
		"count too large":       {Mask: both, Aclcnt: 5, Aclent: good},
		"count negative":        {Mask: both, Aclcnt: -4, Aclent: good},
		"count of nothing":      {Mask: both, Aclcnt: 1024},
		"default count":         {Mask: both, Aclcnt: 4, Aclent: good, Dfaclcnt: 3, Dfaclent: flagged},
		"empty":                 {Mask: both},
		"unknown mask":          {Mask: both | 0x10, Aclcnt: 4, Aclent: good},
		"all masks":             {Mask: ^uint32(0), Aclcnt: 4, Aclent: good},
		"default among access":  {Mask: both, Aclcnt: 4, Aclent: flagged},
		"access among default":  {Mask: both, Aclcnt: 4, Aclent: good, Dfaclcnt: 4, Dfaclent: good},
		"owner twice":           {Mask: both, Aclcnt: 5, Aclent: with(ent(nfsacl3.NA_USER_OBJ, 0, 1))},
		"user twice":            {Mask: both, Aclcnt: 6, Aclent: with(ent(nfsacl3.NA_USER, 7, 1), ent(nfsacl3.NA_USER, 7, 2))},
		"no owner":              {Mask: both, Aclcnt: 3, Aclent: good[1:]},
		"unknown tag":           {Mask: both, Aclcnt: 5, Aclent: with(ent(0x40, 7, 1))},
		"tag of 8 bits and one": {Mask: both, Aclcnt: 5, Aclent: with(ent(0x102, 7, 1))},
		"negative tag":          {Mask: both, Aclcnt: 5, Aclent: with(ent(-1, 7, 1))},
		"rights":                {Mask: both, Aclcnt: 5, Aclent: with(ent(nfsacl3.NA_USER, 7, 8))},
		"1024 of one user":      {Mask: both, Aclcnt: 1024, Aclent: make([]nfsacl3.Aclent, 1024)},
	} {
		res := r.set(h, w)
		if res.Status != nfsacl3.NFS3ERR_INVAL || !res.Resfail.Attr.AttributesFollow {
			t.Errorf("%s: %v, attributes: %t", name, res.Status, res.Resfail.Attr.AttributesFollow)
		}
		if acl := r.get(h, both).Resok.Acl; !slices.Equal(acl.Aclent, before.Aclent) || acl.Dfaclcnt != 0 {
			t.Fatalf("%s has changed the lists: %+v", name, acl)
		}
	}
	if res := r.get(h, 0x10); res.Status != nfsacl3.NFS3ERR_INVAL {
		t.Errorf("an unknown mask in GETACL: %v", res.Status)
	}
	// Any order is taken.
	turned := slices.Clone(with(ent(nfsacl3.NA_GROUP, 7, 4), ent(nfsacl3.NA_USER, 9, 4), ent(nfsacl3.NA_USER, 8, 4)))
	slices.Reverse(turned)
	if res := r.set(h, nfsacl3.Secattr{Mask: both, Aclcnt: int32(len(turned)), Aclent: turned}); res.Status != nfsacl3.NFS3_OK {
		t.Errorf("a list in reverse: %v", res.Status)
	}
}

// TestTooMany sends records that hold more entries than the protocol has, or say
// so. They are no arguments.
func TestTooMany(t *testing.T) {
	r := serve(t, memfs.New(memfs.Options{}))
	h := r.dir()
	for name, length := range map[string]uint32{"one more": nfsacl3.NFS_ACL_MAX_ENTRIES + 1, "beyond the record": 900, "huge": 1<<32 - 1} {
		args := xdr.Appender(raw{h: h, length: length})
		_, err := r.rpc.Call(t.Context(), nfsacl3.ACLPROC3_SETACL, r.auth, args, &nfsacl3.SETACL3res{})
		if a, ok := errors.AsType[*oncrpc.AcceptError](err); !ok || a.Stat != oncrpc.GarbageArgs {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// raw is a SETACL whose list says that it has length entries, and has none.
type raw struct {
	h      vfs.Handle
	length uint32
}

func (a raw) AppendXDR(b []byte) ([]byte, error) {
	b, err := (&nfsacl3.NfsFh3{Data: a.h.Bytes()}).AppendXDR(b)
	for _, n := range []uint32{nfsacl3.NA_ACL, a.length, a.length, 0, 0} {
		b = append(b, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
	return b, err
}

func TestStatuses(t *testing.T) {
	r := serve(t, memfs.New(memfs.Options{}))
	h := r.file(0o600)
	gone := r.file(0o600)
	for _, name := range names(t, r) {
		if x, _, _, err := r.fs().Lookup(t.Context(), r.root, name); err == nil && x == gone {
			if _, err := r.fs().Remove(t.Context(), r.root, name, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	forged, _ := vfs.MakeHandle(append(slices.Clone(h.Bytes()[:h.Len()-1]), h.Bytes()[h.Len()-1]^1))
	for name, tc := range map[string]struct {
		h    []byte
		want nfsacl3.Nfsstat3
	}{
		"stale": {gone.Bytes(), nfsacl3.NFS3ERR_STALE}, "forged": {forged.Bytes(), nfsacl3.NFS3ERR_STALE},
		"empty": {nil, nfsacl3.NFS3ERR_BADHANDLE}, "garbage": {[]byte("garbage"), nfsacl3.NFS3ERR_BADHANDLE},
	} {
		var res nfsacl3.GETACL3res
		r.call(nfsacl3.ACLPROC3_GETACL, &nfsacl3.GETACL3args{Fh: nfsacl3.NfsFh3{Data: tc.h}, Mask: both}, &res)
		if res.Status != tc.want || res.Resfail.Attr.AttributesFollow {
			t.Errorf("%s: %+v, want %v", name, res, tc.want)
		}
	}
	r.as(1000)
	if res := r.set(h, nfsacl3.Secattr{Mask: both, Aclcnt: 4, Aclent: plain(0, 7, 7, 7)}); res.Status != nfsacl3.NFS3ERR_PERM && res.Status != nfsacl3.NFS3ERR_ACCES {
		t.Errorf("a stranger: %v", res.Status)
	}
	if res := r.get(h, both); res.Status != nfsacl3.NFS3_OK {
		t.Errorf("a stranger who reads: %v", res.Status)
	}
}

func names(t *testing.T, r *rig) (all []string) {
	t.Helper()
	for e, err := range r.fs().ReadDir(t.Context(), r.root, vfs.Pos{}, 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(e.Name))
	}
	return all
}

// without is a file system without the power.
type without struct{ vfs.FS }

func (f without) As(c *vfs.Caller) vfs.FS { return without{f.FS.As(c)} }

func TestNoPower(t *testing.T) {
	r := serve(t, without{memfs.New(memfs.Options{})})
	if res := r.get(r.root, both); res.Status != nfsacl3.NFS3ERR_NOTSUPP || !res.Resfail.Attr.AttributesFollow {
		t.Errorf("GETACL: %+v", res)
	}
	if res := r.set(r.root, nfsacl3.Secattr{Mask: both, Aclcnt: 4, Aclent: plain(0, 7, 7, 7)}); res.Status != nfsacl3.NFS3ERR_NOTSUPP {
		t.Errorf("SETACL: %+v", res)
	}
}

func TestNull(t *testing.T) {
	r := serve(t, memfs.New(memfs.Options{}))
	r.auth = oncrpc.Auth{}
	r.call(nfsacl3.ACLPROC3_NULL, xdr.Void{}, xdr.Void{})
}

// FuzzSecattr sends any lists through the check, and what passes back again.
func FuzzSecattr(f *testing.F) {
	good := nfsacl3.Secattr{Mask: both, Aclcnt: 4, Aclent: plain(0, 7, 5, 1), Dfaclcnt: 4, Dfaclent: plain(nfsacl3.NA_ACL_DEFAULT, 7, 0, 0)}
	b, err := good.AppendXDR(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var w nfsacl3.Secattr
		d := xdr.NewDecoder(b)
		if w.DecodeXDR(&d) != nil {
			return
		}
		acl, err := fromWire(&w)
		if err != nil {
			if !errors.Is(err, vfs.ErrInval) {
				t.Fatal(err)
			}
			return
		}
		fs := memfs.New(memfs.Options{})
		root, a, err := fs.Root(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if fs.SetACL(t.Context(), root, acl) != nil {
			return
		}
		if acl, err = fs.ACL(t.Context(), root); err != nil {
			t.Fatal(err)
		}
		var sent nfsacl3.Secattr
		toWire(&sent, both, &acl, &a)
		if _, err := sent.AppendXDR(nil); err != nil {
			t.Errorf("what was taken cannot be sent: %v", err)
		}
		back, err := fromWire(&sent)
		if err != nil || fs.SetACL(t.Context(), root, back) != nil {
			t.Errorf("what was sent is not taken: %+v, %v", sent, err)
		}
	})
}
