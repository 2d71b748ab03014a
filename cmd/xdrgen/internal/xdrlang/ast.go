package xdrlang

import "strconv"

// Spec is one specification, checked.
type Spec struct {
	File     string
	Consts   []*Const
	Types    []*TypeDef
	Programs []*Program
}

// Value is an integer constant: XDR has them from -2^63 to 2^64-1.
type Value struct {
	Neg bool
	Abs uint64
}

// String implements fmt.Stringer.
func (v Value) String() string {
	s := strconv.FormatUint(v.Abs, 10)
	if v.Neg {
		return "-" + s
	}
	return s
}

// Int is v as a signed number; it reports whether v fits.
func (v Value) Int() (int64, bool) {
	if v.Neg {
		return -int64(v.Abs), v.Abs <= 1<<63
	}
	return int64(v.Abs), v.Abs < 1<<63
}

// Expr is where a constant is used: a number or the name of one. Val is its
// value.
type Expr struct {
	Pos  Pos
	Name string // "" for a number
	Val  Value
}

// Const is a constant definition.
type Const struct {
	Pos  Pos
	Doc  string
	Name string
	Expr Expr
}

// Kind is what a [Type] is.
type Kind int

// The kinds of types. Named stands for a definition and does not survive
// [Type.Resolve].
const (
	Void Kind = iota
	Int
	Uint
	Hyper
	Uhyper
	Float
	Double
	Bool
	Opaque // only with the shape FixedArray or VarArray
	String // only with the shape VarArray
	Named
	EnumKind
	StructKind
	UnionKind
)

// Type is a type specifier: a base type, the name of a definition, or an enum,
// struct or union written in place.
type Type struct {
	Pos    Pos
	Kind   Kind
	Name   string   // Named: as written
	Def    *TypeDef // Named: what it stands for
	Enum   *Enum
	Fields []*Decl // StructKind
	Union  *Union
}

// Shape is what a declaration makes of its type.
type Shape int

// The shapes of declarations.
const (
	Plain      Shape = iota
	FixedArray       // name[n]
	VarArray         // name<n>
	Optional         // *name
)

// Decl declares a field, an arm, a type definition or an argument: a type, what
// is made of it, and a name. A void arm has the type Void and no name.
type Decl struct {
	Pos   Pos
	Doc   string
	Name  string
	Type  *Type
	Shape Shape
	Size  *Expr // of FixedArray, and of VarArray unless it is unbounded
}

// Unbounded is the bound of a variable-length array that has none: lengths are
// 32 bits on the wire.
const Unbounded = 1<<32 - 1

// Bound is the number of elements of a fixed-length array, and the most that a
// variable-length one has.
func (d *Decl) Bound() uint32 {
	if d.Size == nil {
		return Unbounded
	}
	return uint32(d.Size.Val.Abs)
}

// TypeDef is a named type. "struct s {...}" is "typedef struct {...} s" (RFC
// 4506, section 4.18), so that both are a declaration.
type TypeDef struct {
	Pos  Pos
	Doc  string
	Name string
	Decl *Decl
}

// Enum is the body of an enumeration.
type Enum struct{ Members []*Member }

// Member is one enumerator. Without an Expr its value is one more than that of
// the one before it.
type Member struct {
	Pos  Pos
	Doc  string
	Name string
	Expr *Expr
	Val  Value
}

// Union is the body of a discriminated union. Arms stand in the order of the
// text, the default arm last.
type Union struct {
	Disc *Decl
	Arms []*Arm
}

// Arm is one arm of a union; Cases is empty for the default arm.
type Arm struct {
	Pos   Pos
	Cases []*Expr
	Decl  *Decl
}

// Program is an RPC program.
type Program struct {
	Pos      Pos
	Doc      string
	Name     string
	Versions []*Version
	Number   *Expr
}

// Version is one version of a program.
type Version struct {
	Pos    Pos
	Doc    string
	Name   string
	Procs  []*Proc
	Number *Expr
}

// Proc is one procedure. Args is empty for void; the arguments have no names.
type Proc struct {
	Pos    Pos
	Doc    string
	Name   string
	Result *Decl
	Args   []*Decl
	Number *Expr
}

// Target follows definitions that only rename (typedef a b) and returns the
// declaration that gives t its meaning: for a base type or a body, t itself as
// a plain declaration.
func (t *Type) Target() *Decl {
	d := &Decl{Pos: t.Pos, Type: t}
	for d.Shape == Plain && d.Type.Kind == Named {
		d = d.Type.Def.Decl
	}
	return d
}
