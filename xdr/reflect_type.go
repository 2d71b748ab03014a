package xdr

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// shape is how one Go type looks on the wire. A whole tree of types is made into
// shapes before the first byte is written or read, so that a type or a tag that
// cannot work is an error of every value, of the empty one too.
type shape struct {
	kind  reflect.Kind
	typ   reflect.Type
	what  string // for errors: "type.Field", or the type where there is no field
	own   bool   // the type has methods of its own, which do all
	bytes bool   // a slice or an array that is opaque
	max   uint32 // the bound of a string or slice
	min   int    // the fewest bytes that a value takes

	elem   *shape   // of a slice, an array, an optional
	fields []*shape // of a struct
	list   bool     // a struct whose last field points to the next one
	union  *union   // a struct that is a union; its first field selects
}

// union tells which field follows a discriminant. Field 0, which is the
// discriminant itself, stands for void.
type union struct {
	arms       map[int64]int
	other      int // the default arm
	hasDefault bool
}

// arm is the index of the field that value selects, 0 for void, and whether the
// union has that value at all.
func (u *union) arm(value int64) (int, bool) {
	if i, ok := u.arms[value]; ok {
		return i, true
	}
	return u.other, u.hasDefault
}

// discriminant is the value of a union's first field.
func discriminant(v reflect.Value) int64 {
	switch v.Kind() {
	case reflect.Bool:
		return int64(BoolValue(v.Bool()))
	case reflect.Int32:
		return v.Int()
	}
	return int64(v.Uint())
}

// shaper makes the shapes of one call. Nothing is kept from call to call: a
// cache would be state that lives for ever, for code that is to be replaced.
type shaper struct {
	own    reflect.Type // Appender or Unmarshaler, whichever overrides
	shapes map[shapeKey]*shape
}

type shapeKey struct {
	typ  reflect.Type
	what string
	max  uint32
}

// place is where in the tree of types the shaper is.
type place struct {
	path string // from the top, for errors of the type
	what string // the nearest type and field, for errors of the value
	max  uint32
}

func shapeOf(t, own reflect.Type) (*shape, error) {
	s := shaper{own: own, shapes: make(map[shapeKey]*shape)}
	return s.shape(t, place{path: typeName(t), what: typeName(t), max: math.MaxUint32})
}

func typeName(t reflect.Type) string {
	if t.Name() == "" {
		return t.Kind().String()
	}
	return t.Name()
}

// shape returns the shape of t, the same one for a type that contains itself.
func (c *shaper) shape(t reflect.Type, at place) (*shape, error) {
	if t.Kind() == reflect.Struct {
		// What a struct is does not depend on the field that holds it.
		at.what, at.max = typeName(t), math.MaxUint32
	}
	key := shapeKey{t, at.what, at.max}
	if s := c.shapes[key]; s != nil {
		return s, nil
	}
	// A type is met again while it is being made only through a slice or a
	// pointer in it, and these take four bytes. So do own methods, at the
	// least: only void takes none, and nobody counts voids.
	s := &shape{kind: t.Kind(), typ: t, what: at.what, max: at.max, min: 4}
	c.shapes[key] = s
	own, err := c.hasOwn(t)
	if err != nil {
		return nil, fmt.Errorf("xdr: %s: %w", at.path, err)
	}
	if s.own = own; own {
		return s, nil
	}
	return s, c.fill(s, at)
}

// fill completes the shape of a type without methods of its own.
func (c *shaper) fill(s *shape, at place) error {
	switch s.kind {
	case reflect.Bool, reflect.Int32, reflect.Uint32, reflect.Float32, reflect.String:
		return nil
	case reflect.Int64, reflect.Uint64, reflect.Float64:
		s.min = 8
		return nil
	case reflect.Slice, reflect.Array:
		return c.fillSequence(s, at)
	case reflect.Pointer:
		var err error
		s.elem, err = c.shape(s.typ.Elem(), at)
		return err
	case reflect.Struct:
		return c.fillStruct(s, at)
	case reflect.Int, reflect.Uint:
		return fmt.Errorf("xdr: %s: the size of %s depends on the machine; use %s32 or %s64", at.path, s.typ, s.kind, s.kind)
	case reflect.Int8, reflect.Int16, reflect.Uint8, reflect.Uint16:
		return fmt.Errorf("xdr: %s: XDR has no integer as small as %s; use int32 or uint32", at.path, s.typ)
	}
	return fmt.Errorf("xdr: %s: XDR has nothing like %s", at.path, s.typ)
}

// fillSequence completes a slice or an array: opaque if of bytes.
func (c *shaper) fillSequence(s *shape, at place) error {
	elem := s.typ.Elem()
	own, err := c.hasOwn(elem)
	if err != nil {
		return fmt.Errorf("xdr: %s: %w", at.path, err)
	}
	if elem.Kind() == reflect.Uint8 && !own {
		s.bytes = true
		if s.kind == reflect.Array {
			s.min = product((s.typ.Len()+3)/4, 4)
		}
		return nil
	}
	at.max = math.MaxUint32 // the bound was of this, not of what is in it
	if s.elem, err = c.shape(elem, at); err != nil {
		return err
	}
	if s.elem.min == 0 {
		// A length of four thousand million would cost its sender nothing.
		return fmt.Errorf("xdr: %s: elements of %s take no bytes, so nothing bounds how many there are", at.path, s.typ)
	}
	if s.kind == reflect.Array {
		s.min = product(s.typ.Len(), s.elem.min)
	}
	return nil
}

// product is n*size, or the largest int32 if that is less: more than any record.
func product(n, size int) int {
	if n > math.MaxInt32/size {
		return math.MaxInt32
	}
	return n * size
}

// hasOwn reports whether t, or a pointer to it, has the method that overrides
// reflection. A method that may have come from an embedded field is refused: it
// would leave out all fields beside that one, and nobody would be told.
func (c *shaper) hasOwn(t reflect.Type) (bool, error) {
	if t.Kind() == reflect.Interface || !reflect.PointerTo(t).Implements(c.own) {
		return false, nil
	}
	if t.Kind() != reflect.Struct {
		return true, nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && (f.Type.Implements(c.own) || reflect.PointerTo(f.Type).Implements(c.own)) {
			return false, fmt.Errorf("%s has a method of xdr.%s and so has %s embedded in it; give that field a name",
				t, c.own.Name(), f.Name)
		}
	}
	return true, nil
}

// fillStruct completes a struct or a union.
func (c *shaper) fillStruct(s *shape, at place) error {
	n, total := s.typ.NumField(), int64(0)
	for i := range n {
		f := s.typ.Field(i)
		inner := place{path: at.path + "." + f.Name, what: at.what + "." + f.Name, max: math.MaxUint32}
		if !f.IsExported() {
			return fmt.Errorf("xdr: %s: not exported, so that it cannot travel", inner.path)
		}
		tag, err := parseTag(f.Tag)
		if err == nil {
			err = c.place(s, i, f.Type, tag)
		}
		if err != nil {
			return fmt.Errorf("xdr: %s: tag %q: %w", inner.path, f.Tag, err)
		}
		if tag.bounded {
			inner.max = tag.max
		}
		field, err := c.shape(f.Type, inner)
		if err != nil {
			return err
		}
		s.fields = append(s.fields, field)
		total = min(total+int64(field.min), math.MaxInt32)
		s.list = i == n-1 && s.union == nil && field.kind == reflect.Pointer && f.Type.Elem() == s.typ
	}
	if s.union == nil {
		s.min = int(total) // a union may take its discriminant alone
	}
	return nil
}

// place checks that tag makes sense on field i of s, and puts the field among
// the arms if s is a union.
func (c *shaper) place(s *shape, i int, t reflect.Type, tag fieldTag) error {
	if tag.bounded && !c.boundable(t) {
		return errors.New("max is for strings, slices and opaque")
	}
	if i == 0 && tag.isSwitch {
		if tag.cases != nil {
			return errors.New("the discriminant is no arm")
		}
		s.union = &union{arms: make(map[int64]int)}
		return s.union.add(0, t.Kind(), tag.voids, tag.isDefault)
	}
	switch arm := tag.isDefault || tag.cases != nil; {
	case tag.isSwitch:
		return errors.New("only the first field can be the discriminant")
	case tag.voids != nil:
		return errors.New("void arms are listed on the discriminant")
	case s.union == nil && arm:
		return errors.New("an arm without a discriminant: the first field is not tagged switch")
	case s.union == nil:
		return nil
	case !arm:
		return errors.New("neither case nor default in a union")
	}
	return s.union.add(i, s.typ.Field(0).Type.Kind(), tag.cases, tag.isDefault)
}

// boundable reports whether a bound can apply to t, or to what it points to.
func (c *shaper) boundable(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return (t.Kind() == reflect.String || t.Kind() == reflect.Slice) && !reflect.PointerTo(t).Implements(c.own)
}

// add lets field i follow the values, and all others if isDefault.
func (u *union) add(i int, kind reflect.Kind, values []int64, isDefault bool) error {
	lo, hi := int64(0), int64(1)
	switch kind {
	case reflect.Bool:
	case reflect.Int32:
		lo, hi = math.MinInt32, math.MaxInt32
	case reflect.Uint32:
		hi = math.MaxUint32
	default:
		return errors.New("a discriminant is a bool, an int32 or a uint32")
	}
	for _, v := range values {
		if v < lo || v > hi {
			return fmt.Errorf("the discriminant is never %d", v)
		}
		if _, twice := u.arms[v]; twice {
			return fmt.Errorf("a second arm for %d", v)
		}
		u.arms[v] = i
	}
	if isDefault {
		if u.hasDefault {
			return errors.New("a second default")
		}
		u.other, u.hasDefault = i, true
	}
	return nil
}

// fieldTag is what the tag of a field says.
type fieldTag struct {
	isSwitch, isDefault, bounded bool

	max   uint32
	cases []int64
	voids []int64
}

// parseTag reads the items of an xdr tag; a number alone goes on with the list
// of cases or voids before it.
func parseTag(tag reflect.StructTag) (fieldTag, error) {
	var out fieldTag
	text, ok := tag.Lookup("xdr")
	if !ok && strings.Contains(" "+string(tag), " xdr:") {
		return out, errors.New("not in the form that Go gives to tags")
	}
	if text == "" {
		return out, nil
	}
	var list *[]int64
	for item := range strings.SplitSeq(text, ",") {
		name, value, valued := strings.Cut(item, "=")
		switch {
		case item == "switch":
			out.isSwitch, list = true, nil
		case item == "default":
			out.isDefault, list = true, nil
		case valued && name == "max":
			n, err := strconv.ParseUint(value, 10, 32)
			if err != nil {
				return out, fmt.Errorf("max: %w", err)
			}
			out.bounded, out.max, list = true, uint32(n), nil
			continue
		case valued && name == "case":
			list = &out.cases
		case valued && name == "void":
			list = &out.voids
		case valued || list == nil:
			return out, fmt.Errorf("%q is unknown", item)
		default:
			value = item
		}
		if list == nil {
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return out, fmt.Errorf("%q: %w", item, err)
		}
		*list = append(*list, n)
	}
	return out, nil
}
