//go:build !unix

package terminal

import (
	"errors"
	"os"
)

// Size returns nil: on this system no output is drawn on.
func Size(*os.File) func() (width, height int) { return nil }

// Resizes returns a channel that receives nothing: on this system no size is known.
func Resizes() (changed <-chan struct{}, stop func()) { return nil, func() {} }

// Keys fails: on this system no keys are read.
func Keys[K any](*os.File, func([]byte) []K) (keys <-chan K, stop func(), err error) {
	return nil, nil, errors.ErrUnsupported
}
