package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/nfsbox/nfsbox/internal/base/near"
)

// meant is an error of the command line in which what was meant replaces what kong proposes. To kong,
// all flags of one letter are near each other, and so are short names of commands.
func meant(node *kong.Node, args []string, err error) error {
	text, _, _ := strings.Cut(err.Error(), ", did you mean")
	if flag, is := strings.CutPrefix(text, "unknown flag "); is {
		return unknownFlag(node, args, flag)
	}
	if word, is := strings.CutPrefix(text, "unexpected argument "); is {
		var names []string
		for _, child := range node.Children {
			if !child.Hidden {
				names = append(names, child.Name)
			}
		}
		if node.Parent == nil {
			text = "there is no command " + word
		}
		return errors.New(text + proposed("", near.Of(word, slices.Values(names))))
	}
	if strings.HasPrefix(text, "expected one of ") && node.Parent != nil {
		var names []string // kong names five
		for _, child := range node.Children {
			if !child.Hidden {
				names = append(names, strconv.Quote(child.Name))
			}
		}
		return errors.New("expected one of " + strings.Join(names, ", "))
	}
	if short := strings.Replace(text, `,"" but got`, ` but got`, 1); short != text {
		return errors.New(short) // what a flag is that was not given is no value to give
	}
	return err
}

// habits are flags of other programs, by command, and those of ours that do the same. Their names are too far
// from each other to be taken for misspelt, or nearer to others.
var habits = map[string]map[string]string{
	"serve": {
		"port": "listen 127.0.0.1:PORT", "bind": "listen ADDRESS:PORT", "address": "listen ADDRESS:PORT", "addr": "listen ADDRESS:PORT", "host": "listen ADDRESS:PORT",
		"read-only": "ro", "readonly": "ro",
	},
}

// ruleHabits are the same for commands that take rules: of rsync, tar and restic.
var ruleHabits = map[string]string{
	"exclude-file": "filter-from FILE", "exclude-from": "filter-from FILE", "include-file": "filter-from FILE", "include-from": "filter-from FILE",
	"filter": "filter-from FILE", "files-from-verbatim": "files-from FILE", "files-from-raw": "files-from FILE",
}

// unknownFlag is the error of a flag that the command node does not have.
func unknownFlag(node *kong.Node, args []string, flag string) error {
	if long, is := strings.CutPrefix(flag, "--"); is {
		var names []string
		for _, group := range node.AllFlags(true) {
			for _, f := range group {
				names = append(append(names, f.Name), f.Aliases...)
			}
		}
		word := habits[node.Name][long]
		if word == "" && slices.Contains(names, "filter-from") {
			word = ruleHabits[long]
		}
		if word == "" {
			word = near.Of(long, slices.Values(names))
		}
		return errors.New("unknown flag " + flag + proposed("--", word))
	}
	switch node.Name {
	case "find":
		for _, arg := range args {
			test, is := strings.CutPrefix(arg, "-")
			if _, _, known := findTest(test); is && !known && len(test) > 1 && test[0] == flag[1] {
				return fmt.Errorf("%s is no test of this find%s", arg, proposed("-", near.Of(test, slices.Values(findTests()))))
			}
		}
	case "cp":
		if flag == "-a" || flag == "-p" {
			return fmt.Errorf("unknown flag %s: cp keeps modes, owners, times, links and lists anyway; -r copies directories", flag)
		}
	}
	return errors.New("unknown flag " + flag)
}

// proposed is the end of an error that names what was meant; "" if nothing is near.
func proposed(dashes, word string) string {
	if word == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", dashes+word)
}
