package job

import (
	"slices"
	"strings"

	"github.com/nfsbox/nfsbox/internal/tools/delta"
	"github.com/nfsbox/nfsbox/internal/tools/hands"
)

// handsOf are the hands of a job to which its caller gives h, or none.
func handsOf(h hands.Hands) hands.Hands {
	if h == nil {
		return hands.Own{}
	}
	return h
}

// where tells hands where a directory is. It is nil if the job has no tree.
func (s *dirState) where() *hands.Dir {
	if s.dir == nil {
		return nil
	}
	return &hands.Dir{Path: namesTo(s.dir), Source: &s.dir.Attr, Dest: &s.attr}
}

// pathIn is the path of name in a directory, for messages; nil is that of a single object.
func pathIn(at *hands.Dir, name string) string {
	if at == nil {
		return name
	}
	return strings.Join(append(at.Path(), name), "/")
}

// namesTo returns a function for the names that lead to d from the root of the walk.
func namesTo(d *delta.Dir) func() []string {
	return func() (names []string) {
		for at := d; at.Parent != nil; at = at.Parent {
			names = append(names, at.Name)
		}
		slices.Reverse(names)
		return names
	}
}
