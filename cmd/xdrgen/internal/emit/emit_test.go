package emit

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/nfsbox/nfsbox/cmd/xdrgen/internal/xdrlang"
)

func TestGoName(t *testing.T) {
	for name, want := range map[string]string{
		"READ3args":         "READ3args",
		"NFS3ERR_NOENT":     "NFS3ERR_NOENT",
		"Also_here":         "Also_here",
		"fattr3":            "Fattr3",
		"nfs_fh3":           "NfsFh3",
		"post_op_attr":      "PostOpAttr",
		"rp__list":          "RpList",
		"fsm_DN":            "FsmDN",
		"_double__and_end_": "DoubleAndEnd",
		"_2fast":            "X2fast",
		"type":              "Type",
	} {
		if got := goName(name); got != want {
			t.Errorf("%s becomes %s, want %s", name, got, want)
		}
	}
}

// TestErrors: what is right in the language of RFC 4506 and wrong in Go, or for
// the flags, is refused with a place and a reason.
func TestErrors(t *testing.T) {
	bulk := func(names ...string) Options { return Options{Bulk: names} }
	for _, tt := range []struct {
		name, src string
		opt       Options
		want      string
	}{
		{"types", "struct a_b { int c; };\nstruct aB { int c; };", Options{},
			"f.x:2:8: aB becomes AB in Go, and so does a_b at 1:8"},
		{"type and constant", "struct foo { int c; };\nconst Foo = 1;", Options{},
			"f.x:1:8: foo becomes Foo in Go, and so does Foo at 2:7"},
		{"enumerators", "enum e { a_b = 1, aB = 2 };", Options{},
			"f.x:1:19: aB becomes AB in Go, and so does a_b at 1:10"},
		{"fields", "struct s { int a_b; int aB; };", Options{},
			"f.x:1:25: s.aB becomes AB in Go, and so does s.a_b at 1:16"},
		{"body in place", "struct s { struct { int a; } t; };\nstruct sT { int a; };", Options{},
			"f.x:2:8: sT becomes ST in Go, and so does s.t at 1:30"},
		{"method", "struct s { int AppendXDR; };", Options{},
			"f.x:1:16: s.AppendXDR becomes AppendXDR in Go, which is a method that xdrgen writes"},
		{"method of a node", "struct s { int next; s *n; };\nstruct t { s *list; };", Options{},
			"f.x:1:16: s.next becomes Next in Go, which is a method that xdrgen writes"},
		{"method of bulk", "struct s { int bulk; opaque data<>; };", bulk("s.data"),
			"f.x:1:16: s.bulk becomes Bulk in Go, which is a method that xdrgen writes"},
		{"procedure and type", "struct P_N { int a; };\nprogram P { version V { void P_N(void) = 0; } = 1; } = 1;", Options{},
			"f.x:2:30: P_N becomes P_N in Go, and so does P_N at 1:8"},
		{"operand and type", "struct Nargs { int a; };\nprogram P { version V { void N(int) = 0; } = 1; } = 1;", Options{},
			"f.x:2:30: Nargs becomes Nargs in Go, and so does Nargs at 1:8"},
		{"no bulk type", "struct s { opaque data<>; };", bulk("t.data"),
			"f.x:1:1: -bulk t.data: there is no struct or union with a variable-length opaque of that name"},
		{"no bulk field", "struct s { opaque data[8]; };", bulk("s.data"),
			"f.x:1:1: -bulk s.data: there is no struct or union with a variable-length opaque of that name"},
		{"bulk in a list", "struct s { opaque data<>; s *next; };\nstruct t { s *list; };", bulk("s.data"),
			"f.x:1:1: -bulk s.data: there is no struct or union with a variable-length opaque of that name"},
		{"bulk before the end", "struct s { opaque data<>; int a; };", bulk("s.data"),
			"f.x:1:19: s.data holds bulk data and is not the last field"},
		{"bulk before the end, held", "struct s { opaque data<>; };\nstruct t { s a; int b; };", bulk("s.data"),
			"f.x:2:14: t.a holds bulk data and is not the last field"},
		{"bulk twice", "struct s { opaque data<>; };\nunion t switch (int i) { case 1: s a; case 2: s b; };", bulk("s.data"),
			"f.x:2:49: t holds bulk data twice"},
		{"no procedure", "program P { version V { void N(void) = 0; } = 1; } = 1;", Options{Once: []string{"M"}},
			"f.x:1:1: -once M: there is no such procedure"},
		{"no enum", "struct s { int e; };", Options{Open: []string{"s"}}, "f.x:1:1: -open s: there is no such enum"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec, err := xdrlang.Parse("f.x", tt.src)
			if err != nil {
				t.Fatal(err)
			}
			tt.opt.Package = "p"
			_, err = Generate(spec, tt.opt)
			if err == nil {
				t.Fatalf("generated, want %s", tt.want)
			}
			if err.Error() != tt.want {
				t.Errorf("got\n%v\nwant\n%s", err, tt.want)
			}
		})
	}
}

// TestDeterministic: the same specification gives the same bytes every time.
func TestDeterministic(t *testing.T) {
	src, err := os.ReadFile("../../testdata/pointers.x")
	if err != nil {
		t.Fatal(err)
	}
	var first *Files
	for range 5 {
		spec, err := xdrlang.Parse("pointers.x", string(src))
		if err != nil {
			t.Fatal(err)
		}
		files, err := Generate(spec, Options{Package: "pointers"})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = files
		}
		if string(files.Code) != string(first.Code) || string(files.Test) != string(first.Test) {
			t.Fatal("the second time it is different")
		}
	}
}

// FuzzGenerate: what the parser takes becomes Go that parses, or is refused with
// a place.
func FuzzGenerate(f *testing.F) {
	specs, err := filepath.Glob("../../testdata/*.x")
	if err != nil || len(specs) == 0 {
		f.Fatalf("no specifications: %v", err)
	}
	for _, name := range specs {
		src, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(src))
	}
	f.Fuzz(func(t *testing.T, src string) {
		spec, err := xdrlang.Parse("f.x", src)
		if err != nil {
			return
		}
		_, err = Generate(spec, Options{Package: "p"})
		var list xdrlang.ErrorList
		if err != nil && !errors.As(err, &list) {
			t.Fatal(err)
		}
	})
}
