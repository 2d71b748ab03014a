package emit

import (
	"strings"

	"github.com/nfsbox/nfsbox/cmd/xdrgen/internal/xdrlang"
)

// goName maps a name of the specification to an exported one. A name that
// starts with an upper-case letter stays as it is (READ3args); any other loses
// its underscores and has the letter behind each raised (post_op_attr is
// PostOpAttr). Go's keywords and predeclared names start with a lower-case
// letter, so that no name becomes one.
func goName(name string) string {
	if name[0] >= 'A' && name[0] <= 'Z' {
		return name
	}
	var out strings.Builder
	for part := range strings.SplitSeq(name, "_") {
		if part != "" {
			out.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	s := out.String()
	if s[0] >= '0' && s[0] <= '9' {
		return "X" + s // _2fast
	}
	return s
}

// owner is who took a Go name.
type owner struct {
	pos  xdrlang.Pos
	name string
}

// scope is a set of Go names, with who took each: the package, or one struct.
type scope map[string]owner

// claim takes the Go name for the name of the specification, or says who has
// it.
func (s scope) claim(goName, name string, pos xdrlang.Pos) *xdrlang.Error {
	first, taken := s[goName]
	if !taken {
		s[goName] = owner{pos: pos, name: name}
		return nil
	}
	if first.pos.Line == 0 {
		return xdrlang.Errorf(pos, "%s becomes %s in Go, which is a method that xdrgen writes", name, goName)
	}
	return xdrlang.Errorf(pos, "%s becomes %s in Go, and so does %s at %d:%d",
		name, goName, first.name, first.pos.Line, first.pos.Col)
}
