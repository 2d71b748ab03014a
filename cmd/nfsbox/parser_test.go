package main

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// TestParserOfOneCommand says of each command what the parser of all says, and knows no other.
func TestParserOfOneCommand(t *testing.T) {
	all := newTestParser(t, nil)
	leaves := all.Model.Leaves(false)
	if len(leaves) < 40 {
		t.Errorf("only %d commands were found", len(leaves))
	}
	for _, leaf := range leaves {
		words := strings.Fields(commandOf(leaf))
		one := newTestParser(t, words)
		if c := one.Model.Children; len(c) != 1 || c[0].Name != words[0] {
			t.Errorf("the parser of %s has %d commands", words[0], len(c))
		}
		for _, rest := range [][]string{{"--help"}, {"--no-such-flag"}, {"-Z"}, {"a", "b", "c", "d", "--progress=none"}, {}} {
			args := append(slices.Clone(words), rest...)
			if got, want := one.says(args), all.says(args); got != want {
				t.Errorf("%q:\n%s\nof all commands:\n%s", args, got, want)
			}
		}
	}
}

// TestParserOfAllCommands is that of arguments which do not begin with a command.
func TestParserOfAllCommands(t *testing.T) {
	for _, args := range [][]string{nil, {"sl"}, {"Ls"}, {"help"}, {"--help"}, {"--", "ls"}, {""}} {
		if all := newTestParser(t, args).Model.Children; len(all) < 30 {
			t.Errorf("%q: %d commands", args, len(all))
		}
	}
}

// testParser is a parser, and what it prints.
type testParser struct {
	*kong.Kong
	out *bytes.Buffer
}

func newTestParser(t *testing.T, args []string) testParser {
	t.Helper()
	out := new(bytes.Buffer)
	parser, _, err := newParser(&env{ctx: t.Context(), stdout: out, stderr: out}, new(resolver), args)
	if err != nil {
		t.Fatal(err)
	}
	return testParser{parser, out}
}

// says is what it prints for args, and its error.
func (p testParser) says(args []string) string {
	p.out.Reset()
	_, err := p.Parse(args)
	if err != nil {
		err = usageError(p.Kong, args, err, "")
	}
	return errors.Join(errors.New(p.out.String()), err).Error()
}
