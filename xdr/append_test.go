package xdr

import (
	"bytes"
	"errors"
	"math"
	"testing"
)

// TestAppend: what each function writes, by the examples and figures of RFC
// 4506, into fresh memory and into memory that was used before.
func TestAppend(t *testing.T) {
	for _, tt := range []struct {
		name string
		f    func(b []byte) []byte
		want string
	}{
		{"uint32", func(b []byte) []byte { return AppendUint32(b, 0xfffefdfc) }, "\xff\xfe\xfd\xfc"},
		{"int32", func(b []byte) []byte { return AppendInt32(b, -2) }, "\xff\xff\xff\xfe"},
		{"uint64", func(b []byte) []byte { return AppendUint64(b, 0x0102030405060708) }, "\x01\x02\x03\x04\x05\x06\x07\x08"},
		{"int64", func(b []byte) []byte { return AppendInt64(b, -1) }, "\xff\xff\xff\xff\xff\xff\xff\xff"},
		{"false", func(b []byte) []byte { return AppendBool(b, false) }, "\x00\x00\x00\x00"},
		{"true", func(b []byte) []byte { return AppendBool(b, true) }, "\x00\x00\x00\x01"},
		{"float32", func(b []byte) []byte { return AppendFloat32(b, -1.5) }, "\xbf\xc0\x00\x00"},
		{"float64", func(b []byte) []byte { return AppendFloat64(b, 2) }, "\x40\x00\x00\x00\x00\x00\x00\x00"},
		{"nothing", func(b []byte) []byte { return AppendOpaque(b, nil) }, "\x00\x00\x00\x00"},
		{"one byte", func(b []byte) []byte { return AppendOpaque(b, []byte("a")) }, "\x00\x00\x00\x01a\x00\x00\x00"},
		{"two bytes", func(b []byte) []byte { return AppendOpaque(b, []byte("ab")) }, "\x00\x00\x00\x02ab\x00\x00"},
		{"three bytes", func(b []byte) []byte { return AppendOpaque(b, []byte("abc")) }, "\x00\x00\x00\x03abc\x00"},
		{"four bytes", func(b []byte) []byte { return AppendOpaque(b, []byte("abcd")) }, "\x00\x00\x00\x04abcd"},
		{"fixed", func(b []byte) []byte { return AppendFixed(b, []byte("abcde")) }, "abcde\x00\x00\x00"},
		{"fixed nothing", func(b []byte) []byte { return AppendFixed(b, nil) }, ""},
		{"pad", func(b []byte) []byte { return AppendPad(b, 1<<20+1) }, "\x00\x00\x00"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.f(nil); string(got) != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			used := bytes.Repeat([]byte{0xa5}, 64)
			if got := tt.f(append(used[:0], "head"...)); string(got) != "head"+tt.want {
				t.Errorf("in used memory: got %q, want %q", got, "head"+tt.want)
			}
		})
	}
}

func TestPad(t *testing.T) {
	for n, want := range []int{0, 3, 2, 1, 0, 3} {
		if got := Pad(n); got != want {
			t.Errorf("Pad(%d) = %d, want %d", n, got, want)
		}
	}
}

func TestExtend(t *testing.T) {
	b := append(make([]byte, 0, 8), "abcd"...)
	within := Extend(b, 4)
	if len(within) != 8 || &within[0] != &b[0] || string(within[:4]) != "abcd" {
		t.Errorf("within the capacity: %q", within)
	}
	beyond := Extend(b, 5)
	if len(beyond) != 9 || string(beyond[:4]) != "abcd" {
		t.Errorf("beyond the capacity: %q", beyond)
	}
	if got := Extend(nil, 0); len(got) != 0 {
		t.Errorf("nothing: %q", got)
	}
}

func TestResize(t *testing.T) {
	s := Resize([]int(nil), 2)
	if len(s) != 2 {
		t.Fatalf("%d elements, want 2", len(s))
	}
	s[0], s[1] = 1, 2
	if s = Resize(s[:0], 2); s[0] != 1 || s[1] != 2 {
		t.Errorf("in the same memory the elements are %v", s)
	}
	if s = Resize(s[:1], 5); len(s) != 5 || s[0] != 1 || s[1] != 2 || s[4] != 0 {
		t.Errorf("grown, the elements are %v", s)
	}
	if s = Resize([]int(nil), 0); s != nil {
		t.Errorf("no elements become %#v", s)
	}
}

func TestCheckLen(t *testing.T) {
	if err := CheckLen("name", 5, 5); err != nil {
		t.Errorf("at the bound: %v", err)
	}
	var lerr *LengthError
	if err := CheckLen("name", 6, 5); !errors.As(err, &lerr) || *lerr != (LengthError{What: "name", Len: 6, Max: 5}) {
		t.Errorf("above the bound: %v", err)
	}
	if err := CheckLen("", math.MaxInt, math.MaxUint32); err == nil && math.MaxInt > math.MaxUint32 {
		t.Error("a length that does not fit in 32 bits is no error")
	}
}

func TestBoolValue(t *testing.T) {
	if BoolValue(false) != 0 || BoolValue(true) != 1 {
		t.Error("a bool is 0 or 1")
	}
}
