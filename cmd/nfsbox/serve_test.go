package main

import (
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
)

// TestServeFlags holds the flags against the keys of the configuration, and what
// help calls the default against what is.
func TestServeFlags(t *testing.T) {
	var c serveCmd
	parser, err := kong.New(&c, kong.Writers(io.Discard, io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	flags := make(map[string]bool)
	for _, f := range parser.Model.Flags {
		flags[f.Name] = true
	}
	for _, struc := range []reflect.Type{reflect.TypeFor[config.Config](), reflect.TypeFor[config.Export]()} {
		for _, name := range flagsOf(struc, "") {
			if !flags[name] {
				t.Errorf("there is a key, and no flag --%s", name)
			}
		}
	}
	if _, err := parser.Parse([]string{t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	if want := config.Default(); !reflect.DeepEqual(c.Config, want) {
		t.Errorf("help says %+v, and the default is %+v", c.Config, want)
	}
	if want := config.DefaultExport(); !reflect.DeepEqual(c.Export, want) {
		t.Errorf("help says %+v, and the default is %+v", c.Export, want)
	}
}

// flagsOf are the flags that the keys of a struct should have: those in a table
// begin with its name.
func flagsOf(struc reflect.Type, prefix string) (names []string) {
	for _, field := range reflect.VisibleFields(struc) {
		key, _, _ := strings.Cut(field.Tag.Get("toml"), ",")
		switch _, table := field.Tag.Lookup("embed"); {
		case key == "" || field.Tag.Get("kong") == "-":
		case table:
			names = append(names, flagsOf(field.Type, prefix+key+"-")...)
		case key == "path":
			names = append(names, "export")
		default:
			names = append(names, prefix+key)
		}
	}
	return names
}

// TestServeAllowed: the environment names clients where nothing else does, and must not be empty.
func TestServeAllowed(t *testing.T) {
	for what, c := range map[string]struct {
		flags config.Flags
		set   bool
		value string
		want  []string
		err   bool
	}{
		"not there":       {flags: config.Flags{Dir: "/x"}},
		"a list":          {flags: config.Flags{Dir: "/x"}, set: true, value: "10.0.0.0/8, ::1", want: []string{"10.0.0.0/8", "::1"}},
		"everybody":       {flags: config.Flags{Dir: "/x"}, set: true, value: "*", want: []string{"*"}},
		"empty":           {flags: config.Flags{Dir: "/x"}, set: true, err: true},
		"blank":           {flags: config.Flags{Dir: "/x"}, set: true, value: " ,", err: true},
		"--allow":         {flags: config.Flags{Dir: "/x", Given: map[string]bool{"allow": true}}, set: true},
		"a configuration": {flags: config.Flags{File: "/x.toml"}, set: true},
	} {
		if c.flags.Given == nil {
			c.flags.Given = make(map[string]bool)
		}
		err := allowed(&c.flags, func(string) (string, bool) { return c.value, c.set })
		if (err != nil) != c.err || !c.err && !reflect.DeepEqual(c.flags.Export.Allow, c.want) {
			t.Errorf("%s: %q, %v", what, c.flags.Export.Allow, err)
		}
	}
}
