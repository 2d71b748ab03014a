package vfs

import (
	"context"
	"errors"
	"strings"
)

// ErrOutside says that a symbolic link leads out of an FS.
var ErrOutside = errors.New("the symbolic link leads out of the tree")

// Inside returns f for use with [Resolve] alone: a link that leads out of f is then
// [ErrOutside]. An FS by itself stays at its root, so the link would find another object
// than it does on its own host.
func Inside(f FS) FS { return inside{f} }

type inside struct{ FS }

// Lookup recognises the root: its ".." is the root itself.
func (f inside) Lookup(ctx context.Context, dir Handle, name string) (h Handle, a, d Attr, err error) {
	h, a, d, err = f.FS.Lookup(ctx, dir, name)
	if err == nil && name == ".." && h == dir {
		err = ErrOutside
	}
	return h, a, d, err
}

func (f inside) Readlink(ctx context.Context, h Handle) (string, Attr, error) {
	target, a, err := f.FS.Readlink(ctx, h)
	if err == nil && strings.HasPrefix(target, "/") {
		err = ErrOutside
	}
	return target, a, err
}
