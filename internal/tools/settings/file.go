package settings

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// maxFile bounds the file, in bytes. A longer one is an error.
const maxFile = 1 << 20

// Settings are what a user has set. They do not change, and may be used by many goroutines.
type Settings struct {
	file    string
	getenv  func(string) string
	aliases []entry            // sorted by name
	flags   map[string][]entry // by command: "cp", "bench compare"; "" is all
	servers map[string][]entry // by host, in small letters; "*" is any
}

// entry is a key of the file, its value as a flag or a URL would have it, and its line.
type entry struct {
	key, value string
	line       int
	list       bool // value is that of a list
}

// Read reads the file; "" is none. One that is not there, or in a directory that is closed, sets
// nothing, but is an error if the user has named it. getenv is os.Getenv.
func Read(file string, named bool, getenv func(string) string) (*Settings, error) {
	s := &Settings{file: file, getenv: getenv, flags: make(map[string][]entry), servers: make(map[string][]entry)}
	if file == "" {
		return s, nil
	}
	// A home that is another user's, as su(1) may leave it, has nothing for this one.
	_, err := os.Stat(file)
	if !named && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)) {
		return s, nil
	}
	text, err := read(file)
	if err != nil && named {
		return nil, fmt.Errorf("the file that NFSBOX_CONFIG names: %w", err)
	}
	if err != nil {
		return nil, err
	}
	if err := toml.Unmarshal(text, new(map[string]any)); err != nil {
		return nil, decodeError(file, err)
	}
	if err := s.parse(text); err != nil {
		return nil, err
	}
	slices.SortFunc(s.aliases, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	return s, nil
}

func read(file string) (text []byte, err error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a file", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		return nil, fmt.Errorf("%s: longer than %d bytes", file, maxFile)
	}
	return text, err
}

func decodeError(file string, err error) error {
	if wrong := new(toml.DecodeError); errors.As(err, &wrong) {
		line, _ := wrong.Position()
		return fmt.Errorf("%s:%d: %s", file, line, strings.TrimPrefix(wrong.Error(), "toml: "))
	}
	return fmt.Errorf("%s: %w", file, err)
}

// parse takes a text that is right as TOML, line by line: the decoder does not say on which
// line a value stands.
func (s *Settings) parse(text []byte) error {
	var p unstable.Parser
	p.Reset(text)
	var table []string
	for p.NextExpression() {
		e := p.Expression()
		line := 1 + strings.Count(string(text[:keyAt(e)]), "\n")
		key := keyOf(e)
		var err error
		switch e.Kind {
		case unstable.Table:
			table = key
		case unstable.KeyValue:
			err = s.set(append(slices.Clone(table), key...), e.Value(), line)
		default:
			err = fmt.Errorf("[[%s]]: there are no lists of tables here", strings.Join(key, "."))
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", s.file, line, err)
		}
	}
	return nil
}

// keyAt is where the first key of an expression stands in the text.
func keyAt(e *unstable.Node) uint32 {
	it := e.Key()
	it.Next()
	return it.Node().Raw.Offset
}

func keyOf(e *unstable.Node) (key []string) {
	for it := e.Key(); it.Next(); {
		key = append(key, string(it.Node().Data))
	}
	return key
}

// set takes a value: alias.filer, flags.verify, flags.cp.verify, flags.bench.compare.json,
// server."10.0.0.5".max-load.
func (s *Settings) set(key []string, v *unstable.Node, line int) error {
	name := key[len(key)-1]
	text, err := valueOf(v)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", strings.Join(key, "."), err)
	case len(key) == 2 && key[0] == "alias":
		if err := checkAlias(name, text); err != nil {
			return err
		}
		s.aliases = append(s.aliases, entry{key: name, value: text, line: line})
	case len(key) >= 2 && key[0] == "flags":
		command := strings.Join(key[1:len(key)-1], " ")
		s.flags[command] = append(s.flags[command], entry{name, text, line, v.Kind == unstable.Array})
	case len(key) == 3 && key[0] == "server":
		if err := checkArg(name, text); err != nil {
			return err
		}
		host := strings.ToLower(key[1])
		s.servers[host] = append(s.servers[host], entry{key: name, value: text, line: line})
	default:
		return fmt.Errorf(`%s: no such key: there are [alias], [flags], [flags.COMMAND] and [server."HOST"]`, strings.Join(key, "."))
	}
	return nil
}

// valueOf is a value as the command line has it. Those of a list are divided by commas.
func valueOf(v *unstable.Node) (string, error) {
	switch v.Kind {
	case unstable.String, unstable.Integer, unstable.Float, unstable.Bool:
		return string(v.Data), nil
	case unstable.Array:
		var all []string
		for it := v.Children(); it.Next(); {
			one, err := valueOf(it.Node())
			if err != nil {
				return "", err
			}
			all = append(all, one)
		}
		return strings.Join(all, ","), nil
	}
	return "", errors.New("a string, a number, true, false, or a list of them is due")
}

// File is where the settings of this user are: $NFSBOX_CONFIG, which names it, and may be "" for none, or
// nfsbox/nfsbox.toml below $XDG_CONFIG_HOME, which is ~/.config if it is not set. lookup is
// os.LookupEnv.
func File(lookup func(string) (string, bool)) (file string, named bool) {
	if file, ok := lookup("NFSBOX_CONFIG"); ok {
		return file, true
	}
	dir, _ := lookup("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) { // a relative one is to be ignored (XDG Base Directory Specification)
		home, _ := lookup("HOME")
		if runtime.GOOS == "windows" {
			home, _ = lookup("USERPROFILE")
		}
		if home == "" {
			return "", false
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "nfsbox", "nfsbox.toml"), false
}
