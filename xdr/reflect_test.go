package xdr_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/xdr"
)

type (
	colour  int32
	octet   byte
	subject struct {
		OK    bool
		Kind  colour
		Name  string   `xdr:"max=8"`
		Data  []byte   `xdr:"max=4"`
		Words []string `xdr:"max=2"`
		Hint  *string  `xdr:"max=3"`
	}
	node struct {
		ID   uint32
		Next *node
	}
	tree struct {
		ID   uint32
		Kids []tree
	}
	pair struct {
		Left  *pair
		Right uint32
	}
	nest  []nest
	reply struct {
		Status colour `xdr:"switch,void=3,-4"`
		Text   string `xdr:"case=0"`
		Size   uint64 `xdr:"case=1,2"`
	}
	maybe struct {
		Is  bool   `xdr:"switch,default"`
		Val uint32 `xdr:"case=1"`
	}
	other struct {
		Which uint32 `xdr:"switch,void=0"`
		Big   *other `xdr:"case=4294967295"`
		Rest  uint32 `xdr:"default"`
	}
	everything struct {
		A bool
		B int32
		C uint32
		D int64
		E uint64
		F float32
		G float64
		H string
		I []octet
		J [5]byte
		K []uint64
		L [2]colour
		M *subject
		N *node
		O tree
		P []reply
		Q maybe
		R *other
		S struct{}
	}
)

// byValue and byPointer have methods of their own: the number behind a mark.
// They refuse 13, as a specification might.
type (
	byValue   uint32
	byPointer struct{ n uint32 }
)

var errUnlucky = errors.New("unlucky")

const mark = 0x4d41524b

func appendMarked(b []byte, n uint32) ([]byte, error) {
	if n == 13 {
		return b, errUnlucky
	}
	return xdr.AppendUint32(xdr.AppendUint32(b, mark), n), nil
}

// decodeMarked returns errors that the Decoder does not know.
func decodeMarked(d *xdr.Decoder) (uint32, error) {
	if m := d.Uint32(); d.Err() == nil && m != mark {
		return 0, errUnlucky
	}
	return d.Uint32(), d.Err()
}

func (v byValue) AppendXDR(b []byte) ([]byte, error) { return appendMarked(b, uint32(v)) }
func (v *byValue) DecodeXDR(d *xdr.Decoder) error {
	n, err := decodeMarked(d)
	*v = byValue(n)
	return err
}
func (v *byPointer) AppendXDR(b []byte) ([]byte, error) { return appendMarked(b, v.n) }
func (v *byPointer) DecodeXDR(d *xdr.Decoder) (err error) {
	v.n, err = decodeMarked(d)
	return err
}

func ptr[T any](v T) *T { return &v }

// wants are values and their bytes, in hexadecimal with spaces.
var wants = []struct {
	v    any
	want string
}{
	{true, "00000001"},
	{int32(-2), "fffffffe"},
	{uint32(7), "00000007"},
	{int64(-2), "fffffffffffffffe"},
	{uint64(1) << 63, "8000000000000000"},
	{float32(1.5), "3fc00000"},
	{float64(-0.25), "bfd0000000000000"},
	{colour(3), "00000003"},
	{"abcde", "00000005 6162636465000000"},
	{[]byte{1, 2}, "00000002 01020000"},
	{[]octet{1, 2}, "00000002 01020000"},
	{[5]byte{1, 2, 3, 4, 5}, "0102030405000000"},
	{[0]byte{}, ""},
	{[]uint32{1, 2}, "00000002 00000001 00000002"},
	{[]uint32(nil), "00000000"},
	{[2]bool{true}, "00000001 00000000"},
	{[]string{"a", ""}, "00000002 00000001 61000000 00000000"},
	{struct{}{}, ""},
	{ptr[*uint32](nil), "00000000"},
	{ptr(ptr(uint32(9))), "00000001 00000009"},
	{subject{true, 2, "n", []byte{9}, nil, ptr("h")},
		"00000001 00000002 00000001 6e000000 00000001 09000000 00000000 00000001 00000001 68000000"},
	{node{1, &node{2, nil}}, "00000001 00000001 00000002 00000000"},
	{tree{1, []tree{{2, nil}, {3, []tree{{4, nil}}}}},
		"00000001 00000002 00000002 00000000 00000003 00000001 00000004 00000000"},
	{pair{&pair{nil, 2}, 1}, "00000001 00000000 00000002 00000001"},
	{nest{nil, nest{nil}}, "00000002 00000000 00000001 00000000"},
	{reply{Status: 0, Text: "t"}, "00000000 00000001 74000000"},
	{reply{Status: 2, Size: 5}, "00000002 0000000000000005"},
	{reply{Status: 3}, "00000003"},
	{reply{Status: -4}, "fffffffc"},
	{maybe{true, 6}, "00000001 00000006"},
	{maybe{}, "00000000"},
	{other{Which: math.MaxUint32, Big: &other{Which: 8, Rest: 1}}, "ffffffff 00000001 00000008 00000001"},
	{other{}, "00000000"},
	{byValue(5), "4d41524b 00000005"},
	{byPointer{5}, "4d41524b 00000005"},
	{[]byValue{5}, "00000001 4d41524b 00000005"},
	{[1]byPointer{{5}}, "4d41524b 00000005"},
	{struct{ P *byPointer }{&byPointer{5}}, "00000001 4d41524b 00000005"},
	{struct{ P *byPointer }{}, "00000000"},
	{struct {
		Is  bool `xdr:"switch,void=0"`
		Val byValue
	}{}, "refused: neither case nor default"},
	{struct {
		Is  bool    `xdr:"switch,void=0"`
		Val byValue `xdr:"case=1"`
	}{true, 5}, "00000001 4d41524b 00000005"},
}

// TestReflect: each value has the bytes of its specification, behind what is
// there already, and comes back from them with what follows left over.
func TestReflect(t *testing.T) {
	for _, tt := range wants {
		got, err := xdr.Marshal([]byte("head"), tt.v)
		if refused, ok := strings.CutPrefix(tt.want, "refused: "); ok {
			if err == nil || !strings.Contains(err.Error(), refused) || string(got) != "head" {
				t.Errorf("%#v: %q, %v; want %q", tt.v, got, err, refused)
			}
			continue
		}
		want, hexErr := hex.DecodeString(strings.ReplaceAll(tt.want, " ", ""))
		if hexErr != nil {
			t.Fatal(hexErr)
		}
		if err != nil || !bytes.Equal(got, append([]byte("head"), want...)) {
			t.Errorf("%#v: %x, %v; want %x", tt.v, got, err, want)
			continue
		}
		typ := reflect.TypeOf(tt.v)
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		into := reflect.New(typ)
		rest, err := xdr.Unmarshal(append(want, "tail"...), into.Interface())
		if err != nil || string(rest) != "tail" {
			t.Errorf("%#v: rest %q, %v", tt.v, rest, err)
		}
		back := into.Interface()
		if reflect.TypeOf(tt.v).Kind() != reflect.Pointer {
			back = into.Elem().Interface()
		}
		if !reflect.DeepEqual(back, tt.v) {
			t.Errorf("%#v came back as %#v", tt.v, back)
		}
		for cut := range len(want) {
			if _, err := xdr.Unmarshal(want[:cut], into.Interface()); !errors.Is(err, xdr.ErrShort) {
				t.Errorf("%#v cut to %d bytes: %v", tt.v, cut, err)
			}
		}
	}
}

func sample() *everything {
	return &everything{
		true, -1, 2, -3, 4, 5.5, -6.25, "name", []octet("data"), [5]byte{1, 2, 3, 4, 5},
		[]uint64{1, 2}, [2]colour{3, 4}, &subject{Name: "s", Words: []string{"w"}},
		&node{1, &node{2, nil}}, tree{1, []tree{{2, nil}}},
		[]reply{{Status: 0, Text: "t"}, {Status: 3}}, maybe{true, 1}, &other{Which: 9}, struct{}{},
	}
}

// TestUnmarshalReplaces: what was there before does not show through, and what
// is there now is not part of the record.
func TestUnmarshalReplaces(t *testing.T) {
	record, err := xdr.Marshal(nil, sample())
	if err != nil {
		t.Fatal(err)
	}
	old := sample()
	old.Q.Val, old.P, old.R = 99, append(old.P, old.P...), nil
	held := old.I
	if _, err := xdr.Unmarshal(record, old); err != nil {
		t.Fatal(err)
	}
	clear(record)
	if !reflect.DeepEqual(old, sample()) {
		t.Errorf("%+v", old)
	}
	if held[0] = 'X'; old.I[0] != 'd' {
		t.Error("the bytes of before were decoded over")
	}
	u := reply{Status: 1, Size: 7, Text: "stale"}
	if _, err := xdr.Unmarshal([]byte{0, 0, 0, 3}, &u); err != nil || u != (reply{Status: 3}) {
		t.Errorf("a void arm leaves %+v, %v", u, err)
	}
}

type embeds struct {
	byPointer
	More uint32
}

// TestReflectTypes: types and tags that cannot work are errors of both
// directions, whatever the value, and name the field.
func TestReflectTypes(t *testing.T) {
	type inner struct{ F []int }
	for _, tt := range []struct {
		v    any
		want string
	}{
		{new(int), "int: the size of int depends"},
		{new(struct{ A *struct{ B [2]uint } }), "struct.A.B: the size of uint depends"},
		{new(struct{ In inner }), "struct.In.F: the size of int depends"},
		{new(struct{ A uint8 }), "struct.A: XDR has no integer as small as uint8"},
		{new(struct{ A []int16 }), "struct.A: XDR has no integer as small as int16"},
		{new(map[string]string), "XDR has nothing like map[string]string"},
		{new(struct{ A any }), "struct.A: XDR has nothing like interface"},
		{new(struct{ A xdr.Appender }), "struct.A: XDR has nothing like xdr.Appender"},
		{new(struct{ A func() }), "XDR has nothing like func()"},
		{new(complex128), "XDR has nothing like complex128"},
		{new(struct{ A *bytes.Reader }), "struct.A.s: not exported"},
		{new([]struct{}), "take no bytes"},
		{new([9][0]byte), "take no bytes"},
		{new(embeds), "byPointer embedded"},
		{new([]embeds), "byPointer embedded"},
		{new(struct {
			A uint32 `xdr:"max=1"`
		}), "max is for strings"},
		{new(struct {
			A byValue `xdr:"max=1"`
		}), "max is for strings"},
		{new(struct {
			A string `xdr:"max=-1"`
		}), "struct.A: tag"},
		{new(struct {
			A string `xdr:"max=4294967296"`
		}), "out of range"},
		{new(struct {
			A string `xdr:"min=1"`
		}), `"min=1" is unknown`},
		{new(struct {
			A string `xdr:"7"`
		}), `"7" is unknown`},
		{reflect.New(reflect.StructOf([]reflect.StructField{
			{Name: "A", Type: reflect.TypeFor[string](), Tag: "xdr:max=7"},
		})).Interface(), "not in the form"},
		{new(struct {
			A uint32 `xdr:"case=1"`
		}), "an arm without a discriminant"},
		{new(struct {
			A uint32 `xdr:"void=1"`
		}), "void arms are listed on"},
		{new(struct {
			A uint64 `xdr:"switch"`
		}), "a discriminant is a bool"},
		{new(struct {
			A bool `xdr:"switch,case=1"`
		}), "the discriminant is no arm"},
		{new(struct {
			A bool `xdr:"switch,void=2"`
		}), "the discriminant is never 2"},
		{new(struct {
			A uint32 `xdr:"switch,void=-1"`
		}), "the discriminant is never -1"},
		{new(struct {
			A uint32 `xdr:"switch,void=1,x"`
		}), `"x": `},
		{new(struct {
			A uint32
			B uint32 `xdr:"switch"`
		}), "only the first field"},
		{new(struct {
			A uint32 `xdr:"switch,void=1"`
			B uint32 `xdr:"case=1"`
		}), "a second arm for 1"},
		{new(struct {
			A uint32 `xdr:"switch,default"`
			B uint32 `xdr:"default"`
		}), "a second default"},
		{new(struct {
			A uint32 `xdr:"switch"`
			B uint32
		}), "neither case nor default"},
	} {
		if b, err := xdr.Marshal(nil, tt.v); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Marshal(%T): %x, %v; want %q", tt.v, b, err, tt.want)
		}
		if _, err := xdr.Unmarshal(make([]byte, 64), tt.v); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Unmarshal(%T): %v; want %q", tt.v, err, tt.want)
		}
	}
}

func TestReflectNil(t *testing.T) {
	for _, v := range []any{nil, (*uint32)(nil), (*byPointer)(nil)} {
		if _, err := xdr.Marshal(nil, v); err == nil {
			t.Errorf("Marshal(%T) of nil", v)
		}
		if _, err := xdr.Unmarshal(make([]byte, 8), v); err == nil {
			t.Errorf("Unmarshal(%T) into nil", v)
		}
	}
	if _, err := xdr.Unmarshal(make([]byte, 8), uint32(0)); err == nil {
		t.Error("Unmarshal into what is no pointer")
	}
}

// TestReflectValues: what a specification forbids is refused in both directions.
func TestReflectValues(t *testing.T) {
	var length *xdr.LengthError
	for want, v := range map[string]*subject{
		"subject.Name":  {Name: "123456789"},
		"subject.Data":  {Data: make([]byte, 5)},
		"subject.Words": {Words: make([]string, 3)},
		"subject.Hint":  {Hint: ptr("long")},
	} {
		if _, err := xdr.Marshal(nil, v); !errors.As(err, &length) || length.What != want {
			t.Errorf("Marshal: %v; want %s", err, want)
		}
		// The same fields without bounds make the record.
		type unbound struct {
			OK    bool
			Kind  colour
			Name  string
			Data  []byte
			Words []string
			Hint  *string
		}
		record, err := xdr.Marshal(nil, unbound(*v))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := xdr.Unmarshal(record, new(subject)); !errors.As(err, &length) || length.What != want {
			t.Errorf("Unmarshal: %v; want %s", err, want)
		}
	}
	var value *xdr.ValueError
	if _, err := xdr.Marshal(nil, reply{Status: 9}); !errors.As(err, &value) || *value != (xdr.ValueError{What: "reply", Value: 9}) {
		t.Errorf("Marshal of no arm: %v", err)
	}
	if _, err := xdr.Unmarshal([]byte{0, 0, 0, 9}, new(reply)); !errors.As(err, &value) || *value != (xdr.ValueError{What: "reply", Value: 9}) {
		t.Errorf("Unmarshal of no arm: %v", err)
	}
	if _, err := xdr.Unmarshal([]byte{0, 0, 0, 2}, new(bool)); !errors.As(err, &value) {
		t.Errorf("a boolean of 2: %v", err)
	}
	if b, err := xdr.Marshal([]byte("b"), []byValue{1, 13}); !errors.Is(err, errUnlucky) || string(b) != "b" {
		t.Errorf("the error of a method: %q, %v", b, err)
	}
	if _, err := xdr.Unmarshal(make([]byte, 8), new(byPointer)); !errors.Is(err, errUnlucky) {
		t.Errorf("the error of a method: %v", err)
	}
}

// TestReflectDepth: what nests in pointers or in slices does so MaxDepth deep,
// in both directions, and a value that contains itself ends there too.
func TestReflectDepth(t *testing.T) {
	var depth *xdr.DepthError
	for _, deep := range []int{xdr.MaxDepth, xdr.MaxDepth + 1} {
		p, n := &pair{}, nest{}
		for range deep {
			p, n = &pair{Left: p}, nest{n}
		}
		// On the wire, both are as many ones and then zeros.
		ones := bytes.Repeat([]byte{0, 0, 0, 1}, deep)
		record := append(ones, make([]byte, 4*(deep+2))...)
		for _, v := range []any{p, &n} {
			_, enc := xdr.Marshal(nil, v)
			_, dec := xdr.Unmarshal(record, reflect.New(reflect.TypeOf(v).Elem()).Interface())
			if deep > xdr.MaxDepth {
				if !errors.As(enc, &depth) || !errors.As(dec, &depth) {
					t.Errorf("%T, %d deep: %v, %v", v, deep, enc, dec)
				}
			} else if enc != nil || dec != nil {
				t.Errorf("%T, %d deep: %v, %v", v, deep, enc, dec)
			}
		}
	}
	self := &pair{}
	self.Left = self
	if _, err := xdr.Marshal(nil, self); !errors.As(err, &depth) {
		t.Errorf("a value in itself: %v", err)
	}
}

// TestReflectList: a list is a loop however long it is, and a ring is refused.
func TestReflectList(t *testing.T) {
	const elements = 100_000
	var head *node
	for i := range uint32(elements) {
		head = &node{elements - i, head}
	}
	b, err := xdr.Marshal(nil, &head)
	if err != nil || len(b) != elements*8+4 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	var back *node
	if rest, err := xdr.Unmarshal(b, &back); err != nil || len(rest) != 0 {
		t.Fatalf("%d left, %v", len(rest), err)
	}
	n := uint32(0)
	for ; back != nil; back = back.Next {
		if n++; back.ID != n {
			t.Fatalf("element %d is %d", n, back.ID)
		}
	}
	if n != elements {
		t.Errorf("%d elements came back", n)
	}
	for size := range 9 {
		for straight := range 5 {
			last := &node{}
			ring := last
			for range size + straight {
				ring = &node{0, ring}
			}
			back := ring
			for range straight {
				back = back.Next
			}
			last.Next = back
			if _, err := xdr.Marshal(nil, &ring); err == nil || !strings.Contains(err.Error(), "ring") {
				t.Errorf("%d elements into a ring of %d: %v", straight, size+1, err)
			}
		}
	}
}

// TestReflectHostile: lengths that the record cannot hold cost nothing beyond
// what any error costs.
func TestReflectHostile(t *testing.T) {
	type big struct{ A, B, C, D uint64 }
	record := append([]byte{0x7f, 0xff, 0xff, 0xff}, make([]byte, 64)...)
	for _, v := range []any{
		new([]big), new([]string), new([]byte), new(string), new([]byValue), new([]*big), new([][64]big),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := xdr.Unmarshal(record, v)
		runtime.ReadMemStats(&after)
		// What is allocated is the shape of the type; the length asks for 2 GB.
		if n := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, xdr.ErrShort) || n > 64<<10 {
			t.Errorf("%T: %d bytes allocated, %v", v, n, err)
		}
	}
}

// TestReflectGenerated: prototypes of NFS version 3 have the bytes of the code
// that was generated for it.
func TestReflectGenerated(t *testing.T) {
	type handle struct {
		Data []byte `xdr:"max=64"`
	}
	type getattrArgs struct{ Object handle }
	type readdirplusArgs struct {
		Dir      handle
		Cookie   uint64
		Verf     [8]byte
		Dircount uint32
		Maxcount uint32
	}
	type entry struct {
		Fileid uint64
		Name   string
		Cookie uint64
		Next   *entry
	}
	type dirlist struct {
		Entries *entry
		EOF     bool
	}
	type setMode struct {
		Set  bool   `xdr:"switch,default"`
		Mode uint32 `xdr:"case=1"`
	}
	fh := nfs3.NfsFh3{Data: []byte("handle")}
	verf := [8]byte{1, 2, 3}
	for _, tt := range []struct {
		prototype any
		generated interface {
			xdr.Appender
			xdr.Unmarshaler
		}
	}{
		{&getattrArgs{handle{fh.Data}}, &nfs3.GETATTR3args{Object: fh}},
		{&readdirplusArgs{handle{fh.Data}, 5, verf, 512, 8192},
			&nfs3.READDIRPLUS3args{Dir: fh, Cookie: 5, Cookieverf: verf, Dircount: 512, Maxcount: 8192}},
		{&dirlist{&entry{1, "a", 10, &entry{2, "bcdef", 20, nil}}, true},
			&nfs3.Dirlist3{Entries: []nfs3.Entry3{{Fileid: 1, Name: []byte("a"), Cookie: 10},
				{Fileid: 2, Name: []byte("bcdef"), Cookie: 20}}, Eof: true}},
		{&setMode{true, 0o644}, &nfs3.SetMode3{SetIt: true, Mode: 0o644}},
		{&setMode{}, &nfs3.SetMode3{}},
	} {
		want, err := tt.generated.AppendXDR(nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := xdr.Marshal(nil, tt.prototype)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%T: %x, %v; want %x", tt.prototype, got, err, want)
		}
		back := reflect.New(reflect.TypeOf(tt.prototype).Elem()).Interface()
		if rest, err := xdr.Unmarshal(want, back); err != nil || len(rest) != 0 || !reflect.DeepEqual(back, tt.prototype) {
			t.Errorf("%T: %+v, %d left, %v", tt.prototype, back, len(rest), err)
		}
		// And the generated type may stand in a prototype.
		if got, err := xdr.Marshal(nil, tt.generated); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%T: %x, %v", tt.generated, got, err)
		}
	}
}

// FuzzUnmarshal: what decodes encodes again, and to the same from then on.
func FuzzUnmarshal(f *testing.F) {
	seed, err := xdr.Marshal(nil, sample())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add(seed[:len(seed)/2])
	f.Add(bytes.Repeat([]byte{0, 0, 0, 1}, 100))
	f.Add(bytes.Repeat([]byte{0xff}, 100))
	f.Fuzz(func(t *testing.T, record []byte) {
		for _, v := range []any{new(everything), new(nest), new(*node), new(*pair), new([]byValue), new(struct{ P []byPointer })} {
			rest, err := xdr.Unmarshal(record, v)
			if err != nil {
				continue
			}
			b, err := xdr.Marshal(nil, v)
			if err != nil || len(b)+len(rest) != len(record) {
				t.Fatalf("%T: %d bytes and %d left from %d, %v", v, len(b), len(rest), len(record), err)
			}
			again := reflect.New(reflect.TypeOf(v).Elem()).Interface()
			if rest, err := xdr.Unmarshal(b, again); err != nil || len(rest) != 0 {
				t.Fatalf("%T: %d left, %v", v, len(rest), err)
			}
			if c, err := xdr.Marshal(nil, again); err != nil || !bytes.Equal(b, c) {
				t.Fatalf("%T: %x became %x, %v", v, b, c, err)
			}
		}
	})
}
