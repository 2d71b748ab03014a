package config

import (
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"unicode"
)

// Misplaced says what to do about a path with options behind it, in whatever way other
// servers write them: /data,ro or /data(ro,all_squash) or /data:ro or "/data 10.0.0.0/8".
// It would be exported by that name, without the options. Misplaced returns "" if path
// has none, or is a directory's.
func Misplaced(path string) string {
	name, options, ok := cutOptions(path)
	if !ok || isDir(path) {
		return ""
	}
	advice := ""
	for _, option := range options {
		if advice = spelled(option); advice != "" {
			break
		}
	}
	control := strings.ContainsFunc(path, unicode.IsControl)
	switch before := name != "/" && isDir(name); {
	case advice == "" && control:
		advice = "it has a line feed, or another control character"
	case advice == "" && before && options[0] != "":
		advice = fmt.Sprintf("there is no such directory, and a path takes no options, such as %q: they are flags, or keys of nfsbox.toml (see nfsbox serve --help)", options[0])
	case advice == "":
		return ""
	}
	return fmt.Sprintf("%s; the path alone is %q", advice, name)
}

// cutOptions parts a path from what may be options behind it. ok is false if there is
// nothing of the kind.
func cutOptions(path string) (name string, options []string, ok bool) {
	path = strings.TrimRight(path, " ")
	separates := func(r rune) bool { return strings.ContainsRune(",;:()", r) || unicode.IsControl(r) }
	at := strings.IndexFunc(path, separates)
	if blank := strings.LastIndexByte(path, ' '); at < 0 && blank > 0 {
		if word := path[blank+1:]; isOption(word) {
			return strings.TrimSpace(path[:blank]), []string{word}, true
		}
		return path, nil, false
	}
	if at < 0 {
		return path, nil, false
	}
	name = path[:at]
	if blank := strings.LastIndexByte(name, ' '); blank > 0 {
		switch word := name[blank+1:]; {
		case isClient(word): // as in "/data 10.0.0.0/8(ro)"
			name = name[:blank]
		case strings.HasPrefix(word, "-"): // as in "/data -ro,all_squash"
			name, options = name[:blank], []string{word[1:]}
		}
	}
	for option := range strings.FieldsFuncSeq(path[at:], separates) {
		if option = strings.TrimSpace(option); option != "" {
			options = append(options, option)
		}
	}
	if len(options) == 0 {
		options = []string{""}
	}
	return strings.TrimSpace(name), options, true
}

// isOption reports whether a word behind a blank is an option. A name may have blanks, as
// "/in sync" has: only a client, ro, a word with a dash, or a key with a value is one.
func isOption(word string) bool {
	bare := strings.ToLower(strings.Trim(word, quotes))
	return isClient(word) || bare == "ro" || (word != bare && word[0] == '-' || strings.Contains(word, "=")) && spelled(word) != ""
}

// quotes are what may stand around an option.
const quotes = `-'"`

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// isClient reports whether a word says who may mount.
func isClient(word string) bool {
	_, network := netip.ParsePrefix(word)
	_, address := netip.ParseAddr(word)
	return word == "*" || network == nil || address == nil
}

// spelled says how an option is written here; "" if it is none that is known.
func spelled(option string) string {
	option = strings.Trim(option, quotes)
	key, _, set := strings.Cut(strings.ToLower(option), "=")
	if flag, table := findKey(reflect.TypeFor[Export](), key, "", "[[export]]"); flag != "" {
		return misplaced(key, flag, "in "+table)
	}
	if flag, table := findKey(reflect.TypeFor[Config](), key, "", ""); flag != "" {
		return misplaced(key, flag, table)
	}
	if here, ok := foreign[key]; ok {
		return fmt.Sprintf("a path takes no options: %s is %s here", option, here)
	}
	switch {
	case isClient(option):
		return fmt.Sprintf("a path takes no clients: %s is let in by the flag --allow, or by the key allow of nfsbox.toml in [[export]]", option)
	case set:
		return fmt.Sprintf("a path takes no options, such as %q: they are flags, or keys of nfsbox.toml (see nfsbox serve --help)", option)
	}
	return ""
}

// foreign are options as exports(5) of Linux and of the BSDs have them, and what is written
// here.
var foreign = map[string]string{
	"readonly": "--ro (ro = true)", "read-only": "--ro (ro = true)", "read_only": "--ro (ro = true)",
	"rw": "what holds without --ro", "sync": "what holds without --async",
	"all_squash": `--squash all (squash = "all")`, "root_squash": `--squash root (squash = "root")`,
	"no_root_squash": `--squash none (squash = "none")`, "no_all_squash": `--squash root (squash = "root")`,
	"maproot": "--squash root with --anonuid and --anongid", "mapall": "--squash all with --anonuid and --anongid",
	"nohide": "--crossmnt (crossmnt = true)", "mp": "--mountpoint (mountpoint = true)",
	"insecure": "what holds without --secure", "network": "--allow (allow = [...])",
	"subtree_check": "not to be had", "no_subtree_check": "what always holds", "alldirs": "what always holds",
	"wdelay": "not to be had", "no_wdelay": "what always holds",
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
