package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/lines"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/search"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

type grepCmd struct {
	Pattern       *string  `arg:"" optional:"" name:"PATTERN" help:"What to look for: an expression in the syntax of Go (RE2), much like that of grep -E. With -e and -f it is a PLACE."`
	Places        []string `arg:"" optional:"" place:"" name:"PLACE" help:"Files, and with -r directories: paths or nfs://host/export/path, in whose last parts *, ? (as %3F) and [ stand for names; - is standard input. Without one it is that, with -r the working directory."`
	Regexp        []string `short:"e" sep:"none" placeholder:"PATTERN" help:"Look for PATTERN; with several of them, for any."`
	File          []string `short:"f" sep:"none" placeholder:"FILE" help:"Look for the patterns that FILE lists, one a line, as well; - is standard input. An empty FILE has none, and an empty line matches every line."`
	Recursive     bool     `short:"r" help:"Search all files below directories. Links in them are not followed, devices and pipes are left out."`
	IgnoreCase    bool     `name:"ignore-case" short:"i" help:"Letters match in upper and in lower case: those of ASCII."`
	Fixed         bool     `name:"fixed-strings" short:"F" help:"PATTERN is a text, and no expression."`
	Extended      bool     `name:"extended-regexp" short:"E" help:"Changes nothing: expressions are extended ones."`
	Invert        bool     `name:"invert-match" short:"v" help:"Show the lines that do not match."`
	Word          bool     `name:"word-regexp" short:"w" help:"A match has no letter, digit or underscore beside it."`
	Whole         bool     `name:"line-regexp" short:"x" help:"A match is a whole line."`
	Only          bool     `name:"only-matching" short:"o" help:"Show the matches alone, each in a line of its own."`
	Count         bool     `short:"c" help:"Show how many lines of each file match, and not the lines."`
	List          ordered  `name:"files-with-matches" short:"l" help:"Show the names of files that have a match. Of this and -L the last counts; so it is of -H and -h, of -a and -I."`
	ListNot       ordered  `name:"files-without-match" short:"L" help:"Show the names of files that have none."`
	Quiet         bool     `short:"q" help:"Show nothing, and end with status 0 at the first match."`
	NoMessages    bool     `name:"no-messages" short:"s" help:"Say nothing of files that are not there or cannot be read; the exit status does."`
	Max           int64    `name:"max-count" short:"m" default:"-1" placeholder:"N" help:"Stop reading a file after N lines that match. Standard input, if it is a file, is left behind the last of them."`
	After         *int     `name:"after-context" short:"A" placeholder:"N" help:"Show N lines after each that matches, too."`
	Before        *int     `name:"before-context" short:"B" placeholder:"N" help:"Show N lines before each that matches, too."`
	Context       *int     `short:"C" placeholder:"N" help:"Show N lines before and after, where -A and -B do not say. -N is short for it."`
	Number        bool     `name:"line-number" short:"n" help:"Show the number of each line, from 1."`
	Offset        bool     `name:"byte-offset" short:"b" help:"Show where each line begins, in bytes from 0; with -o each match."`
	WithName      ordered  `name:"with-filename" short:"H" help:"Show the name of the file before each line. Without it, and without -h, that is done if there may be several."`
	NoName        ordered  `name:"no-filename" short:"h" help:"Show no names of files before lines."`
	Text          ordered  `short:"a" help:"Search binary files as if they were text."`
	SkipBinary    ordered  `short:"I" help:"Leave out binary files."`
	Color         string   `aliases:"colour" enum:"auto,always,never" default:"auto" help:"Show names and matches in colours: on a terminal, unless NO_COLOR is set (auto), always or never."`
	Engine        string   `enum:"go,re2" default:"go" placeholder:"go|re2" help:"What expressions are matched by: Go's regexp, or RE2. The results are the same."`
	MaxMem        string   `name:"max-mem" placeholder:"SIZE" help:"The memory of --engine=re2 for a pattern and its states, 64K to 1G (default: 8M)."`
	Parallel      int      `default:"8" placeholder:"N" help:"Files to read at once, 1 to 256."`
	OneFileSystem bool     `name:"one-file-system" help:"Leave out what is in directories that are on another file system than PLACE, or that something of this host is mounted on, and count those."`
	ErrorsTo      string   `type:"path" placeholder:"FILE" help:"Write every failure to FILE, as lines of JSON; in text three of each cause are shown, and the others counted."`
	JSON          bool     `help:"Print one line of JSON for each match, and the like, then a summary."`
	ruleFlags
	fileFlags
	nulFlag
	clientFlags
}

func (*grepCmd) Help() string {
	return `Prints the lines of files that match PATTERN, as grep(1) does, of this host and of servers, without a mount. Files are
read a block at a time, several at once; nothing is written anywhere.

What a line is, and what matches, is as for GNU grep -E in the locale C: a character is a byte, whatever the
encoding is, and the longest match counts. Expressions are those of Go, in linear time: there are no
back-references, a { that begins no repetition stands for itself, and within brackets a
backslash escapes; \xff is a byte. A pattern that would become larger than 100,000 instructions is refused.

The lines of a file stay together, and the files come in the order in which they are named and in which the
server lists them, which is not sorted. In what order they are read is not determined.

A file with a NUL in its first 96 KiB is binary: that it matches is said, on stderr, and its lines are not shown. If a
NUL comes later, lines before its block are. In binary files a NUL ends a line. A hole counts as NULs, and is not
read where the file system tells of it.

A line of more than 16 MiB is not searched: the file is reported as failed, and its other lines are
searched. Memory is about 1 MiB for each of --parallel files, or ten times its longest line if that is
more, and 4 MiB for the output of files whose turn has not come.

RE2 can be several times as fast where a pattern has no text that each match contains. It keeps states within --max-mem, and
starts anew when that is full. Where it cannot go on, or gains nothing by that, Go's regexp goes on, and grep
says so in the end.

--include, --exclude and --filter-from are rsync's: of all, the first that matches an entry decides. If the first is an
--include, files that none matches are left out, as grep does. A directory that is left out is not listed.

What could steer a terminal is shown there as escapes, in names and in lines; elsewhere both are printed as they are.

  nfsbox grep -rn 'timed? out' nfs://filer/export/var/log
  nfsbox grep -c ERROR 'nfs://filer/export/logs/*.log'
  nfsbox grep -rlF --include '*.conf' 10.0.0.7 nfs://filer/export/etc
  nfsbox cat nfs://filer/export/log | nfsbox grep -iw error`
}

// maxContext is the most lines of context.
const maxContext = 100_000

// Validate is called by kong.
func (c *grepCmd) Validate() error {
	for _, n := range []*int{c.After, c.Before, c.Context} {
		if n != nil && (*n < 0 || *n > maxContext) {
			return fmt.Errorf("-A, -B and -C take 0 to %d", maxContext)
		}
	}
	switch {
	case c.MaxMem != "" && c.Engine != "re2":
		return errors.New("--max-mem is for --engine=re2")
	case c.Parallel < 1 || c.Parallel > search.MaxWorkers:
		return fmt.Errorf("--parallel takes 1 to %d", search.MaxWorkers)
	case !c.listed() && c.Pattern == nil:
		return errors.New("there is no PATTERN")
	}
	return c.onlyOne(c.Places)
}

// listed reports whether flags have the patterns.
func (c *grepCmd) listed() bool { return len(c.Regexp)+len(c.File) > 0 }

// grepE is a bundle of short flags that ends in -e, whose pattern follows.
var grepE = regexp.MustCompile(`^-([a-zA-Z]*)e$`)

// grepN is a number of lines of context, and grepTakes a bundle of short flags that ends in one that takes what follows.
var (
	grepN     = regexp.MustCompile(`^-[0-9]+$`)
	grepTakes = regexp.MustCompile(`^-[a-zA-Z]*[ABCfm]$`)
)

// grepArgs joins patterns to their flags, as they may begin with a dash, and spells -N as -CN.
func grepArgs(args []string) (spelled []string) {
	for i := 0; i < len(args); i++ {
		m := grepE.FindStringSubmatch(args[i])
		switch {
		case args[i] == "--":
			return append(spelled, args[i:]...)
		case grepN.MatchString(args[i]) && (i == 0 || !grepTakes.MatchString(args[i-1])):
			spelled = append(spelled, "-C"+args[i][1:])
		case (m != nil && !strings.ContainsAny(m[1], "ABCfm") || args[i] == "--regexp") && i+1 < len(args):
			if m != nil && m[1] != "" {
				spelled = append(spelled, "-"+m[1])
			}
			i++
			spelled = append(spelled, "--regexp="+args[i])
		default:
			spelled = append(spelled, args[i])
		}
	}
	return spelled
}

// grepper is grep under way.
type grepper struct {
	*looker
	cmd     *grepCmd
	places  []string
	options search.Options
	printer *search.Printer
	style   grepStyle
	counts  grepCounts
	re2     *search.RE2  // nil: it was not asked for
	found   bool         // all that -q asks for
	stream  lines.Result // of what was read last that is no file of a file system
}

func (c *grepCmd) Run(e *env) error {
	places, err := c.arguments(e)
	if err != nil {
		return refused(err)
	}
	g := &grepper{cmd: c, places: places}
	patterns, err := c.patterns(e.ctx)
	if err != nil {
		return refused(err)
	}
	pattern, err := lines.Compile(patterns, lines.Options{Fixed: c.Fixed, Fold: c.IgnoreCase, Word: c.Word, Whole: c.Whole})
	if err != nil {
		return refused(err)
	}
	g.options = search.Options{Pattern: pattern, Search: c.search(), Workers: c.Parallel, Show: g.show, Done: g.finished}
	if c.Engine == "re2" {
		mem, err := c.maxMem()
		if err != nil {
			return refused(err)
		}
		g.re2 = search.NewRE2(pattern, mem)
		g.options.Match = g.re2.Match
	}
	if g.looker, err = c.looks(e); err != nil {
		return err
	}
	return g.all(e)
}

// arguments sorts out what is the pattern, and what the places are.
func (c *grepCmd) arguments(e *env) ([]string, error) {
	places := c.Places
	if !c.listed() {
		c.Regexp = []string{*c.Pattern}
	} else if c.Pattern != nil {
		first, err := e.meant(*c.Pattern)
		if err != nil {
			return nil, err
		}
		places = append([]string{first}, places...)
	}
	if len(places) == 0 && !c.Recursive {
		places = []string{"-"}
	}
	return places, nil
}

// maxPatterns is the most that a FILE of -f may have, in bytes: of more lines.Compile would take none.
const maxPatterns = 2 * lines.MaxSize

// patterns are those of -e, or of PATTERN, and of the files.
func (c *grepCmd) patterns(ctx context.Context) ([]string, error) {
	all := c.Regexp
	for _, name := range c.File {
		open := openStdin
		if name != "-" {
			open = func() (io.ReadCloser, error) { return os.Open(name) }
		}
		r, stop := search.Stream(ctx, open)
		text, err := io.ReadAll(io.LimitReader(r, maxPatterns+1))
		stop()
		if err == nil && len(text) > maxPatterns {
			err = lines.ErrTooLarge
		}
		if err != nil {
			return nil, fmt.Errorf("-f %s: %w", name, search.Unnamed(err))
		}
		if len(text) > 0 {
			all = append(all, strings.TrimSuffix(string(text), "\n"))
		}
	}
	return all, nil
}

// maxMem is the budget of RE2, in bytes.
func (c *grepCmd) maxMem() (int, error) {
	mem, err := parseSize("--max-mem", c.MaxMem)
	switch {
	case err != nil:
		return 0, err
	case mem == nil:
		return search.DefaultMaxMem, nil
	case *mem < search.MinMaxMem || *mem > search.MostMaxMem:
		return 0, errors.New("--max-mem takes 64K to 1G")
	}
	return int(*mem), nil
}

// search is what is looked for in each file.
func (c *grepCmd) search() lines.Search {
	names := c.List != 0 || c.ListNot != 0
	return lines.Search{
		Invert: c.Invert, Limit: c.Max >= 0, Max: uint64(max(c.Max, 0)),
		Before: contextOr(c.Before, c.Context), After: contextOr(c.After, c.Context),
		First: c.Quiet || names, Quiet: c.Count || c.Quiet || names,
		Text: c.Text.after(c.SkipBinary), Skip: c.SkipBinary.after(c.Text),
	}
}

// inContext reports whether context was asked for, be it of no lines: groups are told apart then.
func (c *grepCmd) inContext() bool { return c.After != nil || c.Before != nil || c.Context != nil }

// looks begins the command.
func (c *grepCmd) looks(e *env) (*looker, error) {
	if c.NoMessages {
		silent := *e
		silent.stderr = io.Discard
		e = &silent
	}
	c.onlyThese()
	f := &treeFlags{OneFileSystem: c.OneFileSystem, ErrorsTo: c.ErrorsTo, JSON: c.JSON, ruleFlags: c.ruleFlags, clientFlags: c.clientFlags}
	l, err := f.look(e, true, nil)
	if err == nil {
		err = l.choose(c.From0, &c.fileFlags)
	}
	return l, err
}

// onlyThese adds to rules that begin with an --include that other files are left out.
func (c *grepCmd) onlyThese() {
	first := func(args []ruleArg) int {
		left := -1
		for _, a := range args {
			left = max(left, a.left)
		}
		return left
	}
	if at := first(c.Include); at > first(c.Exclude) && at > first(c.FilterFrom) {
		c.Include = append(c.Include, ruleArg{"*/", -1})
		c.Exclude = append(c.Exclude, ruleArg{"*", -2})
	}
}

// all searches the places.
func (g *grepper) all(e *env) error {
	g.counts.began = time.Now()
	g.style = g.cmd.style(e)
	g.style.names = g.cmd.WithName.after(g.cmd.NoName) || g.cmd.NoName == 0 && len(g.places) != 1
	sep := ""
	if g.style.groups = g.cmd.inContext() && !g.options.Search.Quiet && !g.json; g.style.groups {
		sep = g.style.separator()
	}
	g.printer = search.NewPrinter(e.ctx, grepOut{g.looker}, sep)
	var worst error
	for _, arg := range g.places {
		if g.found {
			break
		}
		if err := g.place(arg); err != nil {
			if worst = worse(worst, err); !told(err) {
				worst = err
				break
			}
		}
	}
	if len(g.places) == 0 {
		worst = g.looker.places([]string{"."}, g.one)
	}
	return g.end(worst)
}

// place searches what an argument stands for.
func (g *grepper) place(arg string) error {
	name, open := "(standard input)", openStdin
	if arg != "-" {
		if place.IsURL(arg) || !search.IsStream(arg) {
			return g.looker.places([]string{arg}, g.one)
		}
		name, open = arg, func() (io.ReadCloser, error) { return os.Open(arg) }
	} else if info, err := os.Stdin.Stat(); err == nil && info.Mode().IsRegular() {
		return g.stdin(name)
	}
	r, stop := search.Stream(g.e.ctx, open)
	defer stop()
	return g.reads(name, r)
}

// reads searches what r reads.
func (g *grepper) reads(name string, r io.Reader) error {
	group := search.NewGroup(g.e.ctx, &g.options, g.printer)
	err := group.Add(search.File{Name: name, Read: r})
	return g.ended(group, err)
}

// stdin searches standard input that is a file. After the last line that -m asks for it stands behind that, as of GNU grep.
func (g *grepper) stdin(name string) error {
	from, err := os.Stdin.Seek(0, io.SeekCurrent)
	if err != nil {
		return fmt.Errorf("%s: %w", name, search.Unnamed(err))
	}
	err = g.reads(name, readerFunc(func(p []byte) (int, error) {
		if err := g.e.ctx.Err(); err != nil {
			return 0, err
		}
		return os.Stdin.Read(p)
	}))
	if s := &g.options.Search; err == nil && s.Limit && g.stream.Selected >= s.Max {
		_, err = os.Stdin.Seek(from+int64(g.stream.Behind), io.SeekStart)
	}
	return err
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// openStdin is standard input, which stays open.
func openStdin() (io.ReadCloser, error) { return io.NopCloser(os.Stdin), nil }

// ended waits for a group, and returns what has ended it, unless that is that enough was found.
func (g *grepper) ended(group *search.Group, err error) error {
	if werr := group.Wait(); werr != nil {
		err = werr
	}
	if errors.Is(err, errFound) {
		g.found, err = true, nil
	}
	return err
}

// one searches a place.
func (g *grepper) one(p *place.Place, r *vfs.Resolved) error {
	if r.Attr.Type == vfs.TypeDir && !g.cmd.Recursive {
		return fmt.Errorf("%s: it is a directory: -r searches it", p.Text)
	}
	if r.Attr.Type != vfs.TypeReg && r.Attr.Type != vfs.TypeDir {
		return fmt.Errorf("%s is a %s, not a file", p.Text, r.Attr.Type)
	}
	v := &grepVisitor{grepper: g, p: p, names: spell(p), group: search.NewGroup(g.e.ctx, &g.options, g.printer)}
	named := len(g.places) > 1 || r.Attr.Type == vfs.TypeDir || !slices.Contains(g.places, p.Text)
	if g.cmd.WithName == 0 && g.cmd.NoName == 0 {
		g.style.names = g.style.names || named
	}
	var err error
	if r.Attr.Type == vfs.TypeReg {
		err = v.add(p.Text, r.Handle, &r.Attr)
	} else {
		err = g.walk(p, r.Handle, walk.Options{Descend: func(d *walk.Dir) bool { return !g.elsewhere(d) }}, v)
	}
	return g.ended(v.group, err)
}

// grepVisitor is the visitor of one place.
type grepVisitor struct {
	*grepper
	p     *place.Place
	names *speller
	group *search.Group
}

func (*grepVisitor) Enter(context.Context, *walk.Dir) error        { return nil }
func (*grepVisitor) Leave(context.Context, *walk.Dir, error) error { return nil }

func (v *grepVisitor) Entry(_ context.Context, d *walk.Dir, e *vfs.Entry) error {
	if e.Attr.Type != vfs.TypeReg {
		return nil
	}
	at := v.names.place(d, e.Name)
	if len(v.places) == 0 {
		at = strings.TrimPrefix(at, "./")
	}
	return v.add(at, e.Handle, &e.Attr)
}

func (v *grepVisitor) Fault(_ context.Context, d *walk.Dir, name string, err error) error {
	v.fault(v.names.fault(d, name, err), err)
	return nil
}

// add has a file searched.
func (v *grepVisitor) add(name string, h vfs.Handle, a *vfs.Attr) error {
	f := search.File{FS: v.p.FS, Handle: h, Size: a.Size, Name: name}
	if v.p.IsLocal() {
		f.Size = 0 // the kernel knows where a local file ends; in /sys st_size does not say
	}
	return v.group.Add(f)
}
