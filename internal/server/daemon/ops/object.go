package ops

import (
	"encoding/hex"
	"log/slog"
	"strings"

	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/vfs"
)

// Namer finds the path by which clients mount what a handle is of: that of the export, and
// the way below it. It may know none.
type Namer func(vfs.Handle) (path string, ok bool)

// object is what a call was about. It is named when somebody reads of it, and not by the
// goroutine that serves the call.
type object struct {
	nfsserver.Object
	name Namer
}

// path is the object's path, if that is known.
func (o *object) path() (string, bool) {
	if o.Path != "" {
		return o.Path, true
	}
	dir, ok := o.name(o.Handle)
	if ok && o.Name != "" {
		dir = strings.TrimSuffix(dir, "/") + "/" + o.Name
	}
	return dir, ok
}

// label is the path or, if that is not known, the handle and the name in it.
func (o *object) label() string {
	if path, ok := o.path(); ok {
		return path
	}
	label := "handle " + hex.EncodeToString(o.Handle.Bytes())
	if o.Name != "" {
		label += "/" + o.Name
	}
	return label
}

// Attr implements reqlog.Object.
func (o *object) Attr() slog.Attr {
	if path, ok := o.path(); ok {
		return slog.String("path", path)
	}
	return slog.String("handle", strings.TrimPrefix(o.label(), "handle "))
}
