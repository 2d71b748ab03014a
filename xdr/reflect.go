package xdr

import (
	"errors"
	"fmt"
	"reflect"
)

// Marshal appends the encoding of v, or of what v points to, to b. It looks at
// the type by reflection and is for prototypes: for trying out a protocol before
// its .x file is written. It works out the type anew in each call, and allocates
// for it; the code that xdrgen writes does neither.
//
//	bool                      bool
//	int32, uint32             int, unsigned int; a named int32 is an enum
//	int64, uint64             hyper, unsigned hyper
//	float32, float64          float, double
//	string                    string<>
//	[]byte, [n]byte           opaque<>, opaque[n]
//	[]T, [n]T                 T<>, T[n]
//	*T                        optional data; nil is absent
//	struct                    struct, its fields in their order
//
// A struct whose last field points to its own type is an element of a linked
// list, which may have any length. Other types that contain themselves nest
// [MaxDepth] deep at most: every pointer and every slice on the way is a level.
//
// The tag `xdr:"max=255"` bounds a string, an opaque or a slice, or what a pointer
// to one of these points to. A struct whose first field, a bool, an int32 or a
// uint32, is tagged `xdr:"switch"` is a union: each further field is one arm, and
// its tag `xdr:"case=1,2"` or `xdr:"default"` says of which values. Values without
// data are listed on the first field, `xdr:"switch,void=0,3"`, and
// `xdr:"switch,default"` makes all values without an arm void. Fields of arms
// that are not selected are not looked at.
//
// A type that is an [Appender], itself or through a pointer, is encoded by its
// method wherever it occurs. Fields that are not exported, integers of other
// sizes, maps and the like are errors that name the field. What the
// specification forbids is a [*LengthError], [*ValueError] or [*DepthError]. With
// any error, b is returned as it was.
func Marshal(b []byte, v any) ([]byte, error) {
	value := reflect.ValueOf(v)
	if !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil() {
		return b, errors.New("xdr: Marshal of nil")
	}
	if value.Kind() == reflect.Pointer {
		value = value.Elem()
	} else {
		// Methods on pointers need an address, and all that is in an
		// addressable value has one.
		p := reflect.New(value.Type()).Elem()
		p.Set(value)
		value = p
	}
	s, err := shapeOf(value.Type(), reflect.TypeFor[Appender]())
	if err != nil {
		return b, err
	}
	e := encoder{b: b}
	if err := e.value(s, value); err != nil {
		return b, err
	}
	return e.b, nil
}

// Unmarshal decodes the value that record begins with into what v points to, and
// returns what follows it. The types, the tags and the purpose are those of
// [Marshal]; it is an [Unmarshaler] that is decoded by its method.
//
// Nothing that reflection decodes is part of record: strings and bytes are
// copied, and slices and what pointers point to are new. Slices of no elements
// are nil, and so are the arms of a union that were not selected. What a method
// decodes may be borrowed, as its type says. What is allocated is bounded by
// the length of record, because a length that the record cannot hold is an
// error first; for this each element with a method of its own counts as four
// bytes. With an error, what v points to may be decoded in part.
func Unmarshal(record []byte, v any) (rest []byte, err error) {
	value := reflect.ValueOf(v)
	if value.Kind() != reflect.Pointer || value.IsNil() {
		return nil, fmt.Errorf("xdr: Unmarshal into %T: not a pointer, or nil", v)
	}
	s, err := shapeOf(value.Type().Elem(), reflect.TypeFor[Unmarshaler]())
	if err != nil {
		return nil, err
	}
	// The decoder is handed to methods, so that depth and errors are counted
	// through them.
	d := NewDecoder(record)
	decodeValue(&d, s, value.Elem())
	if err := d.Err(); err != nil {
		return nil, err
	}
	return d.Rest(), nil
}

// encoder is one Marshal.
type encoder struct {
	b     []byte
	depth int
}

// value appends v, which is addressable.
func (e *encoder) value(s *shape, v reflect.Value) error {
	if s.own {
		b, err := v.Addr().Interface().(Appender).AppendXDR(e.b)
		if err == nil {
			e.b = b
		}
		return err
	}
	switch s.kind {
	case reflect.Bool:
		e.b = AppendBool(e.b, v.Bool())
	case reflect.Int32:
		e.b = AppendInt32(e.b, int32(v.Int()))
	case reflect.Uint32:
		e.b = AppendUint32(e.b, uint32(v.Uint()))
	case reflect.Int64:
		e.b = AppendInt64(e.b, v.Int())
	case reflect.Uint64:
		e.b = AppendUint64(e.b, v.Uint())
	case reflect.Float32:
		e.b = AppendFloat32(e.b, float32(v.Float()))
	case reflect.Float64:
		e.b = AppendFloat64(e.b, v.Float())
	case reflect.String:
		return e.opaque(s, []byte(v.String()))
	case reflect.Slice:
		return e.slice(s, v)
	case reflect.Array:
		if !s.bytes {
			return e.elements(s.elem, v)
		}
		e.b = AppendFixed(e.b, v.Bytes())
	case reflect.Pointer:
		return e.optional(s, v)
	case reflect.Struct:
		if s.union != nil {
			return e.union(s, v)
		}
		return e.structure(s.fields, v)
	}
	return nil
}

func (e *encoder) opaque(s *shape, p []byte) error {
	if err := CheckLen(s.what, len(p), s.max); err != nil {
		return err
	}
	e.b = AppendOpaque(e.b, p)
	return nil
}

func (e *encoder) slice(s *shape, v reflect.Value) error {
	if s.bytes {
		return e.opaque(s, v.Bytes())
	}
	if err := CheckLen(s.what, v.Len(), s.max); err != nil {
		return err
	}
	e.b = AppendUint32(e.b, uint32(v.Len()))
	if v.Len() == 0 {
		return nil
	}
	if err := e.enter(s); err != nil {
		return err
	}
	err := e.elements(s.elem, v)
	e.depth--
	return err
}

func (e *encoder) elements(elem *shape, v reflect.Value) error {
	for i := range v.Len() {
		if err := e.value(elem, v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

func (e *encoder) structure(fields []*shape, v reflect.Value) error {
	for i, f := range fields {
		if err := e.value(f, v.Field(i)); err != nil {
			return err
		}
	}
	return nil
}

// optional appends what v points to, behind whether there is any. A list is a
// loop, and one that bites its own tail an error: mark stays at an element while
// twice as many as the last time go by, so that a ring comes back to it.
func (e *encoder) optional(s *shape, v reflect.Value) error {
	if v.IsNil() {
		e.b = AppendBool(e.b, false)
		return nil
	}
	if err := e.enter(s); err != nil {
		return err
	}
	defer func() { e.depth-- }()
	for mark, n, turn := v.UnsafePointer(), 0, 1; !v.IsNil(); n++ {
		e.b = AppendBool(e.b, true)
		v = v.Elem()
		if s.elem.own || !s.elem.list {
			return e.value(s.elem, v)
		}
		last := len(s.elem.fields) - 1
		if err := e.structure(s.elem.fields[:last], v); err != nil {
			return err
		}
		v = v.Field(last)
		if v.UnsafePointer() == mark {
			return fmt.Errorf("xdr: %s: the list is a ring and has no end", s.what)
		}
		if n == turn {
			mark, n, turn = v.UnsafePointer(), 0, turn*2
		}
	}
	e.b = AppendBool(e.b, false)
	return nil
}

func (e *encoder) union(s *shape, v reflect.Value) error {
	if err := e.value(s.fields[0], v.Field(0)); err != nil {
		return err
	}
	value := discriminant(v.Field(0))
	i, ok := s.union.arm(value)
	if !ok {
		return &ValueError{What: s.what, Value: value}
	}
	if i == 0 {
		return nil
	}
	return e.value(s.fields[i], v.Field(i))
}

// enter is [Decoder.Enter] for the other direction.
func (e *encoder) enter(s *shape) error {
	if e.depth >= MaxDepth {
		return &DepthError{What: s.what}
	}
	e.depth++
	return nil
}

// decodeValue decodes over v; errors are d's.
func decodeValue(d *Decoder, s *shape, v reflect.Value) {
	if s.own {
		if err := v.Addr().Interface().(Unmarshaler).DecodeXDR(d); err != nil {
			d.Fail(err)
		}
		return
	}
	switch s.kind {
	case reflect.Bool:
		v.SetBool(d.Bool())
	case reflect.Int32:
		v.SetInt(int64(d.Int32()))
	case reflect.Uint32:
		v.SetUint(uint64(d.Uint32()))
	case reflect.Int64:
		v.SetInt(d.Int64())
	case reflect.Uint64:
		v.SetUint(d.Uint64())
	case reflect.Float32:
		v.SetFloat(float64(d.Float32()))
	case reflect.Float64:
		v.SetFloat(d.Float64())
	case reflect.String:
		v.SetString(string(d.Opaque(s.what, s.max)))
	case reflect.Slice:
		decodeSlice(d, s, v)
	case reflect.Array:
		if s.bytes {
			copy(v.Bytes(), d.Fixed(v.Len()))
			return
		}
		decodeElements(d, s.elem, v)
	case reflect.Pointer:
		decodeOptional(d, s, v)
	case reflect.Struct:
		decodeStruct(d, s, v)
	}
}

func decodeSlice(d *Decoder, s *shape, v reflect.Value) {
	v.SetZero()
	if s.bytes {
		v.SetBytes(append([]byte(nil), d.Opaque(s.what, s.max)...))
		return
	}
	n := d.ArrayLen(s.what, s.max, s.elem.min)
	if n == 0 || !d.Enter(s.what) {
		return
	}
	v.Set(reflect.MakeSlice(s.typ, n, n))
	decodeElements(d, s.elem, v)
	d.Leave()
}

func decodeElements(d *Decoder, elem *shape, v reflect.Value) {
	for i := 0; i < v.Len() && d.err == nil; i++ {
		decodeValue(d, elem, v.Index(i))
	}
}

// decodeOptional decodes what may be there. A list is a loop that the record
// bounds: each element takes four bytes of it at least.
func decodeOptional(d *Decoder, s *shape, v reflect.Value) {
	v.SetZero()
	if !d.Bool() || !d.Enter(s.what) {
		return
	}
	defer d.Leave()
	for more := true; more; more = d.Bool() {
		v.Set(reflect.New(s.elem.typ))
		v = v.Elem()
		if s.elem.own || !s.elem.list {
			decodeValue(d, s.elem, v)
			return
		}
		last := len(s.elem.fields) - 1
		for i, f := range s.elem.fields[:last] {
			decodeValue(d, f, v.Field(i))
		}
		v = v.Field(last)
	}
}

func decodeStruct(d *Decoder, s *shape, v reflect.Value) {
	if s.union == nil {
		for i, f := range s.fields {
			decodeValue(d, f, v.Field(i))
		}
		return
	}
	v.SetZero()
	decodeValue(d, s.fields[0], v.Field(0))
	value := discriminant(v.Field(0))
	i, ok := s.union.arm(value)
	if !ok {
		d.Fail(&ValueError{What: s.what, Value: value})
	}
	if i != 0 {
		decodeValue(d, s.fields[i], v.Field(i))
	}
}
