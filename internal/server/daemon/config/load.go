package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/nfsbox/nfsbox/internal/server/daemon/paths"
)

// Load reads the file, if there is one, lays the flags over it, and checks the
// result. Its errors name the key, and the file's line or the flag. They are all that is
// wrong, unless the file is no TOML. With an error the result is what could be read, or nil.
func Load(f Flags) (*Config, error) {
	c, lines := Default(), positions(nil)
	var all []error
	var bare []string // keys of which that much has been said
	if f.File != "" {
		text, err := readConfig(f.File)
		if err != nil {
			return nil, err
		}
		r := reading{path: f.File, text: text}
		w, err := r.read(&c)
		if err != nil {
			return nil, err
		}
		all, bare, lines = r.wrong, r.keys, w.found
	}
	if err := f.overlay(&c); err != nil {
		return nil, errors.Join(append(all, err)...)
	}
	if f.File == "" {
		c.API.byHand(thisUser())
	}
	c.Fill()
	for _, p := range c.check() {
		if !slices.Contains(bare, p.key) {
			all = append(all, p.at(f, lines))
		}
	}
	return &c, InOrder(f.File, errors.Join(all...))
}

// InOrder returns the errors that errors.Join has put together in err in the order of the file's lines. Those that name
// no line come last.
func InOrder(file string, err error) error {
	all := apart(err)
	slices.SortStableFunc(all, func(a, b error) int { return cmp.Compare(lineOf(file, a), lineOf(file, b)) })
	return errors.Join(all...)
}

// apart are the errors that errors.Join has put together.
func apart(err error) (all []error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || errors.Join(joined.Unwrap()...).Error() != err.Error() {
		return []error{err}
	}
	for _, one := range joined.Unwrap() {
		all = append(all, apart(one)...)
	}
	return all
}

// lineOf is the line of the file that an error begins with.
func lineOf(file string, err error) int {
	if err != nil {
		if rest, ok := strings.CutPrefix(err.Error(), file+":"); ok {
			number, _, _ := strings.Cut(rest, ":")
			if n, err := strconv.Atoi(number); err == nil {
				return n
			}
		}
	}
	return math.MaxInt
}

// Locate adds the key to an error about its value, with the line of the file as that is
// now, or the flag.
func (f Flags) Locate(key string, err error) error {
	if f.Dir != "" && strings.HasSuffix(key, ".dir") || f.From != "" && strings.HasSuffix(key, ".from") {
		return err // the argument of the command, which err names
	}
	var lines positions
	if f.File != "" {
		text, e := readConfig(f.File)
		r := reading{path: f.File, text: text}
		if w, err := r.read(new(Config)); e == nil && err == nil {
			lines = w.found
		}
	}
	return problem{key: key, cause: err}.at(f, lines)
}

func readConfig(path string) (text []byte, err error) {
	if err := paths.Regular(path); err != nil {
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

// reading is a file that is read although some of its values are of the wrong kind.
type reading struct {
	path  string
	text  []byte   // without those values
	wrong []error  // what has been said so far
	keys  []string // of which that was
}

// read lays the file over c, which is Default. Each value of the wrong kind is said, left
// out, and what remains is read again. An error ends the reading.
func (r *reading) read(c *Config) (*positionWalk, error) {
	for {
		*c = Default()
		err := decode(r.text, c)
		var unknown *toml.StrictMissingError
		w := walkPositions(r.text)
		if err == nil || errors.As(err, &unknown) {
			r.wrong = append(r.wrong, unknownKeys(r.path, unknown)...)
			keys, err := unquoted(r.path, w)
			if err != nil {
				r.wrong = append(r.wrong, err)
			}
			r.keys = append(r.keys, keys...)
			return w, nil
		}
		r.wrong = append(r.wrong, inFile(r.path, r.text, err))
		if len(r.wrong) >= maxWrongKinds || !r.leaveOut(w, err) {
			return nil, errors.Join(r.wrong...)
		}
	}
}

// leaveOut takes the value that err is about out of the text, and keeps the lines. It
// reports whether it could.
func (r *reading) leaveOut(w *positionWalk, err error) bool {
	if w.p.Error() != nil {
		return false
	}
	var lines []int
	var wrong *toml.DecodeError
	if errors.As(err, &wrong) {
		line, _ := wrong.Position()
		lines = append(lines, line)
	} else {
		keys, _ := unquoted(r.path, w)
		for _, key := range keys {
			lines = append(lines, w.found[key])
		}
	}
	done := false
	text := bytes.SplitAfter(r.text, []byte("\n"))
	for _, line := range lines {
		from, to, key := w.around(line)
		if key == "" {
			return false
		}
		for i := from - 1; i < min(to-1, len(text)); i++ {
			text[i] = bytes.Repeat([]byte("\n"), bytes.Count(text[i], []byte("\n")))
		}
		r.keys, done = append(r.keys, key), true
	}
	r.text = bytes.Join(text, nil)
	return done
}

// unknownKeys says of each key that is none of ours where it is, and which was meant.
func unknownKeys(path string, unknown *toml.StrictMissingError) (all []error) {
	if unknown == nil {
		return nil
	}
	for _, e := range unknown.Errors {
		line, _ := e.Position()
		key := e.Key()
		advice := ""
		if near := nearest(key); near != "" {
			advice = "; did you mean " + near + "?"
		}
		all = append(all, fmt.Errorf("%s:%d: %s: no such key%s", path, line, strings.Join(key, "."), advice))
	}
	return all
}

// inFile says where in the file an error of decode is.
func inFile(path string, text []byte, err error) error {
	var wrong *toml.DecodeError
	if errors.As(err, &wrong) {
		line, _ := wrong.Position()
		what := plainly(strings.TrimPrefix(wrong.Error(), "toml: "))
		if key := strings.Join(wrong.Key(), "."); key != "" {
			what = key + ": " + what
		}
		return fmt.Errorf("%s:%d: %s", path, line, what)
	}
	if _, err := unquoted(path, walkPositions(text)); err != nil { // the decoder does not say where
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// kinds are the words for types of a Config in errors.
var kinds = map[string]string{
	"string": "a string", "[]string": "a list of strings", "bool": "true or false", "int": "a whole number", "uint32": "a whole number",
	"config.Duration": "a time in quotes", "config.Size": "a size", "config.Log": "a table", "config.API": "a table", "[]config.Export": "an [[export]]",
	"config.Client": "a table", "[]config.Client": "a list of tables",
}

// instead is how values are written that are often taken for others.
var instead = map[string]string{
	"config.Client": clientInstead, "[]config.Client": clientInstead,
}

const clientInstead = `; write clients = [{match = "10.0.0.7", ro = true}], or allow = ["10.0.0.7"] if no rule is its own`

// plainly is the decoder's error for a value of the wrong kind, without the names of Go's
// fields and types.
func plainly(text string) string {
	found, field, ok := strings.Cut(text, " into struct field ")
	_, name, _ := strings.Cut(field, " of type ")
	if kind := kinds[name]; ok && kind != "" {
		return fmt.Sprintf("%s is wanted, and there is: %s%s", kind, strings.TrimPrefix(found, "cannot decode TOML "), instead[name])
	}
	return text
}

// unquoted refuses a number where a text is wanted: the decoder would take it for
// nanoseconds. 0 needs no unit, and is allowed. It returns the keys, too.
func unquoted(path string, w *positionWalk) (keys []string, err error) {
	var all []error
	examples := quoted(reflect.TypeFor[Config](), "")
	for _, key := range slices.Sorted(maps.Keys(examples)) {
		if value, ok := w.bare[key]; ok && value != "0" {
			keys = append(keys, key)
			all = append(all, fmt.Errorf("%s:%d: %s: %s is not in quotes, as in %q", path, w.found[key], key, value, examples[key]))
		}
	}
	return keys, errors.Join(all...)
}

// quoted are the keys whose values are texts with a syntax of their own, each with an
// example.
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
