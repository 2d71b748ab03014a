package export

import (
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/vfs"
)

// TestBeyond compares the rules of two exports.
func TestBeyond(t *testing.T) {
	type rules = []Rule
	id := uint32(1000)
	rw, ro := func(m string) Rule { return Rule{Match: m} }, func(m string) Rule { return Rule{Match: m, ReadOnly: true} }
	for what, x := range map[string]struct {
		outer, inner rules
		client, more string
	}{
		"no rules":                    {nil, nil, "", ""},
		"all may read only":           {rules{ro("*")}, nil, "", ""},
		"few within":                  {nil, rules{rw("10.0.0.1")}, "*", "way in"},
		"few within, all read":        {rules{ro("*")}, rules{rw("10.0.0.1")}, "*", "way in"},
		"more within":                 {rules{rw("10.0.0.1")}, nil, "", ""},
		"the same":                    {rules{ro("10.0.0.7"), rw("10.0.0.0/8")}, rules{ro("10.0.0.7"), rw("10.0.0.0/8")}, "", ""},
		"in parts":                    {rules{rw("10.0.0.7"), rw("10.0.0.0/8")}, rules{ro("10.0.0.7"), rw("10.0.0.0/8")}, "10.0.0.7", "changes"},
		"one of a network":            {rules{rw("10.0.0.0/8")}, rules{ro("10.0.0.7"), rw("10.0.0.0/8")}, "10.0.0.0/8", "changes"},
		"all but one who is there":    {rules{rw("10.0.0.7"), ro("*")}, rules{rw("10.0.0.7"), ro("*")}, "", ""},
		"another network":             {rules{rw("10.0.0.0/8")}, rules{ro("192.0.2.0/24"), rw("10.0.0.0/8")}, "", ""},
		"a wider one within":          {rules{rw("10.1.0.0/16")}, rules{rw("10.0.0.0/8")}, "", ""},
		"names, the same":             {rules{rw("a.example"), ro("b.example")}, rules{ro("b.example"), rw("a.example")}, "", ""},
		"names, one more":             {rules{rw("a.example"), rw("b.example")}, rules{rw("a.example")}, "b.example", "way in"},
		"a name of a domain":          {rules{rw("*.example")}, rules{ro("a.example"), rw("*.example")}, "*.example", "changes"},
		"a name of another domain":    {rules{rw("*.example")}, rules{ro("a.test"), rw("*.example")}, "", ""},
		"a name, perhaps in the net":  {rules{rw("10.0.0.0/8")}, rules{ro("a.example"), rw("10.0.0.0/8")}, "10.0.0.0/8", "changes"},
		"squash":                      {rules{{Match: "*", Squash: SquashNone}}, rules{{Match: "*", Squash: SquashRoot}}, "*", "squashed"},
		"less squash within":          {rules{{Match: "*", Squash: SquashAll}}, rules{{Match: "*", Squash: SquashRoot}}, "", ""},
		"another anonymous user":      {rules{{Match: "*", Squash: SquashAll, AnonUID: &id}}, rules{{Match: "*", Squash: SquashAll}}, "*", "another anonymous"},
		"secure":                      {nil, rules{{Match: "*", Secure: true}}, "*", "ports"},
		"groups":                      {nil, rules{{Match: "*", ManyGroups: true}}, "*", "groups"},
		"believed":                    {rules{{Match: "*", TrustLocal: true}}, nil, "*", "programs of this host"},
		"descriptors":                 {nil, rules{{Match: "*", NoHostFiles: true}}, "*", "descriptors"},
		"stricter, but never reached": {rules{rw("10.0.0.7"), rw("10.0.0.0/8")}, rules{rw("10.0.0.0/8"), ro("192.0.2.1")}, "", ""},
	} {
		table, err := NewTable(Key{}, Export{Path: "/a", FS: &struct{ vfs.FS }{}, Clients: x.outer}, Export{Path: "/a/b", FS: &struct{ vfs.FS }{}, Clients: x.inner})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		client, more := table.Beyond("/a", "/a/b")
		if client != x.client || (more == "") != (x.more == "") || !strings.Contains(more, x.more) {
			t.Errorf("%s: %q gets %q; want %q, %q", what, client, more, x.client, x.more)
		}
	}
}

// TestBeyondOfExports compares what exports say of all their clients, and names an
// export that does not exist.
func TestBeyondOfExports(t *testing.T) {
	table, err := NewTable(Key{}, Export{Path: "/a", FS: &struct{ vfs.FS }{}},
		Export{Path: "/ro", FS: &struct{ vfs.FS }{}, ReadOnly: true}, Export{Path: "/remote", FS: &struct{ vfs.FS }{}, NoHostFiles: true})
	if err != nil {
		t.Fatal(err)
	}
	for inner, want := range map[string]string{"/ro": "changes", "/remote": "descriptors", "/none": ""} {
		if _, more := table.Beyond("/a", inner); more != want {
			t.Errorf("/a beyond %s: %q, want %q", inner, more, want)
		}
	}
	if _, more := table.Beyond("/none", "/a"); more != "" {
		t.Errorf("an export that is not there gives %q", more)
	}
}
