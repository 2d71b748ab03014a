package iogate

import (
	"errors"
	"fmt"
	"strings"
)

// Kind says how work reaches the disk.
type Kind uint8

// The kinds.
const (
	Auto  Kind = iota // without blocking where the kernel can, else as None behind the gate
	None              // in the calling goroutine, without any bound
	Go                // a pool of goroutines
	C                 // POSIX threads through cgo; needs the build tag nfsbox_cthreads
	kinds             // how many there are
)

var kindNames = [...]string{Auto: "auto", None: "none", Go: "go", C: "c"}

// String implements fmt.Stringer.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// ParseKind is the kind called s. Its error says which there are, and what to use
// instead of one that there was.
func ParseKind(s string) (Kind, error) {
	if s == "uring" {
		return 0, errors.New(`there is no kind "uring" any more: use auto, which does as well`)
	}
	for k, name := range kindNames {
		if s == name {
			return Kind(k), nil
		}
	}
	return 0, fmt.Errorf("%q is not one of %s", s, strings.Join(kindNames[:], ", "))
}

// Class is a lane: work of one class does not wait for that of another.
type Class uint8

// The classes.
const (
	Meta Class = iota
	Read
	Write
	Sync
	Classes // how many there are
)

var classNames = [...]string{Meta: "meta", Read: "read", Write: "write", Sync: "sync"}

// String implements fmt.Stringer.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return fmt.Sprintf("Class(%d)", uint8(c))
}
