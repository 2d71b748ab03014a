package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Flags are what the command line has said: the values, and by their keys which
// of them were given. What was given replaces what the file says; the flags of
// Export replace it in every export.
type Flags struct {
	Config Config
	Export Export
	Given  map[string]bool
	Dir    string // an export of its own; the file then has none
	From   string // likewise, of another server: a URL
	File   string // nfsbox.toml; "" is none
}

// at says where the value came from: a flag, a line of the file, or neither.
func (p problem) at(f Flags, lines positions) error {
	name := flagOf(p.key)
	if name == "path" && f.Served() != "" {
		name = "export"
	}
	if f.Given[name] {
		if name == "api-listen" {
			name = "api" // as it is typed
		}
		return p.message("--" + name)
	}
	if line, ok := lines.line(p.key); ok {
		return p.message(fmt.Sprintf("%s:%d: %s", f.File, line, p.key))
	}
	if f.File != "" {
		return p.message(f.File + ": " + p.key)
	}
	return p.message(name)
}

// Served is the directory, or the URL, that the command line names; "" is none.
func (f *Flags) Served() string { return f.Dir + f.From }

// flagOf is the flag of a key: "io-pool", "log-level" of log.level, "dir" of
// export[1].dir, and "listen" of listen[0].
func flagOf(key string) string {
	tables, last := "", key
	if i := strings.LastIndexByte(key, '.'); i >= 0 {
		tables, last = key[:i], key[i+1:]
	}
	name, _, _ := strings.Cut(last, "[")
	if tables == "" || strings.HasSuffix(tables, "]") {
		return name
	}
	return tables + "-" + name
}

// overlay replaces what the flags have given, and adds the directory that they
// name.
func (f *Flags) overlay(c *Config) error {
	copyGiven(reflect.ValueOf(c).Elem(), reflect.ValueOf(f.Config), f.Given, "")
	if err := c.Log.absolute(f.Given); err != nil {
		return err
	}
	switch {
	case f.Served() != "" && len(c.Exports) > 0:
		return fmt.Errorf("%s has exports of its own: name no directory beside it", f.File)
	case f.Served() != "":
		c.Exports = []Export{{Dir: f.Dir, From: f.From, Path: "/"}}
	case f.File == "" && f.Given["export"]:
		return noDirectory(f.Export.Path)
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
		if f.Given["ro"] && IsSet(f.Export.ReadOnly) {
			for j := range c.Exports[i].Clients {
				c.Exports[i].Clients[j].ReadOnly = nil // as the export now is
			}
		}
	}
	return nil
}

// noDirectory says that --export does not name what is served.
func noDirectory(path string) error {
	advice := ""
	if a := Misplaced(path); a != "" {
		path, _, _ = cutOptions(path)
		advice = "; " + a
	}
	return fmt.Errorf("nothing to serve: --export is the path that clients mount; name the directory, too, as in nfsbox serve DIR --export %s%s", path, advice)
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
