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
// stands: the name of a variable, or file and line. ok is false if there is none. list says that the
// file has a list.
func (s *Settings) Flag(command, flag string) (value, from string, list, ok bool) {
	for _, name := range []string{Variable(command, flag), Variable("", flag)} {
		if v := s.getenv(name); v != "" {
			return v, name, false, true
		}
	}
	for _, c := range []string{command, ""} {
		for _, e := range s.flags[c] {
			if e.key == flag {
				return e.value, fmt.Sprintf("%s:%d", s.file, e.line), e.list, true
			}
		}
	}
	return "", "", false, false
}

// Variable is the name of the variable that sets a flag of a command; of "" that of all.
func Variable(command, flag string) string {
	name := "nfsbox " + command + " " + flag
	if command == "" {
		name = "nfsbox " + flag
	}
	return strings.ToUpper(strings.NewReplacer(" ", "_", "-", "_").Replace(name))
}

// others are variables that begin with NFSBOX_ and set no flag: of this file, of serve, of bench; PORT is
// what Kubernetes sets in every container beside a service of that name.
var others = []string{"NFSBOX_CONFIG", "NFSBOX_ALLOW", "NFSBOX_TOKEN", "NFSBOX_PORT"}

// Stray tells, of variables that set nothing, those that were meant for another one. environ is
// os.Environ(). known returns the commands with their flags, and is not called unless there are variables of ours;
// an error of it is returned.
func Stray(environ []string, known func() (map[string][]string, error)) (told []string, err error) {
	ours := slices.DeleteFunc(slices.Clone(environ), func(one string) bool {
		name, value, _ := strings.Cut(one, "=")
		return !strings.HasPrefix(name, variables) || value == "" || slices.Contains(others, name)
	})
	if len(ours) == 0 {
		return nil, nil
	}
	commands, err := known()
	if err != nil {
		return nil, err
	}
	names := slices.Clone(others)
	for command, flags := range commands {
		for _, flag := range flags {
			names = append(names, Variable(command, flag), Variable("", flag))
		}
	}
	slices.Sort(names)
	short := slices.Collect(func(yield func(string) bool) {
		for _, name := range slices.Compact(names) {
			if !yield(strings.TrimPrefix(name, variables)) {
				return
			}
		}
	})
	for _, one := range ours {
		name, _, _ := strings.Cut(one, "=")
		wrong := strings.TrimPrefix(name, variables)
		if meant := near.Of(wrong, slices.Values(short)); meant != "" {
			told = append(told, fmt.Sprintf("%s sets nothing; did you mean %s%s?", name, variables, meant))
		}
	}
	slices.Sort(told)
	return told, nil
}

// variables is how the names of our variables begin.
const variables = "NFSBOX_"

// Check is an error if the file sets flags that are not there. commands returns them with
// their flags, and is not called unless the file sets any; an error of it is returned.
func (s *Settings) Check(commands func() (map[string][]string, error)) error {
	if len(s.flags) == 0 {
		return nil
	}
	known, err := commands()
	if err != nil {
		return err
	}
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
