package xdrlang

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestErrors: each specification is refused with these messages.
func TestErrors(t *testing.T) {
	const enum = "enum e { A = 0, B = 1 };\n"
	for _, tt := range []struct{ name, src, want string }{
		// The text.
		{"stray", "const A = 1;\n@", `f.x:2:1: expected a definition (const, typedef, enum, struct, union or program), found the character '@'`},
		{"comment", "const A = 1; /* to the end", `f.x:1:14: expected a definition (const, typedef, enum, struct, union or program), found a comment that does not end`},
		{"percent inside a line", "const A = %1;", `f.x:1:11: expected a constant, found the character '%'`},
		{"word", "foo bar;", `f.x:1:1: expected a definition (const, typedef, enum, struct, union or program), found "foo"`},
		{"end", "struct s {", `f.x:1:11: expected a type, found the end of the file`},
		{"semicolon", "const A = 1\nconst B = 2;", `f.x:2:1: expected ";" behind the definition, found "const"`},

		// Numbers.
		{"number", "const A = 12x;", `f.x:1:11: expected a number, found "12x"`},
		{"octal", "const A = 09;", `f.x:1:11: expected a number, found "09"`},
		{"hex", "const A = 0x;", `f.x:1:11: expected a number, found "0x"`},
		{"underscore", "const A = 1_0;", `f.x:1:11: expected a number, found "1_0"`},
		{"large", "const A = 18446744073709551616;", `f.x:1:11: the number 18446744073709551616 does not fit in 64 bits`},
		{"small", "const A = -9223372036854775809;", `f.x:1:11: the number -9223372036854775809 does not fit in 64 bits`},

		// Names.
		{"reserved", "struct union { int a; };", `f.x:1:8: expected the name of the struct, found the reserved word "union"`},
		{"reserved field", "struct s { int int; };", `f.x:1:16: expected a name, found the reserved word "int"`},
		{"no letter", "const __ = 1;", `f.x:1:7: expected the name of a constant, found "__", which has no letter`},
		{"twice", "const A = 1;\nstruct A { int a; };", `f.x:2:8: A is defined already, at 1:7`},
		{"twice in enums", enum + "enum f { B = 3 };", `f.x:2:10: B is defined already, at 1:17`},
		{"TRUE", "const TRUE = 1;", `f.x:1:7: TRUE has its meaning from XDR`},
		{"FALSE", "enum e { FALSE = 1 };", `f.x:1:10: FALSE has its meaning from XDR`},
		{"undefined type", "struct s { foo a; };", `f.x:1:12: the type foo is not defined`},
		{"undefined struct", "struct s { struct foo *a; };", `f.x:1:19: the type foo is not defined`},
		{"undefined constant", "typedef opaque a[FOO];", `f.x:1:18: FOO is not defined`},
		{"type for constant", "typedef int t;\ntypedef opaque a[t];", `f.x:2:18: expected a constant, t is a type`},
		{"constant for type", "const C = 1;\ntypedef C a;", `f.x:2:9: expected a type, C is a constant`},
		{"constant by itself", "const A = B;\nconst B = A;", `f.x:2:11: A is defined by itself`},
		{"type by itself", "typedef a *b;\ntypedef b *a;", `f.x:1:12: b is defined by itself`},
		{"field twice", "struct s {\n\tint a;\n\tbool a;\n};", `f.x:3:7: the field a is there already, at 2:6`},

		// Declarations.
		{"void field", "struct s { void; };", `f.x:1:12: expected a field, found void`},
		{"void type", "typedef void;", `f.x:1:9: void is no type to define a name for`},
		{"no field", "struct s { };", `f.x:1:12: expected a type, found "}"`},
		{"opaque", "struct s { opaque a; };", `f.x:1:20: expected "[" or "<" behind the name of an opaque, found ";"`},
		{"string", "struct s { string a[3]; };", `f.x:1:20: expected "<" behind the name of a string, found "["`},
		{"optional string", "struct s { string *a; };", `f.x:1:21: expected "<" behind the name of a string, found ";"`},
		{"optional array", "struct s { int *a<3>; };", `f.x:1:18: an optional value cannot be an array as well; define a type for one of them`},
		{"two dimensions", "struct s { int a[3][4]; };", `f.x:1:20: expected ";", found "["`},
		{"closing", "struct s { int a[3>; };", `f.x:1:19: expected "]", found ">"`},
		{"quadruple", "struct s { quadruple a; };", `f.x:1:12: quadruple is not supported: Go has no 128-bit float (opaque[16] carries the bits)`},
		{"no elements", "struct s { int a[0]; };", `f.x:1:18: a fixed-length array of no elements`},
		{"negative", "struct s { int a<-1>; };", `f.x:1:18: -1 is no length; lengths are 32 bits, unsigned`},
		{"too long", "struct s { int a<4294967296>; };", `f.x:1:18: 4294967296 is no length; lengths are 32 bits, unsigned`},
		{"too large", "struct s { int a[1048577]; };", `f.x:1:18: a fixed length of 1048577, at most 1048576 is supported`},
		{"too large together", "typedef int a[1000];\ntypedef a b[1000];", `f.x:2:11: b takes more than 1048576 bytes, which no type may`},
		{"too large by doubling", doubling(30), `f.x:19:8: s18 takes more than 1048576 bytes, which no type may`},

		// Enums.
		{"enum without", "enum e { };", `f.x:1:10: expected the name of an enumerator, found "}"`},
		{"enum value", "enum e { A = 1, B = 1 };", `f.x:1:17: B has the value 1, which is A`},
		{"counted value", "enum e { A = 1, B = 0, C };", `f.x:1:24: C has the value 1, which is A`},
		{"enum range", "enum e { A = 2147483648 };", `f.x:1:14: A = 2147483648 does not fit in an enumeration (32 bits, signed)`},
		{"counted range", "enum e { A = 2147483647, B };", `f.x:1:26: B = 2147483648 does not fit in an enumeration (32 bits, signed)`},

		// Unions.
		{"no arm", "union u switch (int a) { };", `f.x:1:26: expected "case", found "}"`},
		{"only default", "union u switch (int a) { default: void; };", `f.x:1:41: expected "case", found "}"`},
		{"behind default", "union u switch (int a) { case 1: void; default: void; case 2: void; };", `f.x:1:55: expected "}", for the default arm is the last one`},
		{"no switch", "union u { int a; };", `f.x:1:9: expected "switch", found "{"`},
		{"case twice", "union u switch (int a) {\ncase 1: int b;\ncase 1: void; };", `f.x:3:6: the case 1 is there already, at 2:6`},
		{"case twice by name", enum + "union u switch (e a) {\ncase A: int b;\ncase 0: void; };", `f.x:4:6: the case 0 is there already, at 3:6`},
		{"foreign case", enum + "enum f { C = 7 };\nunion u switch (e a) { case C: void; };", `f.x:3:29: C is no value of the enum that selects the arm`},
		{"bool case", "union u switch (bool a) { case 2: void; };", `f.x:1:32: expected TRUE or FALSE, found 2`},
		{"unsigned case", "union u switch (unsigned a) { case -1: void; };", `f.x:1:36: -1 does not fit in an unsigned int`},
		{"signed case", "union u switch (int a) { case 2147483648: void; };", `f.x:1:31: 2147483648 does not fit in an int`},
		{"discriminant", "union u switch (hyper a) { case 1: void; };", `f.x:1:23: expected an int, an unsigned int, an enum or a bool to select by`},
		{"discriminant by name", "typedef opaque o[4];\nunion u switch (o a) { case 1: void; };", `f.x:2:19: expected an int, an unsigned int, an enum or a bool to select by`},
		{"optional discriminant", "union u switch (int *a) { case 1: void; };", `f.x:1:22: expected an int, an unsigned int, an enum or a bool to select by`},
		{"arm twice", "union u switch (int a) { case 1: int b; case 2: bool b; };", `f.x:1:54: the field b is there already, at 1:38`},
		{"arm and discriminant", "union u switch (int a) { case 1: int a; };", `f.x:1:38: the field a is there already, at 1:21`},

		// Size.
		{"by value", "struct s { s a; };", `f.x:1:8: s holds itself by value; make one of the references optional (*name)`},
		{"by value, far", "struct s { t a[2]; };\nstruct t { u b; };\ntypedef s u;", `f.x:1:8: s holds itself by value; make one of the references optional (*name)`},
		{"by value, in an arm", "union u switch (int a) { case 1: u b; default: void; };", `f.x:1:7: u holds itself by value; make one of the references optional (*name)`},
		{"nesting", strings.Repeat("struct s { ", 1) + strings.Repeat("struct { ", MaxNesting) + "int a;", `f.x:1:291: types nest deeper than 32`},

		// Programs.
		{"no version", "program P { } = 1;", `f.x:1:9: program P has no version`},
		{"program number", "program P { version V { void N(void) = 0; } = 1; };", `f.x:1:51: expected "=" and the number of the program, found ";"`},
		{"procedure twice", "program P { version V { void N(void) = 0; void N(void) = 1; } = 1; } = 1;", `f.x:1:48: the procedure N is there already, at 1:30`},
		{"number twice", "program P { version V { void N(void) = 0; void M(void) = 0; } = 1; } = 1;", `f.x:1:58: the procedure number 0 is taken already, at 1:40`},
		{"version twice", "program P { version V { void N(void) = 0; } = 1; version W { void M(void) = 0; } = 1; } = 1;", `f.x:1:84: the version number 1 is taken already, at 1:47`},
		{"version name twice", "program P { version V { void N(void) = 0; } = 1; version V { void M(void) = 0; } = 2; } = 1;", `f.x:1:58: the version V is there already, at 1:21`},
		{"number range", "program P { version V { void N(void) = -1; } = 1; } = 1;", `f.x:1:40: -1 is no number of a procedure; they are 32 bits, unsigned`},
		{"void among", "program P { version V { void N(int, void) = 0; } = 1; } = 1;", `f.x:1:37: void stands alone or not at all`},
		{"opaque operand", "program P { version V { opaque N(void) = 0; } = 1; } = 1;", `f.x:1:25: the result of a procedure cannot be an opaque without a name; define a type for it`},
		{"inline operand", "program P { version V { void N(struct { int a; }) = 0; } = 1; } = 1;", `f.x:1:32: an argument cannot be defined in place; define a type for it`},
		{"operand undefined", "program P { version V { void N(foo) = 0; } = 1; } = 1;", `f.x:1:32: the type foo is not defined`},

		// Several at once.
		{"go on", "struct s { int; };\nconst = 3;\nunion u switch (int a) { case 1: void; }\n", "" +
			"f.x:1:15: expected a name, found \";\"\n" +
			"f.x:2:7: expected the name of a constant, found \"=\"\n" +
			"f.x:4:1: expected \";\" behind the definition, found the end of the file"},
		{"all undefined", "struct s { a b; c d; };\ntypedef opaque e<F>;", "" +
			"f.x:1:12: the type a is not defined\n" +
			"f.x:1:17: the type c is not defined\n" +
			"f.x:2:18: F is not defined"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("f.x", tt.src)
			if err == nil {
				t.Fatalf("parsed, want %s", tt.want)
			}
			if err.Error() != tt.want {
				t.Errorf("got\n%v\nwant\n%s", err, tt.want)
			}
		})
	}
}

// doubling is a chain of n structs, each of which holds the one before it twice.
func doubling(n int) string {
	var src strings.Builder
	src.WriteString("struct s0 { hyper a; };\n")
	for i := range n {
		fmt.Fprintf(&src, "struct s%d { s%d a; s%d b; };\n", i+1, i, i)
	}
	return src.String()
}

// TestBounds: input above a bound is refused, and errors are reported up to one.
func TestBounds(t *testing.T) {
	if _, err := Parse("f.x", strings.Repeat(" ", MaxSource+1)); err == nil || !strings.Contains(err.Error(), "at most 4194304 are read") {
		t.Errorf("too much text: %v", err)
	}
	_, err := Parse("f.x", strings.Repeat("const = 1;\n", MaxErrors+10))
	var list ErrorList
	if !errors.As(err, &list) || len(list) != MaxErrors {
		t.Errorf("%d errors are reported, want %d", len(list), MaxErrors)
	}
}

// TestValues: constants have the values that C gives them.
func TestValues(t *testing.T) {
	spec, err := Parse("f.x", `
		const DEC = 10; const HEX = 0xFf; const OCT = 017; const NEG = -3; const ZERO = -0;
		const MAX = 18446744073709551615; const MIN = -9223372036854775808;
		const NAME = LATER; const LATER = COUNTED;
		enum e { FIRST, NEXT, SET = DEC, COUNTED };`)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"DEC": "10", "HEX": "255", "OCT": "15", "NEG": "-3", "ZERO": "0",
		"MAX": "18446744073709551615", "MIN": "-9223372036854775808", "NAME": "11", "LATER": "11",
	}
	for _, c := range spec.Consts {
		if got := c.Expr.Val.String(); got != want[c.Name] {
			t.Errorf("%s = %s, want %s", c.Name, got, want[c.Name])
		}
	}
	for i, want := range []string{"0", "1", "10", "11"} {
		if m := spec.Types[0].Decl.Type.Enum.Members[i]; m.Val.String() != want {
			t.Errorf("%s = %v, want %s", m.Name, m.Val, want)
		}
	}
}

// TestComments: a comment belongs to what it stands above, or behind.
func TestComments(t *testing.T) {
	spec, err := Parse("f.x", `
/* Far away. */

/*
 * Above s,
 * in two lines.
 */
struct s {
	int a; // behind a
	// above b
	int b; /* not for c */
	int c;

	// far from d

	int d;
	int e; // behind e
};
enum e {
	A = 1, // behind A
	B = 2 // behind B
};
%/* not ours */
const C = 1; // behind C
const D = 2;
`)
	if err != nil {
		t.Fatal(err)
	}
	if got := spec.Types[0].Doc; got != "Above s,\nin two lines." {
		t.Errorf("the comment of s is %q", got)
	}
	for i, want := range []string{"behind a", "above b", "", "", "behind e"} {
		if f := spec.Types[0].Decl.Type.Fields[i]; f.Doc != want {
			t.Errorf("the comment of %s is %q, want %q", f.Name, f.Doc, want)
		}
	}
	for i, want := range []string{"behind A", "behind B"} {
		if m := spec.Types[1].Decl.Type.Enum.Members[i]; m.Doc != want {
			t.Errorf("the comment of %s is %q, want %q", m.Name, m.Doc, want)
		}
	}
	if c, d := spec.Consts[0].Doc, spec.Consts[1].Doc; c != "behind C" || d != "" {
		t.Errorf("the comments of C and D are %q and %q", c, d)
	}
}

// TestDialect: what deployed specifications use beyond the RFCs.
func TestDialect(t *testing.T) {
	spec, err := Parse("f.x", `
		struct s { struct t *a; unsigned b; unsigned long c; long d; uint32_t e; u_int f; int64_t g; bool_t h; };
		struct t { int a; };
		typedef unsigned hyper uint64_t;
		struct v { uint64_t a; };
		program P { version V { string N(string<5>, t *) = 0; } = 1; } = 1;`)
	if err != nil {
		t.Fatal(err)
	}
	want := []Kind{Named, Uint, Uint, Int, Uint, Uint, Hyper, Bool}
	for i, f := range spec.Types[0].Decl.Type.Fields {
		if f.Type.Kind != want[i] {
			t.Errorf("%s is of kind %d, want %d", f.Name, f.Type.Kind, want[i])
		}
	}
	if f := spec.Types[3].Decl.Type.Fields[0]; f.Type.Def == nil || f.Type.Def != spec.Types[2] {
		t.Error("uint64_t is not what the specification says it is")
	}
	proc := spec.Programs[0].Versions[0].Procs[0]
	if proc.Result.Bound() != Unbounded || proc.Args[0].Bound() != 5 || proc.Args[1].Shape != Optional {
		t.Errorf("N is %+v", proc)
	}
}

// FuzzParse: no text makes the parser panic or run on, and errors have a place
// in the text.
func FuzzParse(f *testing.F) {
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
	f.Add("typedef a *b; typedef b *a; struct s { s a[2]; };")
	f.Add("program P { version V { string N(string<5>, int *) = 0; } = 1; } = 1; /*")
	f.Fuzz(func(t *testing.T, src string) {
		_, err := Parse("f.x", src)
		if err == nil {
			return
		}
		var list ErrorList
		if !errors.As(err, &list) || len(list) == 0 {
			t.Fatalf("%T: %v", err, err)
		}
		lines := strings.Count(src, "\n") + 1
		for _, e := range list {
			if e.Pos.Line < 1 || e.Pos.Line > lines || e.Pos.Col < 1 {
				t.Errorf("%v: there are %d lines", e, lines)
			}
		}
	})
}
