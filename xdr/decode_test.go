package xdr

import (
	"bytes"
	"errors"
	"math"
	"testing"
)

// TestDecode: each method takes what its counterpart wrote, and nothing else.
func TestDecode(t *testing.T) {
	b := AppendUint32(nil, math.MaxUint32)
	b = AppendInt32(b, math.MinInt32)
	b = AppendUint64(b, math.MaxUint64)
	b = AppendInt64(b, math.MinInt64)
	b = AppendBool(b, true)
	b = AppendBool(b, false)
	b = AppendFloat32(b, 1.5)
	b = AppendFloat64(b, -0.25)
	b = AppendOpaque(b, []byte("name"))
	b = AppendOpaque(b, []byte("odd"))
	b = AppendFixed(b, []byte("fixed"))
	b = AppendUint32(b, 2)
	b = append(b, "elements"...)

	d := NewDecoder(b)
	if v := d.Uint32(); v != math.MaxUint32 {
		t.Errorf("uint32: %d", v)
	}
	if v := d.Int32(); v != math.MinInt32 {
		t.Errorf("int32: %d", v)
	}
	if v := d.Uint64(); v != math.MaxUint64 {
		t.Errorf("uint64: %d", v)
	}
	if v := d.Int64(); v != math.MinInt64 {
		t.Errorf("int64: %d", v)
	}
	if yes, no := d.Bool(), d.Bool(); !yes || no {
		t.Errorf("bools: %v, %v", yes, no)
	}
	if v := d.Float32(); v != 1.5 {
		t.Errorf("float32: %v", v)
	}
	if v := d.Float64(); v != -0.25 {
		t.Errorf("float64: %v", v)
	}
	if v := d.Opaque("name", 4); string(v) != "name" || cap(v) != 4 {
		t.Errorf("opaque: %q with room for %d", v, cap(v))
	}
	if v := d.Opaque("odd", 3); string(v) != "odd" {
		t.Errorf("opaque with padding: %q", v)
	}
	if v := d.Fixed(5); string(v) != "fixed" {
		t.Errorf("fixed: %q", v)
	}
	if n := d.ArrayLen("elements", 2, 4); n != 2 || d.Len() != 8 || string(d.Rest()) != "elements" {
		t.Errorf("array: %d elements in %q", n, d.Rest())
	}
	if p := d.Block(8); string(p) != "elements" || cap(p) != 8 {
		t.Errorf("block: %q", p)
	}
	if err := d.Finish(); err != nil {
		t.Error(err)
	}
}

// TestBorrow: decoded bytes are a part of the record, and appending to them
// does not write into it.
func TestBorrow(t *testing.T) {
	b := append(AppendOpaque(nil, []byte("abcd")), "next"...)
	d := NewDecoder(b)
	p := d.Opaque("", 4)
	if &p[0] != &b[4] {
		t.Error("the bytes were copied")
	}
	if _ = append(p, "XXXX"...); string(b[8:]) != "next" {
		t.Errorf("appending wrote %q into the record", b[8:])
	}
}

// TestDecodeErrors: what is refused, why, and that the error sticks.
func TestDecodeErrors(t *testing.T) {
	short := func(d *Decoder) error { return ErrShort }
	length := func(want LengthError) func(*Decoder) error { return func(*Decoder) error { return &want } }
	value := func(want ValueError) func(*Decoder) error { return func(*Decoder) error { return &want } }
	for _, tt := range []struct {
		name string
		in   string
		f    func(d *Decoder)
		want func(*Decoder) error
	}{
		{"uint32", "\x00\x00\x00", func(d *Decoder) { d.Uint32() }, short},
		{"uint64", "\x00\x00\x00\x00\x00\x00\x00", func(d *Decoder) { d.Uint64() }, short},
		{"block", "\x00\x00\x00\x00", func(d *Decoder) { d.Block(8) }, short},
		{"fixed", "abcd", func(d *Decoder) { d.Fixed(5) }, short},
		{"fixed padding", "abcdef", func(d *Decoder) { d.Fixed(5) }, short},
		{"fixed negative", "abcdef", func(d *Decoder) { d.Fixed(-1) }, short},
		{"opaque", "\x00\x00\x00\x05abcd", func(d *Decoder) { d.Opaque("x", 8) }, short},
		{"opaque length", "\x00\x00", func(d *Decoder) { d.Opaque("x", 8) }, short},
		{"opaque, as long as can be", "\xff\xff\xff\xffabcd", func(d *Decoder) { d.Opaque("x", math.MaxUint32) }, short},
		{"opaque, negative in 32 bits", "\x80\x00\x00\x00abcd", func(d *Decoder) { d.Opaque("x", math.MaxUint32) }, short},
		{"opaque above", "\x00\x00\x00\x05abcdefgh", func(d *Decoder) { d.Opaque("x", 4) }, length(LengthError{"x", 5, 4})},
		{"array above", "\x00\x00\x00\x05abcdefgh", func(d *Decoder) { d.ArrayLen("x", 4, 1) }, length(LengthError{"x", 5, 4})},
		{"array too long for the record", "\x00\x00\x00\x03abcdefgh", func(d *Decoder) { d.ArrayLen("x", 9, 4) }, short},
		{"array, hostile", "\xff\xff\xff\xffabcdefgh", func(d *Decoder) { d.ArrayLen("x", math.MaxUint32, 4) }, short},
		{"bool", "\x00\x00\x00\x02", func(d *Decoder) { d.Bool() }, value(ValueError{"bool", 2})},
		{"bool in a run", "", func(d *Decoder) { d.BoolOf(1 << 31) }, value(ValueError{"bool", 1 << 31})},
		{"trailing", "\x00\x00\x00\x01", func(d *Decoder) { _ = d.Finish() }, func(*Decoder) error { return ErrTrailing }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := NewDecoder([]byte(tt.in))
			tt.f(&d)
			want := tt.want(&d)
			if err := d.Err(); err == nil || err.Error() != want.Error() {
				t.Fatalf("got %v, want %v", err, want)
			}
			first := d.Err()
			d.Fail(errors.New("later"))
			if !errors.Is(d.Err(), first) || !errors.Is(d.Finish(), first) {
				t.Errorf("the error became %v", d.Err())
			}
		})
	}
}

// TestZeroAfterError: behind an error every method answers zero.
func TestZeroAfterError(t *testing.T) {
	d := NewDecoder(bytes.Repeat([]byte{0, 0, 0, 1}, 100))
	d.Fail(ErrShort)
	if d.Len() != 0 || d.Uint32() != 0 || d.Int32() != 0 || d.Uint64() != 0 || d.Int64() != 0 || d.Bool() ||
		d.Float32() != 0 || d.Float64() != 0 || d.Opaque("", 9) != nil || d.Fixed(4) != nil ||
		d.ArrayLen("", 9, 1) != 0 || d.Block(4) != nil || d.Rest() != nil {
		t.Error("something was decoded behind an error")
	}
	if d.Reset([]byte{0, 0, 0, 7}); d.Uint32() != 7 || d.Finish() != nil {
		t.Errorf("after Reset: %v", d.Err())
	}
}

func TestDepth(t *testing.T) {
	var d Decoder
	for i := range MaxDepth {
		if !d.Enter("tree") {
			t.Fatalf("level %d: %v", i, d.Err())
		}
	}
	d.Leave()
	if !d.Enter("tree") {
		t.Errorf("one level up and down again: %v", d.Err())
	}
	var derr *DepthError
	if d.Enter("tree") || !errors.As(d.Err(), &derr) || derr.What != "tree" {
		t.Errorf("level %d: %v", MaxDepth, d.Err())
	}
}

func TestBulkLen(t *testing.T) {
	buf := make([]byte, 4)
	for _, tt := range []struct {
		name  string
		in    []byte
		buf   []byte
		limit uint32
		n     int
		err   error
	}{
		{"less than the buffer", AppendUint32(nil, 3), buf, 9, 3, nil},
		{"the whole buffer", AppendUint32(nil, 4), buf, 9, 4, nil},
		{"nothing", AppendUint32(nil, 0), buf, 9, 0, nil},
		{"nothing into nothing", AppendUint32(nil, 0), nil, 9, 0, nil},
		{"more than the buffer", AppendUint32(nil, 5), buf, 9, 0, &LengthError{"data", 5, 4}},
		{"more than the bound", AppendUint32(nil, 4), buf, 3, 0, &LengthError{"data", 4, 3}},
		{"short", []byte{0, 0}, buf, 9, 0, ErrShort},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := NewDecoder(tt.in)
			dst, err := d.BulkLen("data", tt.limit, tt.buf)
			if tt.err != nil {
				if err == nil || err.Error() != tt.err.Error() || dst != nil || d.Err() == nil {
					t.Errorf("got %v and %v, want %v", dst, err, tt.err)
				}
				return
			}
			if err != nil || dst == nil || len(dst) != tt.n || cap(dst) != tt.n {
				t.Errorf("got %v (%d, %d) and %v", dst, len(dst), cap(dst), err)
			}
			if tt.n > 0 && &dst[0] != &buf[0] {
				t.Error("the data would go somewhere else")
			}
		})
	}
}

// TestAllocs: neither direction allocates.
func TestAllocs(t *testing.T) {
	name := []byte("a name of some length")
	buf := make([]byte, 0, 256)
	n := testing.AllocsPerRun(100, func() {
		b := AppendUint64(AppendBool(AppendUint32(buf, 1), true), 2)
		b = AppendFixed(AppendOpaque(b, name), name)
		d := NewDecoder(b)
		d.Uint32()
		d.Bool()
		d.Uint64()
		d.Opaque("name", 64)
		d.Fixed(len(name))
		if d.Finish() != nil {
			t.Fatal(d.Err())
		}
	})
	if n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// FuzzDecoder runs the methods in any order over any record: nothing panics,
// what is given out is part of the record and in order, and an error sticks.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, AppendOpaque(AppendUint64(AppendBool(nil, true), 7), []byte("abc")))
	f.Add([]byte{5, 5, 5}, []byte("\x00\x00\x00\x01a\x00\x00\x00\xff\xff\xff\xffabcd"))
	f.Fuzz(func(t *testing.T, ops, record []byte) {
		d := NewDecoder(record)
		for i, op := range ops {
			left, failed := d.Len(), d.Err()
			var got []byte
			switch limit := uint32(op) << 2; op % 10 {
			case 0:
				d.Uint32()
			case 1:
				d.Int64()
			case 2:
				d.Bool()
			case 3:
				d.Float32()
			case 4:
				d.Float64()
			case 5:
				got = d.Opaque("opaque", limit)
				if uint32(len(got)) > limit {
					t.Fatalf("an opaque of %d bytes, at most %d allowed", len(got), limit)
				}
			case 6:
				got = d.Fixed(int(op))
			case 7:
				if n := d.ArrayLen("array", limit, 4); n*4 > d.Len() {
					t.Fatalf("%d elements in %d bytes", n, d.Len())
				}
			case 8:
				got = d.Block(4 * int(op%8))
			case 9:
				if dst, err := d.BulkLen("bulk", limit, record); err == nil && len(dst) > len(record) {
					t.Fatalf("%d bytes into %d", len(dst), len(record))
				}
			}
			if failed != nil && (!errors.Is(d.Err(), failed) || d.Len() != 0 || len(got) != 0) {
				t.Fatalf("operation %d behind %v: %q, %v", i, failed, got, d.Err())
			}
			if d.Len() > left || len(got) > left-d.Len() && d.Err() == nil {
				t.Fatalf("operation %d: %d bytes left of %d, %d given out", i, d.Len(), left, len(got))
			}
		}
	})
}
