package xdr

import (
	"errors"
	"testing"
)

func TestProgram(t *testing.T) {
	p := Program{Name: "V", Number: 7, Version: 1, Procs: []Proc{
		{Name: "NULL", Program: 7, Version: 1, Number: 0},
		{Name: "ONE", Program: 7, Version: 1, Number: 1},
		{Program: 7, Version: 1, Number: 20},
	}}
	for number, want := range map[uint32]int{0: 0, 1: 1, 20: 2, 2: -1, 19: -1, 21: -1, 1<<32 - 1: -1} {
		got := p.Proc(number)
		if want < 0 && got != nil || want >= 0 && got != &p.Procs[want] {
			t.Errorf("procedure %d is %v", number, got)
		}
	}
	if got := p.Proc(1).String() + " " + p.Proc(20).String(); got != "ONE 7/1/20" {
		t.Errorf("procedures are written %q", got)
	}
}

func TestVoid(t *testing.T) {
	if b, err := (Void{}).AppendXDR([]byte{1}); err != nil || len(b) != 1 {
		t.Errorf("nothing is encoded as %x: %v", b, err)
	}
	d := NewDecoder(nil)
	if err := (Void{}).DecodeXDR(&d); err != nil || d.Finish() != nil {
		t.Errorf("nothing is not decoded: %v", d.Err())
	}
	d.Fail(ErrShort)
	if err := (Void{}).DecodeXDR(&d); !errors.Is(err, ErrShort) {
		t.Errorf("behind an error: %v", err)
	}
}

func TestErrorText(t *testing.T) {
	for want, err := range map[string]error{
		"xdr: name: length 300, at most 255 allowed": &LengthError{What: "name", Len: 300, Max: 255},
		"xdr: length 300, at most 255 allowed":       &LengthError{Len: 300, Max: 255},
		"xdr: 2 is no value of bool":                 &ValueError{What: "bool", Value: 2},
		"xdr: tree nests deeper than 64":             &DepthError{What: "tree"},
	} {
		if err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}
