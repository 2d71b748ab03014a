package filter

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Rule says what happens to the paths that a pattern matches.
type Rule struct {
	Include bool
	Pattern string
	From    string // where it stands, for messages: "--exclude", "FILE:3"
}

// ParseRules reads a file of rules, one a line: "+ PATTERN" or "include PATTERN", "- PATTERN" or "exclude
// PATTERN". Empty lines, and those that begin with # or ;, mean nothing. What else rsync has is an error, which names
// the file and the line. name is the file's.
func ParseRules(name string, r io.Reader) ([]Rule, error) {
	var all []Rule
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 2*maxPattern)
	n := 0
	for lines.Scan() {
		n++
		at := fmt.Sprintf("%s:%d", name, n)
		if n > maxLines {
			return nil, fmt.Errorf("%s: the file has more than %d lines", name, maxLines)
		}
		line := lines.Text()
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		include, pattern, err := parseRule(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		if len(all) == maxRules {
			return nil, fmt.Errorf("%s: there are more than %d rules", at, maxRules)
		}
		all = append(all, Rule{include, pattern, at})
	}
	err := lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("the line has more than %d bytes", 2*maxPattern-1)
	}
	if err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, n+1, err)
	}
	return all, nil
}

// parseRule parses a line. One character of space, or _, stands behind the rule's name; what follows is the pattern,
// with all its spaces.
func parseRule(line string) (include bool, pattern string, err error) {
	end := strings.IndexAny(line, " _")
	if end < 0 {
		end = len(line)
	}
	word := line[:end]
	switch word {
	case "+", "include":
		include = true
	case "-", "exclude":
	default:
		return false, "", unknownRule(word)
	}
	if end+1 >= len(line) {
		return false, "", errors.New("a pattern is missing")
	}
	return include, line[end+1:], nil
}

// unknownRule says what is wrong with a line that is neither "+ PATTERN" nor "- PATTERN".
func unknownRule(word string) error {
	name, modifiers, _ := strings.Cut(word, ",")
	switch {
	case name == "+" || name == "-" || name == "include" || name == "exclude":
		return fmt.Errorf("modifiers of rules (%q) are not supported", modifiers)
	case len(word) > 1 && (word[0] == '+' || word[0] == '-'):
		return fmt.Errorf("modifiers of rules (%q) are not supported; a space stands between %q and the pattern", word[1:], word[:1])
	case name == "merge" || name == "dir-merge" || strings.HasPrefix(word, ".") || strings.HasPrefix(word, ":"):
		return errors.New("rules that read other files (merge, dir-merge) are not supported")
	case name == "hide" || name == "show" || name == "protect" || name == "risk" || name == "clear" ||
		len(name) == 1 && strings.Contains("HSPR!", name):
		return fmt.Errorf("rule %q is not supported: + and - are", name)
	}
	return fmt.Errorf("%.40q is no rule: it begins with \"+ \" or \"- \"", word)
}
