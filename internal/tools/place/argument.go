package place

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/vfs"
)

// spelled is the path that an argument spells: of a URL, what stands before its arguments.
func spelled(arg string) string {
	if !IsURL(arg) {
		return filepath.ToSlash(arg)
	}
	arg, _, _ = strings.Cut(arg, "?")
	return arg
}

// MeansDir reports whether arg can only mean a directory, by its end: a slash, "." or "..".
// A link at that place stands for its target.
func MeansDir(arg string) bool {
	return strings.HasSuffix(spelled(arg), "/") || NamesContents(arg)
}

// NamesContents reports whether arg ends in "." or "..": as a source, it means what is in
// the directory, and not the directory under its name.
func NamesContents(arg string) bool {
	last := strings.TrimRight(spelled(arg), "/")
	last = last[strings.LastIndexByte(last, '/')+1:]
	return last == "." || last == ".."
}

// ContentsOf is the argument that means what is in the directory that arg names.
func ContentsOf(arg string) string {
	if NamesContents(arg) {
		return arg
	}
	dir := spelled(arg)
	return strings.TrimSuffix(dir, "/") + "/." + arg[len(dir):]
}

// withoutEnd is a path, or a URL without arguments, without what says at its end no more than
// that it is a directory.
func withoutEnd(path string) string {
	for {
		short := strings.TrimSuffix(strings.TrimRight(spelled(path), "/"), "/.")
		if short == path || short == "" {
			return path
		}
		path = short
	}
}

// divided are the URL of the directory that holds what arg names, a URL, and the name in it;
// ok is false if there is none, or arg can only mean a directory.
func divided(arg string) (dir, name string, ok bool) {
	u, err := nfsbox.ParseURL(arg)
	if err != nil || MeansDir(u.Path) {
		return "", "", false
	}
	text := spelled(arg)
	dir, name = text[:strings.LastIndexByte(text, '/')+1]+arg[len(text):], path.Base(u.Path)
	d, err := nfsbox.ParseURL(dir)
	// It may lie above the export that arg names, and a slash in a name may be an escaped one.
	return dir, name, err == nil && path.Join(d.Path, name) == path.Clean(u.Path)
}

// Reached returns err as that of a place. It is ErrUnreachable unless the server, or this host,
// has answered: that there is no such path, that it leads through what is no directory, or that
// the caller may not see it. An interruption stays what it is.
func Reached(err error) error {
	if err == nil || answer(err) || errors.Is(err, ErrUnreachable) || errors.Is(err, ErrUsage) || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}

// answer reports whether err is what a file system says of a path.
func answer(err error) bool {
	if errors.Is(err, vfs.ErrOutside) {
		return true
	}
	switch s, _ := vfs.StatusOf(err); s {
	case vfs.ErrNoEnt, vfs.ErrNotDir, vfs.ErrAccess, vfs.ErrPerm, vfs.ErrNameTooLong, vfs.ErrInval: // this one for too many links
		return true
	}
	return false
}
