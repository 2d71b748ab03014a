package idmap_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/idmap"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

// parse reads rules that are good.
func parse(t testing.TB, users, groups []string) *idmap.Map {
	t.Helper()
	m, err := idmap.Parse(users, groups)
	if err != nil {
		t.Fatal(err)
	}
	return &m
}

// TestSuite: but for owners, the wrapper is the file system below it. The rules are for ids that
// the suite does not use.
func TestSuite(t *testing.T) {
	rules := []string{"4000000000-4000000009:5"}
	over := func(_ *testing.T, f vfs.FS) vfs.FS { return parse(t, rules, rules).Of(f) }
	vfstest.Run(t, vfstest.Config{New: func(t *testing.T) vfs.FS { return over(t, memfs.New(memfs.Options{})) }, Callers: true})
	vfstest.RunPowers(t, vfstest.PowersConfig{New: over})
}

// TestRefused: rules that make no sense are errors that say which.
func TestRefused(t *testing.T) {
	many := make([]string, idmap.MaxRules+1)
	for i := range many {
		many[i] = fmt.Sprintf("%d:1", i)
	}
	for _, x := range []struct {
		rules []string
		want  string
	}{
		{[]string{"1000"}, `"1000" is not FROM:TO`},
		{[]string{"1:2:3"}, `"2:3" is none`},
		{[]string{"a:1"}, `"a" is none`},
		{[]string{":1"}, `"" is none`},
		{[]string{"1:"}, `"" is none`},
		{[]string{"1-:2"}, `"" is none`},
		{[]string{"-1:2"}, `"" is none`},
		{[]string{"1:-2"}, `"-2" is none`},
		{[]string{"+1:2"}, `"+1" is none`},
		{[]string{"4294967295:1"}, `"4294967295" is none`},
		{[]string{"1:4294967295"}, `"4294967295" is none`},
		{[]string{"99999999999999999999:1"}, "is none"},
		{[]string{"5-4:1"}, "ends before it begins"},
		{[]string{"0-1:4294967294"}, "above 4294967294"},
		{[]string{"5:1", "5:2"}, "two rules are for the id 5"},
		{[]string{"10-20:100", "1-10:500"}, "two rules are for the id 10"},
		{[]string{"10-20:100", "0-4294967294:0"}, "two rules are for the id 10"},
		{many, "1025 rules are too many"},
	} {
		for i, lists := range [][2][]string{{x.rules, nil}, {nil, x.rules}} {
			_, err := idmap.Parse(lists[0], lists[1])
			if err == nil || !strings.Contains(err.Error(), x.want) || !strings.HasPrefix(err.Error(), [...]string{"users: ", "groups: "}[i]) {
				t.Errorf("%.40v: %v; want %q", lists, err, x.want)
			}
		}
	}
	if _, err := idmap.Parse(many[:idmap.MaxRules], many[:idmap.MaxRules]); err != nil {
		t.Error(err)
	}
}

// TestOwners: every way to attributes shows the mapped owner, and the object keeps its own.
func TestOwners(t *testing.T) {
	ctx := t.Context()
	below := memfs.New(memfs.Options{Mode: 0o777})
	root, _, err := below.Root(ctx)
	if err != nil {
		t.Fatal(err)
	}
	how := vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskUID | vfs.MaskGID | vfs.MaskMode, UID: 1005, GID: 7, Mode: 0o644}}
	if _, _, _, err := below.Create(ctx, root, "file", &how); err != nil {
		t.Fatal(err)
	}
	f := parse(t, []string{"1000-1009:2000", "2005:1"}, []string{"7:8", "8:7"}).Of(below)
	h, attr, _, err := f.Lookup(ctx, root, "file")
	if err != nil {
		t.Fatal(err)
	}
	all := []vfs.Attr{attr}
	attr, err = f.GetAttr(ctx, h, vfs.MaskV3)
	all = append(all, attr)
	_, attr, aerr := f.Access(ctx, h, vfs.AccessRead)
	all = append(all, attr)
	x, opened, oerr := f.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err := errors.Join(err, aerr, oerr); err != nil {
		t.Fatal(err)
	}
	all = append(all, opened.Attr)
	var post vfs.Attr
	if _, _, err := x.ReadAt(ctx, make([]byte, 1), 0, &post); err != nil {
		t.Fatal(err)
	}
	all = append(all, post)
	if err := x.Close(ctx); err != nil {
		t.Fatal(err)
	}
	for range 2 { // an entry that is listed twice is mapped once
		for e, err := range f.ReadDir(ctx, root, vfs.Pos{}, vfs.MaskV3, 0) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, e.Attr)
		}
	}
	for i, a := range all {
		if a.Has(vfs.MaskUID|vfs.MaskGID) && (a.UID != 2005 || a.GID != 8) {
			t.Errorf("%d: %d:%d, want 2005:8", i, a.UID, a.GID)
		}
	}
	if a, err := below.GetAttr(ctx, h, vfs.MaskV3); err != nil || a.UID != 1005 || a.GID != 7 {
		t.Errorf("below: %d:%d, %v", a.UID, a.GID, err)
	}
}

// TestLists: who is named in a list is mapped, users by the rules of users; the owner's entry and
// the mask have no id.
func TestLists(t *testing.T) {
	ctx := t.Context()
	below := memfs.New(memfs.Options{Mode: 0o777})
	root, _, err := below.Root(ctx)
	if err != nil {
		t.Fatal(err)
	}
	acl := func(user, group uint32) []vfs.ACLEntry {
		return []vfs.ACLEntry{
			{Tag: vfs.ACLUserObj, Perm: 7}, {Tag: vfs.ACLUser, ID: user, Perm: 6}, {Tag: vfs.ACLGroupObj, Perm: 5},
			{Tag: vfs.ACLGroup, ID: group, Perm: 4}, {Tag: vfs.ACLMask, Perm: 7}, {Tag: vfs.ACLOther, Perm: 1},
		}
	}
	holder, ok := vfs.As[vfs.ACLer](vfs.FS(below))
	if !ok {
		t.Fatal("no lists")
	}
	if err := holder.SetACL(ctx, root, vfs.ACL{Access: acl(5, 5), Default: acl(6, 6)}); err != nil {
		t.Fatal(err)
	}
	f := parse(t, []string{"5-6:50"}, []string{"0-5:70"}).Of(below)
	shown, ok := vfs.As[vfs.ACLer](f)
	if !ok {
		t.Fatal("the wrapper has no lists")
	}
	got, err := shown.ACL(ctx, root)
	if err != nil || !slices.Equal(got.Access, acl(50, 75)) || !slices.Equal(got.Default, acl(51, 6)) {
		t.Errorf("%v, %v", got, err)
	}
}

// FuzzParseRule: a rule that is taken maps both ends of its range, and nothing beside it.
func FuzzParseRule(f *testing.F) {
	for _, s := range []string{"1:2", "1-4:2", "0-4294967294:0", "4294967294:0", "-:", "1-2-3:4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := idmap.ParseRule(s)
		if err != nil {
			return
		}
		if r.Last < r.From || uint64(r.To)+uint64(r.Last-r.From) >= 1<<32-1 {
			t.Errorf("%q: %+v", s, r)
		}
		if _, err := idmap.Parse([]string{s}, []string{s}); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	})
}

// TestMany: with as many rules as there may be, each id has the one that is for it.
func TestMany(t *testing.T) {
	rules := make([]string, idmap.MaxRules)
	for i := range rules {
		rules[i] = fmt.Sprintf("%d-%d:%d", 10*i, 10*i+4, 100_000+10*i)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(rules), func(i, j int) { rules[i], rules[j] = rules[j], rules[i] })
	below := memfs.New(memfs.Options{Mode: 0o777})
	f := parse(t, rules, nil).Of(below)
	root, _, err := below.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for id := uint32(0); id < 10*idmap.MaxRules+20; id += 3 {
		set := vfs.SetAttr{Valid: vfs.MaskUID, UID: id}
		if _, err := below.SetAttr(t.Context(), root, &set, nil); err != nil {
			t.Fatal(err)
		}
		want := id
		if id < 10*idmap.MaxRules && id%10 < 5 {
			want += 100_000
		}
		if a, err := f.GetAttr(t.Context(), root, vfs.MaskV3); err != nil || a.UID != want {
			t.Fatalf("%d became %d, %v; want %d", id, a.UID, err, want)
		}
	}
}
