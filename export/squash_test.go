package export

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/nfsbox/nfsbox/vfs"
)

func id(n uint32) *uint32 { return &n }

// TestIdentity squashes as nfsd_setuser() of Linux does.
func TestIdentity(t *testing.T) {
	groups := []uint32{0, 50, 60}
	for _, x := range []struct {
		what     string
		rule     Rule
		uid, gid uint32
		wantUID  uint32
		wantGID  uint32
		want     []uint32
	}{
		{"none: a user", Rule{}, 1000, 1000, 1000, 1000, groups},
		{"none: root", Rule{}, 0, 0, 0, 0, groups},
		{"none: anonymous", Rule{}, Anonymous, Anonymous, Nobody, Nobody, groups},
		{"none: an anonymous group", Rule{AnonGID: id(9)}, 1000, Anonymous, 1000, 9, groups},
		{"none: anonymous and named", Rule{AnonUID: id(7), AnonGID: id(8)}, Anonymous, Anonymous, 7, 8, groups},
		{"root: a user in group 0", Rule{Squash: SquashRoot}, 1000, 1000, 1000, 1000, []uint32{Nobody, 50, 60}},
		{"root: root", Rule{Squash: SquashRoot}, 0, 0, Nobody, Nobody, []uint32{Nobody, 50, 60}},
		{"root: a user whose group is 0", Rule{Squash: SquashRoot, AnonGID: id(8)}, 1000, 0, 1000, 8, []uint32{8, 50, 60}},
		{"root: root in a group", Rule{Squash: SquashRoot, AnonUID: id(7)}, 0, 5, 7, 5, []uint32{Nobody, 50, 60}},
		{"root: anonymous", Rule{Squash: SquashRoot, AnonUID: id(7)}, Anonymous, Anonymous, 7, Nobody, []uint32{Nobody, 50, 60}},
		{"root: anonymous is root", Rule{Squash: SquashRoot, AnonUID: id(0), AnonGID: id(0)}, 0, 0, 0, 0, groups},
		{"all: a user", Rule{Squash: SquashAll}, 1000, 1000, Nobody, Nobody, nil},
		{"all: root", Rule{Squash: SquashAll, AnonUID: id(7), AnonGID: id(8)}, 0, 0, 7, 8, nil},
		{"all: anonymous is root", Rule{Squash: SquashAll, AnonUID: id(0), AnonGID: id(0)}, 1000, 1000, 0, 0, nil},
	} {
		fs := &probeFS{}
		table := testTable(t, Key{}, Export{Path: "/", FS: fs, Clients: []Rule{{Match: "*"}}})
		x.rule.Match = "*"
		if err := table.Replace(Export{Path: "/", FS: fs, Clients: []Rule{x.rule}}); err != nil {
			t.Fatal(err)
		}
		who := &vfs.Caller{UID: x.uid, GID: x.gid, Groups: groups, Client: "c"}
		if _, _, err := table.For(remote("192.0.2.1:700"), who).Root(t.Context()); err != nil {
			t.Fatal(err)
		}
		is := fs.last
		if is.UID != x.wantUID || is.GID != x.wantGID || !slices.Equal(is.Groups, x.want) || is.Client != "c" {
			t.Errorf("%s: %+v, want %d:%d %v", x.what, is, x.wantUID, x.wantGID, x.want)
		}
		if !slices.Equal(groups, []uint32{0, 50, 60}) || !slices.Equal(who.Groups, groups) {
			t.Fatalf("%s: the caller's groups were changed to %v", x.what, groups)
		}
	}
}

// TestLocalIdentity lets the program itself be any user.
func TestLocalIdentity(t *testing.T) {
	fs := &probeFS{}
	table := testTable(t, Key{}, Export{Path: "/", FS: fs, Clients: []Rule{{Match: "192.0.2.1", Squash: SquashAll}}})
	for _, x := range []struct {
		what string
		view vfs.FS
		want *vfs.Caller
	}{
		{"nil", table.As(nil), nil},
		{"a local user", table.As(&vfs.Caller{UID: 0, GID: 5}), &vfs.Caller{UID: 0, GID: 5}},
		{"a local anonymous", table.As(&vfs.Caller{UID: Anonymous, GID: 5}), &vfs.Caller{UID: Nobody, GID: 5}},
		{"a client by its address", table.As(&vfs.Caller{UID: 3, Client: "192.0.2.1"}), &vfs.Caller{UID: Nobody, GID: Nobody, Client: "192.0.2.1"}},
		{"the file system's own on behalf of a client", table.For(remote("192.0.2.1:1"), &vfs.Caller{UID: 3}).As(nil), nil},
	} {
		fs.last = &vfs.Caller{UID: 4711}
		if _, _, err := x.view.Root(t.Context()); err != nil || !fs.last.Equal(x.want) {
			t.Errorf("%s: %+v, %v; want %+v", x.what, fs.last, err, x.want)
		}
	}
	for what, view := range map[string]vfs.FS{
		"a client of no rule":                    table.As(&vfs.Caller{Client: "192.0.2.2"}),
		"a client without an address":            table.As(&vfs.Caller{Client: "pipe"}),
		"the own identity for a client, refused": table.For(remote("192.0.2.2:1"), nil),
	} {
		if _, _, err := view.Root(t.Context()); !errors.Is(err, vfs.ErrAccess) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestManyGroups takes a user's groups from this host alone. A user that the host does
// not know has none. While the look-up fails, the call is ErrBusy.
func TestManyGroups(t *testing.T) {
	var many []uint32
	for g := range uint32(40) {
		many = append(many, g)
	}
	reports := make(chan error, 16)
	asked := make(chan uint32, 16)
	fs := &probeFS{}
	table, err := New(Options{
		Report: func(err error) { reports <- err },
		Groups: func(_ context.Context, uid uint32) ([]uint32, error) {
			asked <- uid
			switch uid {
			case 1000, 0:
				return many, nil
			case 1001:
				return nil, errBroken
			}
			return nil, nil
		},
	}, Export{Path: "/", FS: fs, Clients: []Rule{{Match: "*", ManyGroups: true, Squash: SquashRoot}}})
	if err != nil {
		t.Fatal(err)
	}
	squashed := slices.Clone(many)
	squashed[0] = Nobody
	for _, x := range []struct {
		uid  uint32
		want []uint32
		err  error
	}{{1000, squashed, nil}, {0, squashed, nil}, {1001, nil, vfs.ErrBusy}, {1002, nil, nil}, {Anonymous, []uint32{5}, nil}} {
		v := table.For(remote("192.0.2.1:700"), &vfs.Caller{UID: x.uid, GID: 7, Groups: []uint32{5}})
		for range 3 {
			if _, _, err := v.Root(t.Context()); !errors.Is(err, x.err) {
				t.Fatalf("uid %d: %v, want %v", x.uid, err, x.err)
			}
			if x.err == nil && !slices.Equal(fs.last.Groups, x.want) || x.err == nil && fs.last.GID != 7 {
				t.Errorf("uid %d: groups %v with %d, want %v with 7", x.uid, fs.last.Groups, fs.last.GID, x.want)
			}
		}
	}
	if n := len(asked); n != 4 {
		t.Errorf("the host was asked %d times, want once for each user", n)
	}
	if err := <-reports; !errors.Is(err, errBroken) || len(reports) != 0 {
		t.Errorf("reported: %v, and %d more", err, len(reports))
	}
	if many[0] != 0 {
		t.Error("the remembered groups were changed")
	}
}

// TestGroupOfNobody checks that the file system gets no id that the kernel refuses.
func TestGroupOfNobody(t *testing.T) {
	var c clients
	groups := []uint32{50, Anonymous}
	is, _, err := c.identity(t.Context(), &rule{Rule: Rule{AnonGID: id(9)}}, &vfs.Caller{UID: 1000, GID: 1000, Groups: groups})
	if err != nil || !slices.Equal(is.Groups, []uint32{50, 9}) || groups[1] != Anonymous {
		t.Errorf("groups are %v, and were %v", is.Groups, groups)
	}
}

// TestUser checks that a program on this host is the user that the kernel says, whatever
// its credential says, with that user's groups on this host.
func TestUser(t *testing.T) {
	fs := &probeFS{}
	table, err := New(Options{Groups: func(_ context.Context, uid uint32) ([]uint32, error) {
		switch uid {
		case 1000:
			return []uint32{100, 27}, nil
		case 1001:
			return nil, errBroken
		}
		return nil, nil
	}}, Export{Path: "/", FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	claim := func(uid, gid uint32) *vfs.Caller {
		return &vfs.Caller{UID: uid, GID: gid, Groups: []uint32{0, 6}, Client: "127.0.0.1"}
	}
	is := func(uid, gid uint32, groups ...uint32) *vfs.Caller {
		return &vfs.Caller{UID: uid, GID: gid, Groups: groups, Client: "127.0.0.1"}
	}
	for _, x := range []struct {
		what  string
		user  *uint32
		says  *vfs.Caller
		trust bool
		want  *vfs.Caller
		err   error
	}{
		{"a user who claims to be root", id(1000), claim(0, 0), false, is(1000, 100, 100, 27), nil},
		{"a user who claims to be another", id(1000), claim(1002, 27), false, is(1000, 100, 100, 27), nil},
		{"a user, honest, in one of his groups", id(1000), claim(1000, 27), false, is(1000, 27, 100, 27), nil},
		{"a user, honest, in a group that is not his", id(1000), claim(1000, 0), false, is(1000, 100, 100, 27), nil},
		{"a user whom this host does not know", id(1002), claim(1002, 0), false, is(1002, Nobody), nil},
		{"a user whose groups are not known yet", id(1001), claim(1001, 0), false, nil, vfs.ErrBusy},
		{"whom the kernel does not know", id(Anonymous), claim(0, 0), false, is(Nobody, Nobody), nil},
		{"who does not say", id(1000), claim(Anonymous, Anonymous), false, is(Nobody, Nobody), nil},
		{"root, for a user", id(0), claim(1001, 5), false, is(1001, 5, 0, 6), nil},
		{"the network", nil, claim(0, 0), false, is(0, 0, 0, 6), nil},
		{"a user who is trusted", id(1000), claim(0, 0), true, is(0, 0, 0, 6), nil},
	} {
		err := table.Replace(Export{Path: "/", FS: fs, Clients: []Rule{{Match: "127.0.0.0/8", TrustLocal: x.trust}}})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = table.From(Origin{Remote: remote("127.0.0.1:700"), User: x.user}, x.says).Root(t.Context())
		if !errors.Is(err, x.err) || err == nil && !fs.last.Equal(x.want) {
			t.Errorf("%s: %+v, %v; want %+v, %v", x.what, fs.last, err, x.want, x.err)
		}
	}
}
