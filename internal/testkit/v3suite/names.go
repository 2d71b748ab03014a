package v3suite

import (
	"strings"

	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// namesTests make every operation with every kind of name.
func namesTests() []test {
	all := []test{{name: "verbatim", run: func(e *env) {
		// Names are bytes; only "/" and NUL mean something.
		want := make(map[string]handle)
		for _, name := range []string{
			" ", "a b", "...", ".hidden", "~", "-rf", "*", "back\\slash", "new\nline", "\x7f", "\xff\xfe", "\u00e4", "a\u0308",
			"C:", "con", "a.", strings.Repeat("\xc3\xa4", 127), name(255),
		} {
			want[name] = e.file(e.dir, name, "")
		}
		for name, h := range want {
			e.same(name, e.find(e.dir, name), h)
		}
		e.sameNames("READDIR", e.list(e.dir, 8192), want)
	}}}
	for i := range operations {
		op := &operations[i]
		if !op.names {
			continue
		}
		all = append(all,
			test{name: op.name + "-too-long", run: func(e *env) {
				e.file(e.dir, "source", "")
				for _, n := range []int{256, 1000, 5000} {
					e.gotStatus(op.run(e, e.dir, name(n)), nfs3.NFS3ERR_NAMETOOLONG)
				}
			}},
			test{name: op.name + "-impossible", run: func(e *env) {
				e.file(e.dir, "source", "")
				for _, name := range []string{"", "/", "a/b", "a\x00b", "../up"} {
					before := e.attr(e.dir)
					// The RFC has ACCES or INVAL; what is not a name at all some
					// servers cannot decode, and some do not find.
					if !e.gotStatus(op.run(e, e.dir, name), nfs3.NFS3ERR_ACCES, nfs3.NFS3ERR_INVAL, garbageArgs, nfs3.NFS3ERR_NOENT) {
						e.Errorf("the name was %q", name)
					}
					e.unchanged("a refused name", before, e.dir)
				}
			}},
		)
	}
	return all
}
