package export

import (
	"errors"
	"testing"

	"github.com/nfsbox/nfsbox/vfs"
)

// TestRefused is told of what rules refuse, with the rule, and of nothing else.
func TestRefused(t *testing.T) {
	var got []Refusal
	table, err := New(Options{Refused: func(r Refusal) { got = append(got, r) }},
		Export{Path: "/a", FS: memory(), Clients: []Rule{{Match: "10.0.0.1"}, {Match: "10.0.0.2", Secure: true}, {Match: "10.0.0.3", ReadOnly: true}}},
		Export{Path: "/b", FS: memory(), ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, caller := t.Context(), &vfs.Caller{UID: 7}
	h, _, err := table.For(remote("10.0.0.1:700"), caller).Mount(ctx, "/a")
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := table.For(remote("10.0.0.1:700"), caller).Mount(ctx, "/b")
	if err != nil {
		t.Fatal(err)
	}
	remove := func(from string, h vfs.Handle) error {
		_, err := table.For(remote(from), caller).Remove(ctx, h, "d", true)
		return err
	}
	mnt := func(from, path string) error {
		_, _, err := table.For(remote(from), caller).Mount(ctx, path)
		return err
	}
	for _, c := range []struct {
		name string
		do   func() error
		want error
		told Refusal
	}{
		{"no rule", func() error { return mnt("10.0.0.9:700", "/a/x") }, vfs.ErrAccess, Refusal{Export: "/a", Path: "/a/x", Why: NoRule}},
		{"a port", func() error { return mnt("10.0.0.2:2000", "/a") }, vfs.ErrAccess, Refusal{Export: "/a", Path: "/a", Rule: "10.0.0.2", Why: InsecurePort}},
		{"by handle", func() error { return table.For(remote("10.0.0.9:700"), caller).Admits(ctx, h) }, vfs.ErrAccess, Refusal{Export: "/a", Why: NoRule}},
		{"a change by a rule", func() error { return remove("10.0.0.3:700", h) }, vfs.ErrROFS, Refusal{Export: "/a", Rule: "10.0.0.3", Why: ReadOnlyRule}},
		{"a change of an export", func() error { return remove("10.0.0.3:700", b) }, vfs.ErrROFS, Refusal{Export: "/b", Why: ReadOnlyExport}},
		{"what is not there", func() error { return mnt("10.0.0.1:700", "/a/none") }, vfs.ErrNoEnt, Refusal{}},
	} {
		got = nil
		if err := c.do(); !errors.Is(err, c.want) || Told(err) != (c.told.Path != "") {
			t.Errorf("%s: %v, told: %v", c.name, err, Told(err))
		}
		if c.told.Why == 0 {
			if len(got) > 0 {
				t.Errorf("%s: %+v", c.name, got)
			}
			continue
		}
		if len(got) != 1 {
			t.Fatalf("%s: %+v", c.name, got)
		}
		r := got[0]
		if !r.Client.IsValid() || r.UID != 7 || !r.HasUID || r.Export != c.told.Export || r.Path != c.told.Path || r.Rule != c.told.Rule || r.Why != c.told.Why {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}
