package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// Flags are what the command line has said: the values, and by their keys which
// of them were given. What was given replaces what the file says; the flags of
// Export replace it in every export.
type Flags struct {
	Config Config
	Export Export
	Given  map[string]bool
	Dir    string // an export of its own; the file then has none
	File   string // nfsbox.toml; "" is none
}

// Load reads the file, if there is one, lays the flags over it, and checks the
// result. Its errors name the key, and the file's line or the flag.
func Load(f Flags) (*Config, error) {
	c, lines := Default(), positions(nil)
	if f.File != "" {
		text, err := readConfig(f.File)
		if err != nil {
			return nil, err
		}
		if err := decode(text, &c); err != nil {
			return nil, inFile(f.File, text, err)
		}
		w := walkPositions(text)
		if err := unquoted(f.File, w); err != nil {
			return nil, err
		}
		lines = w.found
	}
	if err := f.overlay(&c); err != nil {
		return nil, err
	}
	if f.File == "" {
		c.API.byHand(thisUser())
	}
	c.fill()
	var all []error
	for _, p := range c.check() {
		all = append(all, p.at(f, lines))
	}
	return &c, errors.Join(all...)
}

// readConfig reads what is at most maxConfig long.
func readConfig(path string) (text []byte, err error) {
	if err := regular(path); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err = io.ReadAll(io.LimitReader(f, maxConfig+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("configuration: %w", err)
	case len(text) > maxConfig:
		return nil, fmt.Errorf("configuration: %s is longer than %v", path, Size(maxConfig))
	}
	return text, nil
}

// decode lays a file's text over c. A key that is none of ours is an error.
func decode(text []byte, c *Config) error {
	d := toml.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(c)
}

// inFile says where in the file an error of decode is.
func inFile(path string, text []byte, err error) error {
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) {
		var all []error
		for _, e := range unknown.Errors {
			line, _ := e.Position()
			all = append(all, fmt.Errorf("%s:%d: %s: no such key", path, line, strings.Join(e.Key(), ".")))
		}
		return errors.Join(all...)
	}
	var wrong *toml.DecodeError
	if errors.As(err, &wrong) {
		line, _ := wrong.Position()
		what := plainly(strings.TrimPrefix(wrong.Error(), "toml: "))
		if key := strings.Join(wrong.Key(), "."); key != "" {
			what = key + ": " + what
		}
		return fmt.Errorf("%s:%d: %s", path, line, what)
	}
	if err := unquoted(path, walkPositions(text)); err != nil { // the decoder does not say where
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// kinds are what types of a Config are to those who write a file.
var kinds = map[string]string{
	"string": "a string", "[]string": "a list of strings", "bool": "true or false", "int": "a whole number", "uint32": "a whole number",
	"daemon.Duration": "a time in quotes", "daemon.Size": "a size", "daemon.Log": "a table", "daemon.API": "a table", "[]daemon.Export": "an [[export]]",
}

// plainly says what the decoder says of a value of the wrong kind without the names
// that fields and types have in Go.
func plainly(text string) string {
	found, field, ok := strings.Cut(text, " into struct field ")
	_, name, _ := strings.Cut(field, " of type ")
	if kind := kinds[name]; ok && kind != "" {
		return fmt.Sprintf("%s is wanted, and there is: %s", kind, strings.TrimPrefix(found, "cannot decode TOML "))
	}
	return text
}

// unquoted refuses a number where a text is wanted. The decoder would take it for
// nanoseconds. None at all, 0, needs no unit.
func unquoted(path string, w *positionWalk) error {
	var all []error
	examples := quoted(reflect.TypeFor[Config](), "")
	for _, key := range slices.Sorted(maps.Keys(examples)) {
		if value, ok := w.bare[key]; ok && value != "0" {
			all = append(all, fmt.Errorf("%s:%d: %s: %s is not in quotes, as in %q", path, w.found[key], key, value, examples[key]))
		}
	}
	return errors.Join(all...)
}

// quoted are the keys whose values are texts that are read further, with an example
// of each.
func quoted(t reflect.Type, prefix string) map[string]string {
	keys := make(map[string]string)
	for field := range t.Fields() {
		key, _, _ := strings.Cut(field.Tag.Get("toml"), ",")
		switch {
		case field.Type == reflect.TypeFor[Duration]():
			keys[prefix+key] = "90s"
		case field.Type == reflect.TypeFor[*User]():
			keys[prefix+key] = "1000:1000"
		case isTable(field):
			maps.Copy(keys, quoted(field.Type, prefix+key+"."))
		}
	}
	return keys
}

// overlay replaces what the flags have given, and adds the directory that they
// name.
func (f *Flags) overlay(c *Config) error {
	copyGiven(reflect.ValueOf(c).Elem(), reflect.ValueOf(f.Config), f.Given, "")
	if err := c.Log.absolute(f.Given); err != nil {
		return err
	}
	switch {
	case f.Dir != "" && len(c.Exports) > 0:
		return fmt.Errorf("%s has exports of its own: name no directory beside it", f.File)
	case f.Dir != "":
		c.Exports = []Export{{Dir: f.Dir, Path: "/"}}
	case f.File == "":
		return errors.New("nothing to serve: name a directory, or a configuration with -c")
	case f.Given["export"]:
		return fmt.Errorf("--export is the path of a directory named on the command line; those of %s have their own", f.File)
	}
	for i := range c.Exports {
		copyGiven(reflect.ValueOf(&c.Exports[i]).Elem(), reflect.ValueOf(f.Export), f.Given, "")
		if f.Given["allow"] {
			c.Exports[i].Clients = nil // those that the command line lets in, no others
		}
		if f.Given["ro"] && is(f.Export.ReadOnly) {
			for j := range c.Exports[i].Clients {
				c.Exports[i].Clients[j].ReadOnly = nil // as the export now is
			}
		}
	}
	return nil
}

// copyGiven copies the fields whose flags, which begin with prefix, were given.
func copyGiven(to, from reflect.Value, given map[string]bool, prefix string) {
	for field, v := range from.Fields() {
		dst := to.FieldByIndex(field.Index)
		switch {
		case field.Tag.Get("kong") == "-": // no flag of that name
		case field.Anonymous:
			copyGiven(dst, v, given, prefix)
		case isTable(field):
			copyGiven(dst, v, given, prefix+field.Tag.Get("prefix"))
		case given[prefix+flagName(field)]:
			dst.Set(v)
		}
	}
}

// isTable reports whether a field is a table of the file, whose name is the prefix
// of its flags.
func isTable(f reflect.StructField) bool { return f.Tag.Get("prefix") != "" }

// flagName is the flag of a field: its key in the file, but for the path of an
// export.
func flagName(f reflect.StructField) string {
	if name := f.Tag.Get("name"); name != "" {
		return name
	}
	key, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
	return key
}
