package emit

// checkFunctions are the checks of a generated test file; BASE is its name.
const checkFunctions = `
// genBASEValue is what every type here is.
type genBASEValue interface {
	xdr.Appender
	xdr.Unmarshaler
}

// genBASELimit is a value whose one field is empty, as long as its bound allows,
// and longer by one.
type genBASELimit struct{ empty, full, over genBASEValue }

type genBASEType struct {
	name   string
	fresh  func() genBASEValue
	values []genBASEValue
	bad    []genBASEValue // with a discriminant that selects no arm
	limits []genBASELimit
}

// genBASEEncode encodes v behind something else, in memory that was used before:
// whatever was there must not show.
func genBASEEncode(t *testing.T, v genBASEValue) []byte {
	t.Helper()
	const head = "head"
	b, err := v.AppendXDR([]byte(head))
	if err != nil {
		t.Fatalf("%+v: %v", v, err)
	}
	used := bytes.Repeat([]byte{0xa5}, len(b))
	again, err := v.AppendXDR(append(used[:0], head...))
	if err != nil || !bytes.Equal(again, b) || string(b[:len(head)]) != head || len(b)%4 != 0 {
		t.Fatalf("%+v is encoded as %x, and as %x: %v", v, b, again, err)
	}
	return b[len(head):]
}

// TestBASERoundTrip: what is decoded encodes as it came, into a fresh value and
// into one that held another, and a record that is cut anywhere is an error.
func TestBASERoundTrip(t *testing.T) {
	for _, typ := range genBASETypes() {
		t.Run(typ.name, func(t *testing.T) {
			used := typ.fresh()
			// Twice, so that what was empty follows what was full.
			for _, v := range append(typ.values, typ.values...) {
				b := genBASEEncode(t, v)
				for _, into := range []genBASEValue{typ.fresh(), used} {
					d := xdr.NewDecoder(b)
					if err := into.DecodeXDR(&d); err != nil || d.Finish() != nil {
						t.Fatalf("%+v: %v, then %v", v, err, d.Finish())
					}
					if again := genBASEEncode(t, into); !bytes.Equal(again, b) {
						t.Fatalf("%+v is encoded as %x and comes back as %x", v, b, again)
					}
				}
				for n := range len(b) {
					d := xdr.NewDecoder(b[:n])
					if err := typ.fresh().DecodeXDR(&d); err == nil {
						t.Fatalf("%+v: %d of %d bytes are decoded", v, n, len(b))
					}
				}
			}
		})
	}
}

// TestBASELimits: a length may be what its bound is, and no more, in either
// direction; what is refused leaves the buffer as it was.
func TestBASELimits(t *testing.T) {
	for _, typ := range genBASETypes() {
		for i, limit := range typ.limits {
			var lerr *xdr.LengthError
			if b, err := limit.over.AppendXDR([]byte{1}); !errors.As(err, &lerr) || !bytes.Equal(b, []byte{1}) {
				t.Errorf("%s, %d: encoding above the bound gives %v and %d bytes", typ.name, i, err, len(b))
			}
			empty, full := genBASEEncode(t, limit.empty), genBASEEncode(t, limit.full)
			d := xdr.NewDecoder(full)
			if err := typ.fresh().DecodeXDR(&d); err != nil || d.Finish() != nil {
				t.Errorf("%s, %d: decoding at the bound gives %v", typ.name, i, d.Finish())
			}
			// The two differ first in the length, whose last byte counts.
			at := 0
			for empty[at] == full[at] {
				at++
			}
			at &^= 3
			n := uint32(full[at])<<24 | uint32(full[at+1])<<16 | uint32(full[at+2])<<8 | uint32(full[at+3])
			d = xdr.NewDecoder(xdr.AppendUint32(full[:at:at], n+1))
			if err := typ.fresh().DecodeXDR(&d); !errors.As(err, &lerr) {
				t.Errorf("%s, %d: decoding above the bound gives %v", typ.name, i, err)
			}
		}
	}
}

// TestBASENoArm: a union whose discriminant selects no arm is refused.
func TestBASENoArm(t *testing.T) {
	for _, typ := range genBASETypes() {
		for _, v := range typ.bad {
			var verr *xdr.ValueError
			if b, err := v.AppendXDR([]byte{1}); !errors.As(err, &verr) || !bytes.Equal(b, []byte{1}) {
				t.Errorf("%+v is encoded: %v", v, err)
			}
			d := xdr.NewDecoder(xdr.AppendInt32(nil, int32(verr.Value)))
			if err := typ.fresh().DecodeXDR(&d); !errors.As(err, &verr) {
				t.Errorf("%s: the discriminant %d is decoded: %v", typ.name, verr.Value, err)
			}
		}
	}
}

// genBASEUnassigned is what v holds of values that their enum lacks; 0 may be that of
// an arm that was not selected.
func genBASEUnassigned(v reflect.Value) (list []any) {
	switch v.Kind() {
	case reflect.Int32:
		if !v.CanInterface() {
			return nil // memory for lists
		}
		if e, ok := v.Interface().(interface{ assigned() bool }); ok && v.Int() != 0 && !e.assigned() {
			return []any{e}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return genBASEUnassigned(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			list = append(list, genBASEUnassigned(v.Field(i))...)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			list = append(list, genBASEUnassigned(v.Index(i))...)
		}
	}
	return list
}

// TestBASEEnums: what an enum lacks is decoded nowhere.
func TestBASEEnums(t *testing.T) {
	for _, typ := range genBASETypes() {
		for _, v := range typ.values {
			b := genBASEEncode(t, v)
			for at := 0; at < len(b); at += 4 {
				other := append(xdr.AppendUint32(b[:at:at], 0x7ffffffe), b[at+4:]...)
				into := typ.fresh()
				d := xdr.NewDecoder(other)
				if into.DecodeXDR(&d) == nil {
					if bad := genBASEUnassigned(reflect.ValueOf(into)); len(bad) > 0 {
						t.Fatalf("%s: %x is decoded to %v", typ.name, other, bad)
					}
				}
			}
		}
	}
}

// FuzzBASEDecode: no record makes a decoder panic, and what is decoded whole can
// be encoded and then comes back the same, with no value that an enum lacks. The first
// byte selects the type.
func FuzzBASEDecode(f *testing.F) {
	types := genBASETypes()
	for i, typ := range types {
		for _, v := range typ.values {
			b, err := v.AppendXDR([]byte{byte(i)})
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		typ := types[int(b[0])%len(types)]
		first, second := typ.fresh(), typ.fresh()
		d := xdr.NewDecoder(b[1:])
		if first.DecodeXDR(&d) != nil || d.Finish() != nil {
			return
		}
		if bad := genBASEUnassigned(reflect.ValueOf(first)); len(bad) > 0 {
			t.Fatalf("%s %x is decoded to %v", typ.name, b[1:], bad)
		}
		once := genBASEEncode(t, first)
		d.Reset(once)
		if err := second.DecodeXDR(&d); err != nil || d.Finish() != nil {
			t.Fatalf("%s %x is decoded, and its own encoding %x is not: %v", typ.name, b[1:], once, d.Finish())
		}
		if twice := genBASEEncode(t, second); !bytes.Equal(twice, once) {
			t.Fatalf("%s: %x became %x", typ.name, once, twice)
		}
	})
}
`

// bulkChecks follow where the specification has bulk data.
const bulkChecks = `
// genBASETake takes b apart as a transport does: every head that is too short
// asks for more, data goes to a buffer, its padding is skipped.
func genBASETake(t *testing.T, v xdr.BulkResult, b []byte) {
	t.Helper()
	for n := range len(b) + 1 {
		d := xdr.NewDecoder(b[:n])
		dst, size, err := v.DecodeHead(&d)
		if errors.Is(err, xdr.ErrShort) && n < len(b) {
			continue
		}
		if err != nil {
			t.Fatalf("the head of %x, %d bytes of it: %v", b, n, err)
		}
		if dst == nil {
			return
		}
		data := b[n-d.Len():]
		copy(dst[:size], data)
		tail := xdr.NewDecoder(data[size+xdr.Pad(size):])
		if err := v.DecodeTail(&tail); err != nil || tail.Finish() != nil {
			t.Fatalf("the tail of %x: %v", b, tail.Finish())
		}
		return
	}
}

// TestBASEBulk: head, data and tail are the whole, in both directions.
func TestBASEBulk(t *testing.T) {
	for _, typ := range genBASETypes() {
		for _, v := range typ.values {
			bulk, ok := v.(xdr.BulkArgs)
			if !ok {
				continue
			}
			whole := genBASEEncode(t, v)
			b, err := bulk.AppendHead(nil)
			if err == nil {
				b, err = bulk.AppendTail(append(b, bulk.Bulk()...))
			}
			if err != nil || !bytes.Equal(b, whole) {
				t.Errorf("%s: in segments it is %x, in one piece %x: %v", typ.name, b, whole, err)
			}
			// v holds the buffer that the data goes to: its own, of the right size.
			genBASETake(t, v.(xdr.BulkResult), whole)
			if again := genBASEEncode(t, v); !bytes.Equal(again, whole) {
				t.Errorf("%s: %x comes back as %x", typ.name, whole, again)
			}
		}
	}
}
`

// listChecks follow where the specification has linked lists.
const listChecks = `
// TestBASEList: a list made one element at a time is taken one at a time.
func TestBASEList(t *testing.T) {
	type node interface {
		genBASEValue
		Next(d *xdr.Decoder) bool
		AppendNext(b []byte) ([]byte, error)
	}
	for _, typ := range genBASETypes() {
		into, ok := typ.fresh().(node)
		if !ok {
			continue
		}
		var list []byte
		for _, v := range typ.values {
			var err error
			if list, err = v.(node).AppendNext(list); err != nil {
				t.Fatal(err)
			}
		}
		d := xdr.NewDecoder(xdr.AppendBool(list, false))
		n := 0
		for ; into.Next(&d); n++ {
			if got, want := genBASEEncode(t, into), genBASEEncode(t, typ.values[n]); !bytes.Equal(got, want) {
				t.Errorf("%s, element %d: got %x, want %x", typ.name, n, got, want)
			}
		}
		if d.Finish() != nil || n != len(typ.values) {
			t.Errorf("%s: %d of %d elements, then %v", typ.name, n, len(typ.values), d.Err())
		}
		d.Reset(list) // its end is missing
		for range len(typ.values) + 1 {
			if !into.Next(&d) {
				break
			}
		}
		if !errors.Is(d.Err(), xdr.ErrShort) {
			t.Errorf("%s: a list without an end gives %v", typ.name, d.Err())
		}
	}
}
`
