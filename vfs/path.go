package vfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
)

// MaxName bounds a name, in bytes: what Linux file systems allow (NAME_MAX).
const MaxName = 255

// MaxPath bounds a path and the target of a symbolic link, in bytes (PATH_MAX
// less its NUL).
const MaxPath = 4095

// MaxSymlinks bounds how many symbolic links one path may lead through, as in
// path_resolution(7). One more is syscall.ELOOP.
const MaxSymlinks = 40

// CheckName returns nil if name can name an entry of a directory: not empty,
// neither "." nor "..", no '/' and no NUL ([ErrInval]), and at most [MaxName]
// bytes ([ErrNameTooLong]). It is called by whatever creates, renames or removes a
// name, or takes names from a server.
func CheckName(name string) error {
	switch {
	case name == "" || name == "." || name == "..":
		return ErrInval
	case len(name) > MaxName:
		return ErrNameTooLong
	case strings.ContainsAny(name, "/\x00"):
		return ErrInval
	}
	return nil
}

// Resolved is what [Resolve] found.
type Resolved struct {
	Handle Handle
	Attr   Attr   // as the last lookup sent it: Valid may lack fields
	Dir    Handle // the directory that holds it; the start itself for an empty path
	Name   string // its name there, links followed; "" for the start itself
}

// Resolve follows path, its parts divided by '/', from the directory at start.
// Empty parts and "." stand for nothing; the FS is asked for "..", which does not leave
// its root. Symbolic links are followed, that of the last part only if follow is true.
// An absolute target starts again at the FS's root. So a link that leads out of the FS
// finds another object, or none; use [Inside] to get [ErrOutside] instead. Errors are
// *fs.PathError with the path up to the part that failed, or to the link that was one
// too many.
func Resolve(ctx context.Context, f FS, start Handle, path string, follow bool) (Resolved, error) {
	r := resolver{fs: f, follow: follow, at: Resolved{Handle: start, Dir: start}}
	if len(path) > MaxPath {
		return r.at, &fs.PathError{Op: "resolve", Path: path[:64] + "...", Err: ErrNameTooLong}
	}
	r.rest = strings.Split(path, "/")
	r.walk(ctx)
	for len(r.rest) > 0 {
		part := r.rest[0]
		r.rest = r.rest[1:]
		if part == "" || part == "." {
			continue
		}
		if err := r.step(ctx, part); err != nil {
			at := strings.Join(append(r.done, part), "/")
			if errors.Is(err, syscall.ELOOP) {
				at = part // the whole path would repeat every link
			}
			return r.at, &fs.PathError{Op: "resolve", Path: at, Err: err}
		}
		r.done = append(r.done, part)
	}
	return r.at, nil
}

// resolver is the state of one Resolve.
type resolver struct {
	fs     FS
	follow bool
	at     Resolved
	done   []string // for messages
	rest   []string
	links  int
}

// walk takes as many parts in one call as the FS can. A single one takes a Lookup anyway.
func (r *resolver) walk(ctx context.Context) {
	names := slices.DeleteFunc(slices.Clone(r.rest), func(part string) bool { return part == "" || part == "." })
	w, ok := As[Walker](r.fs)
	if len(names) < 2 || !ok {
		return
	}
	n, at := w.Walk(ctx, r.at.Handle, names)
	if n == 0 {
		return
	}
	r.at, r.done = at, names[:n:n]
	for n > 0 {
		if part := r.rest[0]; part != "" && part != "." {
			n--
		}
		r.rest = r.rest[1:]
	}
}

func (r *resolver) step(ctx context.Context, part string) error {
	dir := r.at.Handle
	h, attr, _, err := r.fs.Lookup(ctx, dir, part)
	if err != nil {
		return err
	}
	if !attr.Has(MaskType) {
		if attr, err = r.fs.GetAttr(ctx, h, MaskV3); err != nil {
			return err
		}
	}
	if attr.Type == TypeSymlink && (r.follow || r.more()) {
		return r.link(ctx, h)
	}
	r.at = Resolved{Handle: h, Attr: attr, Dir: dir, Name: part}
	return nil
}

// more reports whether a part follows that stands for something.
func (r *resolver) more() bool {
	return slices.ContainsFunc(r.rest, func(p string) bool { return p != "" })
}

// link puts the target of the symbolic link h in front of what is left. The
// position stays at the directory that holds the link.
func (r *resolver) link(ctx context.Context, h Handle) error {
	if r.links++; r.links > MaxSymlinks {
		return syscall.ELOOP
	}
	target, _, err := r.fs.Readlink(ctx, h)
	if err != nil {
		return fmt.Errorf("readlink: %w", err)
	}
	if target == "" {
		return ErrNoEnt
	}
	if len(target) > MaxPath {
		return ErrNameTooLong
	}
	if strings.HasPrefix(target, "/") {
		root, attr, err := r.fs.Root(ctx)
		if err != nil {
			return err
		}
		r.at = Resolved{Handle: root, Attr: attr, Dir: root}
	}
	r.rest = append(strings.Split(target, "/"), r.rest...)
	return nil
}
