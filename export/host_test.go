package export

import (
	"cmp"
	"context"
	"errors"
	"os"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// host is a file system that opens files for other processes, after open was asked.
// It notes what it is asked for, and as whom.
type host struct {
	*memfs.FS
	*hostCalls
	as *vfs.Caller
}

type hostCalls struct {
	open  func(*vfs.HostOpen) error
	asked []vfs.HostOpen
	as    []vfs.Caller
	files []*os.File
}

func newHost(t *testing.T) *host {
	h := &host{FS: memory(), hostCalls: &hostCalls{open: func(*vfs.HostOpen) error { return nil }}}
	t.Cleanup(func() {
		for _, f := range h.files {
			if err := f.Close(); !errors.Is(err, os.ErrClosed) {
				t.Errorf("a file was left open: %v", err)
			}
		}
	})
	return h
}

func (h *host) As(c *vfs.Caller) vfs.FS { return &host{FS: h.FS, hostCalls: h.hostCalls, as: c} }

func (h *host) OpenHost(_ context.Context, _ vfs.Handle, how *vfs.HostOpen) (*os.File, vfs.Attr, error) {
	h.asked = append(h.asked, *how)
	if h.as != nil {
		h.hostCalls.as = append(h.hostCalls.as, *h.as)
	}
	if err := h.open(how); err != nil {
		return nil, vfs.Attr{}, err
	}
	f, err := os.Open(os.DevNull)
	if err == nil {
		h.files = append(h.files, f)
	}
	return f, vfs.Attr{}, err
}

func person(id uint32, groups ...uint32) vfs.Caller {
	return vfs.Caller{UID: id, GID: id, Groups: groups}
}

// TestOpenHost checks which processes get a file, and whether sealed.
func TestOpenHost(t *testing.T) {
	const r, w, rw = vfs.ShareRead, vfs.ShareWrite, vfs.ShareRead | vfs.ShareWrite
	ro, root, all := Rule{ReadOnly: true}, Rule{Squash: SquashRoot}, Rule{Squash: SquashAll}
	seven, zero := uint32(7), uint32(0)
	asSeven := Rule{Squash: SquashAll, AnonUID: &seven, AnonGID: &seven}
	asRoot := Rule{Squash: SquashAll, AnonUID: &zero, AnonGID: &zero}
	many := Rule{ManyGroups: true}
	const sealed, open = "sealed", "open"
	for _, x := range []struct {
		what         string
		rule         Rule
		caller, peer vfs.Caller
		access       vfs.Share
		got          string // where files can be sealed: sealed, open or nothing
		unsealed     string // where they cannot
		err          error  // if not ErrNotSupp, of both
	}{
		{"a user, to read", Rule{}, person(1), person(1), r, sealed, open, nil},
		{"a user, to write", Rule{}, person(1), person(1), w, open, open, nil},
		{"a user, for both", Rule{}, person(1), person(1), rw, open, open, nil},
		{"root for itself", Rule{}, person(0), person(0), rw, open, open, nil},
		{"root for another", Rule{}, person(1), person(0), rw, open, open, nil},
		{"another, to read", Rule{}, person(1), person(2), r, sealed, "", nil},
		{"another, to write", Rule{}, person(1), person(2), w, "", "", nil},
		{"a user as root, to write", Rule{}, person(0), person(2), w, "", "", nil},
		{"a squashed root, to read", root, person(0), person(0), r, sealed, "", nil},
		{"a squashed root, to write", root, person(0), person(0), w, "", "", nil},
		{"a squashed root for another, to write", root, person(1), person(0), w, "", "", nil},
		{"a user where root is squashed", root, person(1), person(1), rw, open, open, nil},
		{"one in root's group, of which the rule knows nothing", root, person(1), person(1, 3, 0), rw, "", "", nil},
		{"one in root's group", Rule{}, person(1), person(1, 3, 0), rw, open, open, nil},
		{"a user among the squashed, to read", all, person(1), person(1), r, sealed, "", nil},
		{"a user among the squashed, to write", all, person(1), person(1), w, "", "", nil},
		{"root among the squashed", all, person(0), person(0), w, "", "", nil},
		{"whom all are squashed to", asSeven, person(1), person(7), rw, open, open, nil},
		{"whom all are squashed to, with a group", asSeven, person(1), person(7, 8), rw, "", "", nil},
		{"all squashed to root, a user", asRoot, person(1), person(1), w, "", "", nil},
		{"all squashed to root, root", asRoot, person(1), person(0), w, open, open, nil},
		{"looked up groups, and no others", many, person(1), person(1, 30), w, open, open, nil},
		{"a group beside those looked up", many, person(1), person(1, 40), w, "", "", nil},
		{"read-only, to read", ro, person(1), person(1), r, sealed, "", nil},
		{"read-only, root", ro, person(0), person(0), r, sealed, "", nil},
		{"read-only, to write", ro, person(1), person(1), w, "", "", vfs.ErrROFS},
		{"read-only, for both", ro, person(0), person(0), rw, "", "", vfs.ErrROFS},
		{"never", Rule{NoHostFiles: true}, person(1), person(1), r, "", "", nil},
		{"never, root", Rule{NoHostFiles: true}, person(0), person(0), rw, "", "", nil},
		{"for nothing", Rule{}, person(1), person(1), 0, "", "", vfs.ErrInval},
		{"for what there is not", Rule{}, person(1), person(1), 8, "", "", vfs.ErrInval},
	} {
		x.rule.Match = "*"
		for _, sealable := range []bool{true, false} {
			want := x.got
			fs := newHost(t)
			if !sealable {
				want = x.unsealed
				fs.open = func(how *vfs.HostOpen) error {
					if how.Sealed {
						return vfs.ErrNotSupp
					}
					return nil
				}
			}
			table, h := hostTable(t, fs, Export{Path: "/", FS: fs, Clients: []Rule{x.rule}})
			f, _, err := table.For(remote("192.0.2.7:700"), &x.caller).OpenHost(t.Context(), h,
				&vfs.HostOpen{Access: x.access, Peer: x.peer})
			got := ""
			if err == nil {
				got = open
				if fs.asked[len(fs.asked)-1].Sealed {
					got = sealed
				}
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			} else if !errors.Is(err, cmp.Or[error](x.err, vfs.ErrNotSupp)) {
				t.Errorf("%s, sealable %t: %v", x.what, sealable, err)
			}
			if got != want {
				t.Errorf("%s, sealable %t: %q, %v, want %q", x.what, sealable, got, err, want)
			}
		}
	}
}

// hostTable exports the file system, and returns the handle of a file in it.
func hostTable(t *testing.T, fs vfs.FS, exports ...Export) (*Table, vfs.Handle) {
	t.Helper()
	table, err := New(Options{Groups: func(context.Context, uint32) ([]uint32, error) {
		return []uint32{1, 30}, nil
	}}, Export{Path: "/", FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	_, h := put(t, table.As(nil), "f")
	if err := table.Replace(exports...); err != nil {
		t.Fatal(err)
	}
	return table, h
}

// TestOpenHostBelow checks that the file system is asked as the squashed caller, that
// its errors are passed on, and that only ErrNotSupp for a seal has it asked again.
func TestOpenHostBelow(t *testing.T) {
	fs := newHost(t)
	table, h := hostTable(t, fs, Export{Path: "/", FS: fs, Clients: []Rule{{Match: "*", Squash: SquashRoot}}})
	peer := person(1)
	v := table.For(remote("192.0.2.7:700"), &vfs.Caller{UID: 0, GID: 5})
	for _, want := range []error{vfs.ErrAccess, vfs.ErrStale, vfs.ErrBusy} {
		fs.open = func(*vfs.HostOpen) error { return want }
		fs.asked = nil
		_, _, err := v.OpenHost(t.Context(), h, &vfs.HostOpen{Access: vfs.ShareRead, Peer: peer})
		if !errors.Is(err, want) || len(fs.asked) != 1 {
			t.Errorf("%v after %d tries, want %v after one", err, len(fs.asked), want)
		}
	}
	if c := fs.hostCalls.as[0]; c.UID != Nobody || c.GID != 5 {
		t.Errorf("asked as %+v", c)
	}
	// What was to be sealed stays sealed, and a trusted process gets what it wants.
	fs.open = func(how *vfs.HostOpen) error {
		if how.Sealed {
			return vfs.ErrNotSupp
		}
		return nil
	}
	for _, x := range []struct {
		how  vfs.HostOpen
		want error
	}{
		{vfs.HostOpen{Access: vfs.ShareRead, Sealed: true, Trusted: true, Peer: peer}, vfs.ErrNotSupp},
		{vfs.HostOpen{Access: vfs.ShareWrite, Sealed: true, Trusted: true, Peer: peer}, vfs.ErrInval},
		{vfs.HostOpen{Access: vfs.ShareRead, Trusted: true, Peer: peer}, nil},
		{vfs.HostOpen{Access: vfs.ShareWrite, Trusted: true, Peer: peer}, nil},
	} {
		f, _, err := v.OpenHost(t.Context(), h, &x.how)
		if !errors.Is(err, x.want) {
			t.Errorf("%+v: %v, want %v", x.how, err, x.want)
		}
		if err == nil {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	for _, x := range []struct {
		what string
		e    Export
		want error
	}{
		{"of a file system in memory", Export{Path: "/", FS: memory()}, vfs.ErrNoDev},
		{"of an export that is remote", Export{Path: "/", FS: fs, NoHostFiles: true}, vfs.ErrNotSupp},
		{"of what is for others", Export{Path: "/", FS: fs, Clients: []Rule{{Match: "10.0.0.1"}}}, vfs.ErrAccess},
		{"of what is read-only and cannot be sealed", Export{Path: "/", FS: fs, ReadOnly: true}, vfs.ErrNotSupp},
	} {
		if err := table.Replace(x.e); err != nil {
			t.Fatal(err)
		}
		how := vfs.HostOpen{Access: vfs.ShareRead, Trusted: true, Peer: peer}
		if _, _, err := v.OpenHost(t.Context(), h, &how); !errors.Is(err, x.want) {
			t.Errorf("%s: %v, want %v", x.what, err, x.want)
		}
	}
	_, _, err := v.OpenHost(t.Context(), vfs.Handle{}, &vfs.HostOpen{Access: vfs.ShareRead})
	if !errors.Is(err, vfs.ErrBadHandle) {
		t.Errorf("of no handle: %v", err)
	}
}

// TestOpenHostReplaced replaces the exports while a file is opened: what the old exports
// opened is not handed out.
func TestOpenHostReplaced(t *testing.T) {
	fs := newHost(t)
	table, h := hostTable(t, fs, Export{Path: "/", FS: fs})
	v := table.For(remote("192.0.2.7:700"), nil)
	how := vfs.HostOpen{Access: vfs.ShareWrite}
	fs.open = func(*vfs.HostOpen) error { return table.Replace(Export{Path: "/", FS: fs, ReadOnly: true}) }
	if _, _, err := v.OpenHost(t.Context(), h, &how); !errors.Is(err, vfs.ErrROFS) {
		t.Errorf("%v, want read-only", err)
	}
	fs.open = func(*vfs.HostOpen) error { return table.Replace(Export{Path: "/", FS: fs}) }
	how.Access = vfs.ShareRead
	if _, _, err := v.OpenHost(t.Context(), h, &how); !errors.Is(err, vfs.ErrBusy) {
		t.Errorf("among reloads without end: %v", err)
	}
	if len(fs.files) != 1+maxReloads {
		t.Errorf("%d files were opened", len(fs.files))
	}
	if table.users[fs].busy() {
		t.Error("the file system is still in use")
	}
}
