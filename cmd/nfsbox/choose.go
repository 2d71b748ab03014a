package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/nfsbox/nfsbox/internal/base/fault"
	"github.com/nfsbox/nfsbox/internal/base/filter"
	"github.com/nfsbox/nfsbox/internal/tools/find"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/vfs"
)

// ruleFlags say what is chosen of a tree by its path. Commands that show or change trees have them.
type ruleFlags struct {
	pathRules
	Snapshots bool `help:"Take directories called .snapshot, ~snapshot, .zfs or .ckpt as well, in which servers show snapshots. Without it they are left out, and counted."`
}

// pathRules are ruleFlags without what is for servers alone.
type pathRules struct {
	Include    []ruleArg `type:"rule" placeholder:"PATTERN" help:"Take what PATTERN matches, as rsync does. Of all --include, --exclude and --filter-from, in their order, the first rule that matches decides; what none matches is taken."`
	Exclude    []ruleArg `type:"rule" placeholder:"PATTERN" help:"Leave out what PATTERN matches. In it *, ? and [...] stand for characters, ** for slashes as well; it begins with a slash if it is to match from PLACE on, and ends in one if it is to match directories alone."`
	FilterFrom []ruleArg `type:"rule" name:"filter-from" placeholder:"FILE" help:"Read rules from FILE, one a line: + PATTERN takes, - PATTERN leaves out."`
	FilesFrom  string    `name:"files-from" type:"path" placeholder:"FILE" help:"Take the paths alone that FILE lists, one a line, relative to PLACE, with all below them; - is standard input."`
}

// nulFlag is apart from ruleFlags for du, whose -0 is another one.
type nulFlag struct {
	From0 bool `name:"from0" short:"0" help:"A NUL ends each path of --files-from, and no line."`
}

// fileFlags say which files are chosen by their attributes.
type fileFlags struct {
	NewerThan string `name:"newer" sep:"none" placeholder:"TIME|AGE" help:"Leave out files that were not modified after TIME (2026-01-31, 2026-01-31 12:00, RFC 3339), or longer than AGE (90m, 12h, 7d, 2w) ago."`
	MinSize   string `name:"min-size" placeholder:"SIZE" help:"Leave out files of less than SIZE bytes; with K, M, G or T behind it KiB, MiB, GiB or TiB."`
	MaxSize   string `name:"max-size" placeholder:"SIZE" help:"Leave out files of more than SIZE bytes."`
}

// ruleArg is an argument of --include, --exclude or --filter-from.
type ruleArg struct {
	text string
	left int // how many arguments followed: its place among the others
}

// ruleMapper reads them. A comma in a pattern is a character like others.
func ruleMapper() kong.Option {
	return kong.NamedMapper("rule", kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
		text, err := argument(ctx, "pattern")
		if err == nil {
			target.Set(reflect.Append(target, reflect.ValueOf(ruleArg{text, ctx.Scan.Len()})))
		}
		return err
	}))
}

// ordered is a switch: of several that exclude each other the last counts. It is how many arguments followed, plus one, or 0 if
// it was not given. One with a value, as settings have it, is before all others.
type ordered int

// IsBool implements kong.BoolMapperValue.
func (ordered) IsBool() bool { return true }

// Decode implements kong.MapperValue.
func (o *ordered) Decode(ctx *kong.DecodeContext) error {
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		*o = ordered(ctx.Scan.Len() + 1)
		return nil
	}
	on, err := strconv.ParseBool(fmt.Sprint(ctx.Scan.Pop().Value))
	if *o = 0; on {
		*o = math.MaxInt
	}
	return err
}

// after reports whether it was given, and the other one not, or before.
func (o ordered) after(other ordered) bool { return o != 0 && (other == 0 || o < other) }

// filter makes the filter of the flags. It reads their files. What is wrong with one is an error that names it.
func (f *ruleFlags) filter(from0 bool, files *fileFlags) (*filter.Filter, error) {
	return f.filterOf(filter.Options{}, from0, files)
}

// filterOf is filter with more options.
func (f *ruleFlags) filterOf(o filter.Options, from0 bool, files *fileFlags) (_ *filter.Filter, err error) {
	o.Snapshots = f.Snapshots
	if o.Rules, err = f.rules(); err == nil {
		err = files.into(&o)
	}
	if err == nil && f.FilesFrom != "" {
		o.List, err = readList(f.FilesFrom, from0)
	}
	if err != nil {
		return nil, refused(err)
	}
	chosen, err := filter.New(o)
	if err != nil {
		return nil, refused(err)
	}
	return chosen, nil
}

// rules are those of the flags, in their order on the command line.
func (f *ruleFlags) rules() (rules []filter.Rule, err error) {
	type given struct {
		ruleArg
		flag string
	}
	var all []given
	for _, x := range []struct {
		flag string
		args []ruleArg
	}{{"--include", f.Include}, {"--exclude", f.Exclude}, {"--filter-from", f.FilterFrom}} {
		for _, a := range x.args {
			all = append(all, given{a, x.flag})
		}
	}
	slices.SortStableFunc(all, func(a, b given) int { return b.left - a.left })
	for _, a := range all {
		if a.flag != "--filter-from" {
			if strings.HasPrefix(a.text, "+ ") || strings.HasPrefix(a.text, "- ") || a.text == "!" {
				return nil, fmt.Errorf("%s takes a pattern: rules, such as %q, are for --filter-from", a.flag, a.text)
			}
			rules = append(rules, filter.Rule{Include: a.flag == "--include", Pattern: a.text, From: a.flag})
			continue
		}
		more, err := readRules(a.text)
		if err != nil {
			return nil, fmt.Errorf("--filter-from: %w", err)
		}
		rules = append(rules, more...)
	}
	return rules, nil
}

func readRules(name string) (rules []filter.Rule, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return filter.ParseRules(name, file)
}

func readList(name string, nul bool) (list *filter.List, err error) {
	var r io.Reader = os.Stdin
	shown := "standard input"
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("--files-from: %w", err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		r, shown = file, name
	}
	if list, err = filter.ReadList(shown, r, nul); err != nil {
		return nil, fmt.Errorf("--files-from: %w", err)
	}
	return list, nil
}

// into adds what the flags say of files.
func (f *fileFlags) into(o *filter.Options) (err error) {
	if f == nil {
		return nil
	}
	if f.NewerThan != "" {
		if o.Newer, err = find.ParseSince(f.NewerThan, time.Now()); err != nil {
			return fmt.Errorf("--newer: %w", err)
		}
	}
	if o.MinSize, err = parseSize("--min-size", f.MinSize); err != nil {
		return err
	}
	o.MaxSize, err = parseSize("--max-size", f.MaxSize)
	return err
}

// parseSize reads a number of bytes, or with a letter behind it of units of 1024; nil for "".
func parseSize(flag, text string) (*uint64, error) {
	if text == "" {
		return nil, nil
	}
	digits, shift := text, 0
	if i := strings.IndexByte("KMGTP", text[len(text)-1]&^0x20); i >= 0 {
		digits, shift = text[:len(text)-1], 10*(i+1)
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || n<<shift>>shift != n {
		return nil, fmt.Errorf("%s: %q is no size, such as 4096, 64K or 1G", flag, text)
	}
	n <<= shift
	return &n, nil
}

// leftOut is, in a summary, what was not chosen.
type leftOut struct {
	LeftOut   uint64 `json:"left_out"`           // entries that flags leave out, directories with all below them as one
	Snapshots uint64 `json:"snapshots_left_out"` // of them, directories of snapshots
	Elsewhere uint64 `json:"mounts_skipped"`     // directories of other file systems, which are not looked into
}

func leftOutOf(f *filter.Filter) (l leftOut) {
	l.LeftOut, l.Snapshots = f.Left()
	return l
}

// words say what was left out, for people; "" if nothing was.
func (l leftOut) words() string {
	return text(
		counted{l.LeftOut - l.Snapshots, "entry that was not chosen|entries that were not chosen"},
		counted{l.Snapshots, "directory of snapshots (--snapshots takes such)|directories of snapshots (--snapshots takes them)"},
		counted{l.Elsewhere, "directory's contents, on another file system|directories' contents, on other file systems"},
	)
}

// errNotListed is about a path of --files-from that was not met.
var errNotListed = fmt.Errorf("--files-from lists it, and it was not found: %w", vfs.ErrNoEnt)

// missing reports what --files-from lists and a job has not met, and returns how many paths that is.
func missing(f *filter.Filter, t *progress.Tracker) (n uint64) {
	for path := range f.Missing() {
		n++
		t.Add(progress.Errors, 1)
		t.Add(progress.MoreErrors, 1)
		t.Report(progress.Event{Type: "error", Path: path, Message: fault.Text(errNotListed), Err: errNotListed})
	}
	return n
}

// onlyOne refuses --files-from for several places: its paths are relative to one.
func (f *ruleFlags) onlyOne(places []string) error {
	if f.FilesFrom != "" && len(places) > 1 {
		return errors.New("--files-from takes one PLACE: its paths are relative to that")
	}
	return nil
}
