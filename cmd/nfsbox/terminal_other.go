//go:build !unix

package main

import (
	"errors"
	"os"

	"github.com/nfsbox/nfsbox/internal/tools/top"
)

// terminal returns nil: on this system no output is drawn on.
func terminal(*os.File) func() (width, height int) { return nil }

func resizes() (told <-chan struct{}, stop func()) { return nil, func() {} }

// pressed fails: on this system no keys are read.
func pressed(*os.File) (keys <-chan top.Key, stop func(), err error) {
	return nil, nil, errors.ErrUnsupported
}
