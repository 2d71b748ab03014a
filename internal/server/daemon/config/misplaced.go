package config

import (
	"fmt"
	"os"
	"reflect"
	"strings"
)

// Misplaced says what to do about a path with options after a comma, such as
// /data,max-file-size=1G: it would be exported by that name, without the option. It returns
// "" if path has none, or is a directory's.
func Misplaced(path string) string {
	_, options, ok := strings.Cut(path, ",")
	if !ok {
		return ""
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return ""
	}
	for option := range strings.SplitSeq(options, ",") {
		key, _, set := strings.Cut(option, "=")
		if flag, table := findKey(reflect.TypeFor[Export](), key, "", "[[export]]"); flag != "" {
			return misplaced(key, flag, "in "+table)
		}
		if flag, table := findKey(reflect.TypeFor[Config](), key, "", ""); flag != "" {
			return misplaced(key, flag, table)
		}
		if set {
			return fmt.Sprintf("a path takes no options, such as %q: they are flags, or keys of nfsbox.toml (see nfsbox serve --help)", option)
		}
	}
	return ""
}

func misplaced(key, flag, table string) string {
	return strings.TrimSpace(fmt.Sprintf("a path takes no options: %s is set by the flag --%s, or by the key %s of nfsbox.toml %s", key, flag, key, table))
}

// findKey finds the flag of a key, and its table in the file. Flags in t begin with prefix.
func findKey(t reflect.Type, key, prefix, table string) (flag, in string) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
		switch {
		case f.Tag.Get("kong") == "-":
		case f.Anonymous:
			flag, in = findKey(f.Type, key, prefix, table)
		case isTable(f):
			flag, in = findKey(f.Type, key, prefix+f.Tag.Get("prefix"), "in ["+name+"]")
		case name == key:
			return prefix + flagName(f), table
		}
		if flag != "" {
			return flag, in
		}
	}
	return "", ""
}
