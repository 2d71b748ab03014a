//go:build !linux

package server

import (
	"errors"
	"testing"

	"github.com/nfsbox/nfsbox/nfsserver"
)

func TestLocalIOIsForLinux(t *testing.T) {
	_, err := nfsserver.New(nfsserver.Options{Exports: exportsOf(t), LocalIO: &nfsserver.LocalIO{Dir: t.TempDir(), UUID: [16]byte{1}}})
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%v, want %v", err, errors.ErrUnsupported)
	}
}
