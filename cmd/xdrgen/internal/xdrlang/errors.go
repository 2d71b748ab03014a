package xdrlang

import (
	"fmt"
	"strings"
)

// Bounds on the input. A specification is written by hand and is small; what is
// above these bounds is not one, and is refused at the place where the bound is
// passed.
const (
	MaxSource  = 4 << 20 // bytes of text
	MaxNesting = 32      // levels of struct, union and enum inside each other
	MaxFixed   = 1 << 20 // bytes of one value, what is behind pointers and in slices apart
	MaxErrors  = 20      // reported for one file; more are not looked for
)

// Pos is a place in a specification. Line and Col count from 1; Col counts
// bytes.
type Pos struct {
	File      string
	Line, Col int
}

// String implements fmt.Stringer.
func (p Pos) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col) }

// Error is one thing wrong with a specification, and where.
type Error struct {
	Pos Pos
	Msg string
}

// Error implements error.
func (e *Error) Error() string { return e.Pos.String() + ": " + e.Msg }

// Errorf makes an [Error] at p.
func Errorf(p Pos, format string, args ...any) *Error {
	return &Error{Pos: p, Msg: fmt.Sprintf(format, args...)}
}

// ErrorList is every error found in a specification, in the order of the text
// for each pass.
type ErrorList []*Error

// Error implements error.
func (l ErrorList) Error() string {
	lines := make([]string, len(l))
	for i, e := range l {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// add records e unless the list is full.
func (l *ErrorList) add(e *Error) {
	if len(*l) < MaxErrors {
		*l = append(*l, e)
	}
}

// err is the list as an error: nil when it is empty.
func (l ErrorList) err() error {
	if len(l) == 0 {
		return nil
	}
	return l
}
