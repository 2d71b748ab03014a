package emit

import (
	"fmt"
	"math"

	"github.com/nfsbox/nfsbox/cmd/xdrgen/internal/xdrlang"
)

// kind is what a Go type is to the emitters.
type kind int

const (
	kInt32 kind = iota
	kUint32
	kInt64
	kUint64
	kFloat32
	kFloat64
	kBool
	kEnum   // a named int32
	kFixed  // [n]byte
	kBytes  // []byte, at most bound
	kStruct // a named struct
	kUnion  // a named struct with a discriminant
	kArray  // [n]elem
	kSlice  // []elem, at most bound
	kPtr    // *elem
	kList   // []elem, a linked list on the wire
)

// scalar is a row of what the emitters know of a base type: its Go name, its
// size on the wire, and the xdr method and function that take it one at a time.
type scalar struct {
	goType string
	size   int
	method string // of Decoder; the function is "Append" and the same
}

var scalars = map[kind]scalar{
	kInt32:   {"int32", 4, "Int32"},
	kUint32:  {"uint32", 4, "Uint32"},
	kInt64:   {"int64", 8, "Int64"},
	kUint64:  {"uint64", 8, "Uint64"},
	kFloat32: {"float32", 4, "Float32"},
	kFloat64: {"float64", 8, "Float64"},
	kBool:    {"bool", 4, "Bool"},
	kEnum:    {"", 4, "Int32"},
}

// typ is a type of the specification in Go's terms.
type typ struct {
	kind  kind
	name  string // of a type with a Go declaration of its own
	def   *def   // kEnum, kStruct, kUnion; the others: set if the type has a name and methods of its own
	elem  *typ   // kArray, kSlice, kPtr, kList
	n     int    // kFixed, kArray
	bound uint32 // kBytes, kSlice
}

// def is a type that gets a Go declaration.
type def struct {
	name  string // in Go
	spec  string // in the specification
	doc   string
	made  string // what it is, where the specification has no name for it
	pos   xdrlang.Pos
	typ   *typ // of values of this type
	alias bool // another name of typ, without methods of its own

	source *xdrlang.TypeDef // nil for a body in place

	members []*xdrlang.Member // kEnum
	open    bool              // kEnum: values that the specification lacks are decoded, too
	fields  []*field          // kStruct; a kUnion has its discriminant first, then the arms with a value
	arms    []*arm            // kUnion, the default arm last

	node      bool // of a linked list: kStruct without its last field
	recursive bool
	sized     bool // size and least are known
	size      int  // of kStruct on the wire, -1 if it varies
	least     int  // of kStruct and kUnion on the wire
	bulk      int  // index in fields of the bulk opaque, or of what holds it; -1 for none
}

// field is a field of a Go struct.
type field struct {
	name string
	spec string // type.field, for messages
	doc  string
	pos  xdrlang.Pos
	typ  *typ
}

// arm is one arm of a union. Without cases it is the default; without a field
// it is void.
type arm struct {
	cases []string // as Go writes them
	vals  []xdrlang.Value
	field *field
}

func (t *typ) String() string {
	if t.name != "" {
		return t.name
	}
	switch t.kind {
	case kFixed:
		return fmt.Sprintf("[%d]byte", t.n)
	case kBytes:
		return "[]byte"
	case kArray:
		return fmt.Sprintf("[%d]%s", t.n, t.elem)
	case kPtr:
		return "*" + t.elem.String()
	case kSlice, kList:
		return "[]" + t.elem.String()
	}
	return scalars[t.kind].goType
}

// wire is the size on the wire, or -1 if it varies.
func (t *typ) wire() int {
	switch t.kind {
	case kFixed:
		return (t.n + 3) &^ 3
	case kArray:
		if n := t.elem.wire(); n >= 0 {
			return n * t.n
		}
		return -1
	case kStruct:
		t.def.measure()
		return t.def.size
	}
	if s, ok := scalars[t.kind]; ok {
		return s.size
	}
	return -1
}

// min is the least that a value takes on the wire.
func (t *typ) min() int {
	switch t.kind {
	case kStruct, kUnion:
		t.def.measure()
		return t.def.least
	case kArray:
		return t.n * t.elem.min()
	}
	return max(t.wire(), 4)
}

// measure computes the sizes of a struct or union, once: a type may be held
// very many times over.
func (d *def) measure() {
	if d.sized {
		return
	}
	d.sized = true
	if d.typ.kind == kUnion {
		d.size, d.least = -1, 4+d.leastArm()
		return
	}
	for _, f := range d.fields {
		d.least += f.typ.min()
		if n := f.typ.wire(); n < 0 || d.size < 0 {
			d.size = -1
		} else {
			d.size += n
		}
	}
	if d.node || d.recursive {
		d.size = -1
	}
}

// leastArm is the least that the arms of a union take.
func (d *def) leastArm() int {
	least := math.MaxInt
	for _, a := range d.arms {
		n := 0
		if a.field != nil {
			n = a.field.typ.min()
		}
		least = min(least, n)
	}
	return least
}

// closed reports whether t is an enum that has no values but those of the
// specification.
func (t *typ) closed() bool { return t.kind == kEnum && !t.def.open }

// mayFail reports whether a type of fixed size holds a bool or an enum: the two such
// types whose every value is not fine.
func (t *typ) mayFail() bool {
	switch t.kind {
	case kBool:
		return true
	case kEnum:
		return t.closed()
	case kArray:
		return t.elem.mayFail()
	case kStruct:
		for _, f := range t.def.fields {
			if f.typ.mayFail() {
				return true
			}
		}
	}
	return false
}

func (t *typ) methods() bool { return t.def != nil && t.kind != kEnum }

func (d *def) exhaustive() bool {
	last := d.arms[len(d.arms)-1]
	return len(last.cases) == 0 || d.fields[0].typ.kind == kBool && d.unused() == ""
}

// model is a whole specification in Go's terms.
type model struct {
	spec  *xdrlang.Spec
	defs  []*def // in the order of the text
	types map[*xdrlang.TypeDef]*typ
	nodes map[*xdrlang.TypeDef]bool
	names scope
	progs []*program
	errs  xdrlang.ErrorList
}

func (m *model) fail(err *xdrlang.Error) {
	if err != nil && len(m.errs) < xdrlang.MaxErrors {
		m.errs = append(m.errs, err)
	}
}
