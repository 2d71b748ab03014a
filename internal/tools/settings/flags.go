package settings

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/nfsbox/nfsbox/internal/base/near"
)

// Flag is the value that is set for a flag of a command ("cp", "bench compare"), and where it
// stands: the name of a variable, or file and line. ok is false if there is none.
func (s *Settings) Flag(command, flag string) (value, from string, ok bool) {
	for _, name := range []string{Variable(command, flag), Variable("", flag)} {
		if v := s.getenv(name); v != "" {
			return v, name, true
		}
	}
	for _, c := range []string{command, ""} {
		for _, e := range s.flags[c] {
			if e.key == flag {
				return e.value, fmt.Sprintf("%s:%d", s.file, e.line), true
			}
		}
	}
	return "", "", false
}

// Variable is the name of the variable that sets a flag of a command; of "" that of all.
func Variable(command, flag string) string {
	name := "nfsbox " + command + " " + flag
	if command == "" {
		name = "nfsbox " + flag
	}
	return strings.ToUpper(strings.NewReplacer(" ", "_", "-", "_").Replace(name))
}

// Check is an error if the file sets flags that are not there. known are the commands, with
// their flags.
func (s *Settings) Check(known map[string][]string) error {
	for _, command := range slices.Sorted(maps.Keys(s.flags)) {
		if command != "" && known[command] == nil {
			return s.unknown(s.flags[command][0].line, "command "+command, near.Of(command, maps.Keys(known)))
		}
		all := known[command]
		if command == "" {
			all = slices.Collect(flattened(maps.Values(known)))
		}
		for _, e := range s.flags[command] {
			if !slices.Contains(all, e.key) {
				what := "flag --" + e.key
				if command != "" {
					what += " of " + command
				}
				return s.unknown(e.line, what, near.Of(e.key, slices.Values(all)))
			}
		}
	}
	return nil
}

func flattened(lists iter.Seq[[]string]) iter.Seq[string] {
	return func(yield func(string) bool) {
		for list := range lists {
			for _, one := range list {
				if !yield(one) {
					return
				}
			}
		}
	}
}

func (s *Settings) unknown(line int, what, meant string) error {
	if meant != "" {
		meant = "; did you mean " + meant + "?"
	}
	return fmt.Errorf("%s:%d: there is no %s%s", s.file, line, what, meant)
}
