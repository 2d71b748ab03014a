package find

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// Object is what is tested.
type Object struct {
	Name  []byte        // the last part of its path
	Path  func() []byte // its path; called only by tests of paths
	Attr  *vfs.Attr     // those of NFSv3
	Empty bool          // of a directory: nothing is in it
}

// Tests says what to find. All that is set must hold; of several values each.
type Tests struct {
	Name, IName []string // patterns of names; I: upper and lower case are the same
	Path, IPath []string // patterns of whole paths
	Regex       []string // in Go's syntax, of whole paths
	IRegex      []string
	Size        []string    // [+-]N[bcwkMG], rounded up to whole units
	Mtime       []string    // [+-]N: age in whole days, rounded down
	Newer       []time.Time // modified after this
	Type        string      // letters of find(1), with commas between them: "f,d"; "": any
	UID, GID    *uint32
	Empty       bool // an empty file, or a directory without entries
	Now         time.Time
}

// Matcher is a set of tests. It may be used concurrently.
type Matcher struct {
	all []func(*Object) bool
}

// New checks the tests. What is wrong is an error that names the test.
func New(t *Tests) (*Matcher, error) {
	m := new(Matcher)
	// What is cheap, and tells most apart, comes first.
	for _, add := range []func(*Tests) error{m.types, m.names, m.numbers, m.paths} {
		if err := add(t); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Match reports whether all tests hold.
func (m *Matcher) Match(o *Object) bool {
	for _, holds := range m.all {
		if !holds(o) {
			return false
		}
	}
	return true
}

func (m *Matcher) add(test func(*Object) bool) { m.all = append(m.all, test) }

// typeLetters are find's, at the numbers of the types.
const typeLetters = "?fdbclsp"

func (m *Matcher) types(t *Tests) error {
	if t.Type == "" {
		return nil
	}
	var wanted [len(typeLetters)]bool
	for letter := range strings.SplitSeq(t.Type, ",") {
		n := strings.Index(typeLetters, letter)
		if len(letter) != 1 || n < 1 {
			return fmt.Errorf("type: %q is none of f, d, l, b, c, p, s", letter)
		}
		wanted[n] = true
	}
	m.add(func(o *Object) bool { return int(o.Attr.Type) < len(wanted) && wanted[o.Attr.Type] })
	return nil
}

func (m *Matcher) names(t *Tests) error {
	return m.globs(t.Name, t.IName, "name", func(o *Object) []byte { return o.Name })
}

// globs adds patterns, and those that take upper and lower case as the same.
func (m *Matcher) globs(patterns, folding []string, what string, of func(*Object) []byte) error {
	for i, p := range append(patterns[:len(patterns):len(patterns)], folding...) {
		fold := i >= len(patterns)
		g, err := ParseGlob(p, fold)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		m.add(func(o *Object) bool { return g.Match(of(o)) })
	}
	return nil
}

func (m *Matcher) numbers(t *Tests) error {
	for _, text := range t.Size {
		s, err := parseSize(text)
		if err != nil {
			return fmt.Errorf("size: %w", err)
		}
		m.add(func(o *Object) bool { return s.holds(o.Attr.Size) })
	}
	for _, text := range t.Mtime {
		n, err := parseNumber(text)
		if err != nil {
			return fmt.Errorf("mtime: %w: an age is [+-]DAYS", err)
		}
		m.add(func(o *Object) bool { return n.holds(days(t.Now.Sub(o.Attr.Mtime))) })
	}
	for _, since := range t.Newer {
		m.add(func(o *Object) bool { return o.Attr.Mtime.After(since) })
	}
	if id := t.UID; id != nil {
		m.add(func(o *Object) bool { return o.Attr.UID == *id })
	}
	if id := t.GID; id != nil {
		m.add(func(o *Object) bool { return o.Attr.GID == *id })
	}
	if t.Empty {
		m.add(func(o *Object) bool {
			return o.Attr.Type == vfs.TypeReg && o.Attr.Size == 0 || o.Attr.Type == vfs.TypeDir && o.Empty
		})
	}
	return nil
}

func (m *Matcher) paths(t *Tests) error {
	path := func(o *Object) []byte { return o.Path() }
	if err := m.globs(t.Path, t.IPath, "path", path); err != nil {
		return err
	}
	for i, text := range append(t.Regex[:len(t.Regex):len(t.Regex)], t.IRegex...) {
		flags := "s"
		if i >= len(t.Regex) {
			flags = "si"
		}
		x, err := regexp.Compile(`^(?` + flags + `:` + text + `)$`)
		if err != nil {
			return fmt.Errorf("regex: %w", err)
		}
		m.add(func(o *Object) bool { return x.Match(o.Path()) })
	}
	return nil
}
