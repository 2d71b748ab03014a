package main

import (
	"io"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"
)

// newParser makes the parser of args. exited becomes true when it has printed help.
func newParser(e *env, set kong.Resolver, args []string) (parser *kong.Kong, exited *bool, err error) {
	exited = new(bool)
	parser, err = kong.New(grammar(args), append(byteMappers(),
		ruleMapper(),
		kong.Name("nfsbox"),
		kong.Description(description),
		kong.Writers(e.stdout, e.stderr),
		kong.Exit(func(int) { *exited = true }),
		kong.NoDefaultHelp(),
		kong.Resolvers(set),
		kong.Help(e.printHelp),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
	)...)
	if err == nil {
		describeExits(parser.Model.Node)
	}
	return parser, exited, err
}

// whole is the command line with all commands.
func whole() (*kong.Application, error) {
	parser, _, err := newParser(&env{stdout: io.Discard, stderr: io.Discard}, new(resolver), nil)
	if err != nil {
		return nil, err
	}
	return parser.Model, nil
}

// grammar is a cli or, if args begin with the name of a command, as much of a cli as that command takes.
// Kong reads the definitions of all flags of its grammar, and most commands are done in less time.
func grammar(args []string) any {
	all := reflect.TypeFor[cli]()
	for i := range all.NumField() {
		field := all.Field(i)
		if _, is := field.Tag.Lookup("cmd"); !is || len(args) == 0 || strings.ToLower(field.Name) != args[0] {
			continue
		}
		help, _ := all.FieldByName("Help")
		return reflect.New(reflect.StructOf([]reflect.StructField{help, field})).Interface()
	}
	return new(cli)
}
