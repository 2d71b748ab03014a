package posixacl

import (
	"errors"
	"slices"
	"testing"

	"github.com/nfsbox/nfsbox/vfs"
)

func list(entries ...vfs.ACLEntry) []vfs.ACLEntry { return entries }

func entry(tag vfs.ACLTag, id, perm uint32) vfs.ACLEntry {
	return vfs.ACLEntry{Tag: tag, ID: id, Perm: perm}
}

const (
	uo, u, g_o, g, m, o = vfs.ACLUserObj, vfs.ACLUser, vfs.ACLGroupObj, vfs.ACLGroup, vfs.ACLMask, vfs.ACLOther
)

func TestCanonical(t *testing.T) {
	got, err := Canonical(list(entry(o, 9, 1), entry(u, 7, 4), entry(g, 5, 2), entry(u, 3, 1), entry(g_o, 0, 0), entry(uo, 0, 7)))
	want := list(entry(uo, 0, 7), entry(u, 3, 1), entry(u, 7, 4), entry(g_o, 0, 0), entry(g, 5, 2), entry(m, 0, 7), entry(o, 0, 1))
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	if got, err := Canonical(FromMode(0o640)); err != nil || !slices.Equal(got, FromMode(0o640)) || !Minimal(got) {
		t.Errorf("a mode: %v, %v", got, err)
	}
	three := FromMode(0o777)
	many := FromMode(0)
	for i := range uint32(MaxEntries - 3) { // one too many with the mask
		many = append(many, entry(u, i, 0))
	}
	if got, err := Canonical(many[:MaxEntries-1]); err != nil || len(got) != MaxEntries {
		t.Errorf("%d entries, %v", len(got), err)
	}
	for name, l := range map[string][]vfs.ACLEntry{
		"empty":          nil,
		"too many":       many,
		"no owner":       three[1:],
		"no group":       list(three[0], three[2]),
		"no others":      three[:2],
		"owner twice":    append(slices.Clone(three), entry(uo, 0, 1)),
		"mask twice":     append(slices.Clone(three), entry(m, 0, 1), entry(m, 0, 2)),
		"user twice":     append(slices.Clone(three), entry(u, 5, 1), entry(g, 5, 1), entry(u, 5, 2)),
		"group twice":    append(slices.Clone(three), entry(g, 5, 1), entry(g, 5, 1)),
		"unknown tag":    append(slices.Clone(three), entry(0x40, 5, 1)),
		"tag zero":       append(slices.Clone(three), entry(0, 5, 1)),
		"two tags":       append(slices.Clone(three), entry(u|g, 5, 1)),
		"unknown rights": append(slices.Clone(three), entry(u, 5, 8)),
		"nobody's id":    append(slices.Clone(three), entry(g, noID, 1)),
	} {
		if got, err := Canonical(l); !errors.Is(err, vfs.ErrInval) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestMode(t *testing.T) {
	full := list(entry(uo, 0, 7), entry(u, 3, 6), entry(g_o, 0, 4), entry(m, 0, 5), entry(o, 0, 1))
	if got := Mode(full); got != 0o751 {
		t.Errorf("mode %o", got)
	}
	changed := Chmod(full, 0o620)
	if Mode(changed) != 0o620 || changed[2].Perm != 4 || changed[1].Perm != 6 {
		t.Errorf("after a chmod %v", changed)
	}
	if got := Inherit(full, 0o664); Mode(got) != 0o640 || got[2].Perm != 4 {
		t.Errorf("inherited %v", got)
	}
	if got := Chmod(FromMode(0o777), 0o123); Mode(got) != 0o123 {
		t.Errorf("a minimal list after a chmod: %v", got)
	}
	if Mode(full) != 0o751 {
		t.Error("the list itself was changed")
	}
}

func TestPermits(t *testing.T) {
	acl := list(entry(uo, 0, 6), entry(u, 3, 7), entry(g_o, 0, 4), entry(g, 20, 2), entry(g, 21, 1), entry(m, 0, 6), entry(o, 0, 7))
	const owner, group = 1, 10
	for _, tc := range []struct {
		c    vfs.Caller
		want uint32
		may  bool
	}{
		{vfs.Caller{UID: owner, GID: 20}, 6, true},
		{vfs.Caller{UID: owner, GID: 20}, 1, false},
		{vfs.Caller{UID: 3}, 6, true},
		{vfs.Caller{UID: 3}, 1, false}, // by the mask
		{vfs.Caller{UID: 9, GID: group}, 4, true},
		{vfs.Caller{UID: 9, GID: group}, 2, false},
		{vfs.Caller{UID: 9, GID: 5, Groups: []uint32{group, 20}}, 2, true},
		{vfs.Caller{UID: 9, GID: 5, Groups: []uint32{group, 20}}, 6, false}, // no one entry gives both
		{vfs.Caller{UID: 9, GID: 21}, 1, false},
		{vfs.Caller{UID: 9, GID: 5}, 7, true},
	} {
		if got := Permits(acl, &tc.c, owner, group, tc.want); got != tc.may {
			t.Errorf("%+v may %o: %t, want %t", tc.c, tc.want, got, tc.may)
		}
	}
}
