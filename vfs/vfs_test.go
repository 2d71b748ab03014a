package vfs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestHandle(t *testing.T) {
	for _, n := range []int{0, MaxHandle + 1} {
		if _, err := MakeHandle(make([]byte, n)); !errors.Is(err, ErrBadHandle) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	p := bytes.Repeat([]byte{0xab}, MaxHandle)
	h, err := MakeHandle(p)
	if err != nil || !bytes.Equal(h.Bytes(), p) || h.Len() != MaxHandle || h.IsZero() {
		t.Errorf("%d bytes: %v, %v", MaxHandle, h, err)
	}
	p[0] = 0
	if h.Bytes()[0] != 0xab {
		t.Error("a handle shares the bytes it was made of")
	}
	short, _ := MakeHandle([]byte{1})
	longer, _ := MakeHandle([]byte{1, 0})
	if short == longer {
		t.Error("handles of different length are equal")
	}
}

func TestCheckName(t *testing.T) {
	for name, want := range map[string]error{
		"a": nil, "...": nil, "\xff\xfe": nil, "a b": nil, "\n": nil, strings.Repeat("n", MaxName): nil,
		"": ErrInval, ".": ErrInval, "..": ErrInval, "a/b": ErrInval, "/": ErrInval, "a\x00": ErrInval,
		strings.Repeat("n", MaxName+1): ErrNameTooLong,
	} {
		if err := CheckName(name); !errors.Is(err, want) {
			t.Errorf("CheckName(%q): %v, want %v", name, err, want)
		}
	}
}

func TestCaller(t *testing.T) {
	a := &Caller{UID: 1, GID: 2, Groups: []uint32{3, 4}, Client: "c"}
	b := *a
	if !a.Equal(&b) || !a.InGroup(2) || !a.InGroup(4) || a.InGroup(1) {
		t.Error("a caller is not itself")
	}
	for _, other := range []*Caller{nil, {UID: 1, GID: 2, Groups: []uint32{3}, Client: "c"}, {UID: 1, GID: 2, Groups: []uint32{3, 4}}} {
		if a.Equal(other) || other.Equal(a) {
			t.Errorf("%+v equals %+v", a, other)
		}
	}
	if none := (*Caller)(nil); !none.Equal(nil) {
		t.Error("nobody is not nobody")
	}
}

// power is an optional power; layer wraps something, and has no power itself.
type power interface{ Power() int }
type powerful struct{}

func (powerful) Power() int { return 7 }

type layer struct{ inner any }

func (l *layer) Unwrap() any { return l.inner }

// selective is a layer that has the power by its methods, and only if what it
// wraps has it.
type selective struct{ layer }

func (s *selective) Power() int { return 8 }
func (s *selective) Holds(p any) bool {
	_, is := p.(*power)
	return !is || Has[power](s.inner)
}

// TestAsAsksHolders finds a power only if every wrapper on the way holds it.
func TestAsAsksHolders(t *testing.T) {
	over := func(inner any) any { return &layer{&selective{layer{inner}}} }
	if p, ok := As[power](over(powerful{})); !ok || p.Power() != 8 {
		t.Error("a power that is passed on is not found in what passes it on")
	}
	if Has[power](over(nil)) || Has[power](over(over(&layer{}))) {
		t.Error("a power is found in a wrapper of what lacks it")
	}
	if !Has[Unwrapper](over(nil)) {
		t.Error("what the wrapper says nothing of is not found")
	}
	hides := &hider{layer{powerful{}}}
	if Has[power](hides) || Has[power](&layer{hides}) {
		t.Error("a power is found past a wrapper that withholds it")
	}
}

// hider is a layer that withholds the power of what it wraps.
type hider struct{ layer }

func (h *hider) Holds(p any) bool {
	_, is := p.(*power)
	return !is
}

func TestAs(t *testing.T) {
	if p, ok := As[power](&layer{&layer{powerful{}}}); !ok || p.Power() != 7 {
		t.Error("a power under two wrappers is not found")
	}
	if _, ok := As[power](&layer{&layer{}}); ok {
		t.Error("a power is found where there is none")
	}
	self := &layer{}
	self.inner = self
	if _, ok := As[power](self); ok {
		t.Error("a power is found in a circle")
	}
}

// shortFile moves at most 3 bytes at a time, and none at all from stuck on.
type shortFile struct {
	File
	data  []byte
	stuck uint64
	verf  byte // changes with every write if not 0
}

func (f *shortFile) ReadAt(_ context.Context, p []byte, off uint64, _ *Attr) (int, bool, error) {
	if off >= f.stuck {
		return 0, false, nil
	}
	n := copy(p[:min(3, len(p))], f.data[off:])
	return n, off+uint64(n) == uint64(len(f.data)), nil
}

func (f *shortFile) WriteAt(_ context.Context, p []byte, off uint64, how Stability, w *Written) (int, error) {
	if off >= f.stuck {
		return 0, nil
	}
	if f.verf != 0 {
		f.verf++
	}
	*w = Written{Committed: how, Verf: Verifier{f.verf}}
	return copy(f.data[off:], p[:min(3, len(p))]), nil
}

func TestReadFull(t *testing.T) {
	ctx := t.Context()
	f := &shortFile{data: []byte("0123456789"), stuck: 1 << 60}
	p := make([]byte, 8)
	if n, eof, err := ReadFull(ctx, f, p, 0); n != 8 || eof || err != nil || string(p) != "01234567" {
		t.Errorf("%q, %v, %v", p[:n], eof, err)
	}
	if n, eof, err := ReadFull(ctx, f, p, 4); n != 6 || !eof || err != nil || string(p[:n]) != "456789" {
		t.Errorf("to the end: %q, %v, %v", p[:n], eof, err)
	}
	f.stuck = 3
	if n, _, err := ReadFull(ctx, f, p, 0); n != 3 || !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a stuck file: %d, %v", n, err)
	}
}

func TestWriteFull(t *testing.T) {
	ctx := t.Context()
	f := &shortFile{data: make([]byte, 10), stuck: 1 << 60}
	var w Written
	if n, err := WriteFull(ctx, f, []byte("abcdefgh"), 1, DataSync, &w); n != 8 || err != nil || w.Committed != DataSync {
		t.Errorf("%d, %v, %+v", n, err, w)
	}
	if string(f.data[1:9]) != "abcdefgh" {
		t.Errorf("written: %q", f.data)
	}
	f.verf = 1
	if _, err := WriteFull(ctx, f, []byte("abcdefgh"), 1, DataSync, &w); err != nil || w.Committed != Unstable || w.Verf != (Verifier{2}) {
		t.Errorf("the verifier changed on the way: %v, %+v", err, w)
	}
	f.stuck = 0
	if n, err := WriteFull(ctx, f, []byte("abc"), 1, Unstable, &w); n != 0 || !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a stuck file: %d, %v", n, err)
	}
}

// liar claims to have moved more than it was given.
type liar struct{ File }

func (liar) ReadAt(_ context.Context, p []byte, _ uint64, _ *Attr) (int, bool, error) {
	return len(p) + 1, true, nil
}

func (liar) WriteAt(_ context.Context, p []byte, _ uint64, _ Stability, _ *Written) (int, error) {
	return len(p) + 1, nil
}

func TestImpossibleCounts(t *testing.T) {
	if n, _, err := ReadFull(t.Context(), liar{}, make([]byte, 4), 0); n != 0 || !errors.Is(err, ErrServerFault) {
		t.Errorf("ReadFull: %d, %v", n, err)
	}
	var w Written
	if n, err := WriteFull(t.Context(), liar{}, make([]byte, 4), 0, Unstable, &w); n != 0 || !errors.Is(err, ErrServerFault) {
		t.Errorf("WriteFull: %d, %v", n, err)
	}
}

// TestCreateHow: what no FS makes, or not in this way, is refused before any is asked.
func TestCreateHow(t *testing.T) {
	for _, c := range []struct {
		how  CreateHow
		want error
	}{
		{CreateHow{Type: TypeReg, Mode: CreateExclusive}, nil},
		{CreateHow{Type: TypeReg, Mode: CreateExclusive + 1}, ErrInval},
		{CreateHow{Type: TypeDir, Mode: CreateGuarded}, nil},
		{CreateHow{Type: TypeDir, Mode: CreateExclusive}, ErrInval},
		{CreateHow{Type: TypeFIFO, Mode: CreateUnchecked}, ErrInval},
		{CreateHow{Type: TypeSymlink, Mode: CreateGuarded, Target: "x"}, nil},
		{CreateHow{Type: TypeSymlink, Mode: CreateGuarded}, ErrInval},
		{CreateHow{Type: TypeSymlink, Mode: CreateGuarded, Target: strings.Repeat("x", MaxPath+1)}, ErrNameTooLong},
		{CreateHow{Mode: CreateGuarded}, ErrBadType},
	} {
		if err := c.how.Check(); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.how, err, c.want)
		}
	}
}

// TestCallerKey: callers have one key if they are equal, and else two.
func TestCallerKey(t *testing.T) {
	callers := []Caller{
		{}, {UID: 1}, {GID: 1}, {Groups: []uint32{1}}, {Groups: []uint32{1, 2}}, {Groups: []uint32{0}}, {Client: "\x00\x00\x00\x01"}, {Client: "a"},
	}
	for i := range callers {
		for j := range callers {
			if a, b := callers[i], callers[j]; (a.Key() == b.Key()) != a.Equal(&b) {
				t.Errorf("%+v and %+v: one key: %v", a, b, a.Key() == b.Key())
			}
		}
	}
}
