package main

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/find"
	"github.com/nfsbox/nfsbox/internal/tools/ls"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

type findCmd struct {
	Places    []string `arg:"" place:"" name:"PLACE" help:"Directories or files: paths or nfs://host/export/path, in whose last parts *, ? (as %3F) and [ stand for names."`
	Name      []string `sep:"none" placeholder:"PATTERN" help:"The last part of the path matches PATTERN, in which *, ? and [...] stand for characters."`
	IName     []string `name:"iname" sep:"none" placeholder:"PATTERN" help:"The same, whether letters are upper or lower case."`
	Path      []string `sep:"none" placeholder:"PATTERN" help:"The whole path matches PATTERN, whose * stands for slashes as well."`
	IPath     []string `name:"ipath" sep:"none" placeholder:"PATTERN" help:"The same, whether letters are upper or lower case."`
	Regex     []string `sep:"none" placeholder:"REGEX" help:"The whole path matches REGEX, in the syntax of Go (RE2)."`
	IRegex    []string `name:"iregex" sep:"none" placeholder:"REGEX" help:"The same, whether letters are upper or lower case."`
	Type      string   `placeholder:"f,d,l,b,c,p,s" help:"It is a file, a directory, a symbolic link, a block or character device, a pipe, a socket, or one of several."`
	Size      []string `sep:"none" placeholder:"[+-]N[bcwkMG]" help:"It has N blocks of 512 bytes, bytes (c), words of 2 bytes (w), KiB, MiB or GiB, rounded up; +N is more, -N is less."`
	Empty     bool     `help:"It is an empty file, or a directory with nothing in it."`
	Mtime     []string `sep:"none" placeholder:"[+-]N" help:"It was modified N days ago, rounded down; +N is longer ago, -N is later."`
	Newer     []string `sep:"none" placeholder:"PLACE" help:"It was modified after PLACE was."`
	NewerThan []string `name:"newer-than" sep:"none" placeholder:"TIME|AGE" help:"It was modified after TIME (2026-01-31, 2026-01-31 12:00, RFC 3339), or not longer than AGE (90m, 12h, 7d, 2w) ago."`
	User      string   `placeholder:"NAME|N" help:"It belongs to this user."`
	Group     string   `placeholder:"NAME|N" help:"It belongs to this group."`
	MaxDepth  int      `name:"max-depth" aliases:"maxdepth" default:"-1" placeholder:"N" help:"Go down no more than N levels; 0 is PLACE alone."`
	MinDepth  int      `name:"min-depth" aliases:"mindepth" placeholder:"N" help:"Show nothing above level N; 1 leaves out PLACE."`
	Print0    bool     `name:"print0" help:"End each path with a NUL, as it is, for xargs -0."`
	Ls        bool     `help:"Show mode, links, owner, size and time as well, as ls -l does."`
	nulFlag
	treeFlags
}

func (*findCmd) Help() string {
	return `Prints the paths of all that lies in PLACEs, each itself first, if all tests hold. The tests mean what they mean to
find(1), and may be written as there: -name is --name. Their patterns are those of fnmatch(3): * and ? match a leading dot,
and in --path a slash. Sizes are rounded up: -size -1M are empty files alone. There are no operators: for "or" use a
regular expression, or more than one run.

Of a server each path is a URL, escaped, which other commands take; what --path and --regex match is the path in it, not escaped.
--user and --group look names up on this host. Ages are by this host's clock. What could steer
a terminal is shown as escapes there, and else printed as it is.

A link is not followed. Attributes come with the listings: nothing is asked for a single file, but with --ls for links
where they lead. With --empty directories come after what lies below them. The order is the server's.

--include, --exclude and --filter-from are rsync's: of all, the first that matches an entry decides. A directory that
is left out is not listed.

  nfsbox find nfs://filer/export/home -name '*.tmp' -mtime +30
  nfsbox find nfs://filer/export -type f -size +1G -ls
  nfsbox find ./tree -type f -newer ./stamp -print0 | xargs -0 ls -l`
}

// Validate is called by kong.
func (c *findCmd) Validate() error {
	if c.MaxDepth < -1 || c.MinDepth < 0 {
		return errors.New("--max-depth and --min-depth are at least 0")
	}
	for _, word := range []string{"!", "(", ")"} {
		if slices.Contains(c.Places, word) {
			return fmt.Errorf("find has no operators, as %s: all tests hold; for \"or\" there is --regex", word)
		}
	}
	if c.Print0 && (c.JSON || c.Ls) {
		return errors.New("--print0 goes neither with --ls nor with --json")
	}
	return c.onlyOne(c.Places)
}

// findSummary is the last event of find.
type findSummary struct {
	listSummary
	leftOut
}

// findTests are the tests that have a value, and the name of a flag here.
func findTests() []string {
	return []string{"name", "iname", "path", "ipath", "regex", "iregex", "type", "size", "mtime", "newer", "newer-than", "user", "group", "max-depth", "min-depth"}
}

// findTest is how this command calls a test of find(1), which is written with one dash there, and whether a value follows.
func findTest(name string) (flag string, valued, known bool) {
	if slices.Contains(findTests(), name) {
		return name, true, true
	}
	switch name {
	case "wholename", "iwholename":
		return strings.Replace(name, "wholename", "path", 1), true, true
	case "uid":
		return "user", true, true
	case "gid":
		return "group", true, true
	case "maxdepth", "mindepth":
		return name[:3] + "-" + name[3:], true, true
	case "xdev", "mount":
		return "one-file-system", false, true
	case "empty", "ls", "print0":
		return name, false, true
	case "print", "a", "and": // what find does anyway
		return "", false, true
	}
	return "", false, false
}

// findArgs spells the arguments of find(1) as flags. Values are joined to theirs, as they may begin with a dash.
func findArgs(args []string) (spelled []string) {
	for i := 0; i < len(args); i++ {
		name := strings.TrimPrefix(strings.TrimPrefix(args[i], "-"), "-")
		flag, valued, known := findTest(name)
		switch {
		case args[i] == "--":
			return append(spelled, args[i:]...)
		case !known || name == args[i]:
			spelled = append(spelled, args[i])
		case valued && i+1 < len(args):
			i++
			spelled = append(spelled, "--"+flag+"="+args[i])
		case flag != "":
			spelled = append(spelled, "--"+flag)
		}
	}
	return spelled
}

func (c *findCmd) Run(e *env) error {
	l, err := c.look(e, false, nil)
	if err != nil {
		return err
	}
	var m *find.Matcher
	if err = l.choose(c.From0, nil); err == nil {
		m, err = c.tests(l)
	}
	if err == nil {
		f := &finder{looker: l, cmd: c, tests: m}
		err = l.places(c.Places, f.one)
	}
	left := l.tellLeft()
	return l.done(err, func(sum listSummary) any { return &findSummary{sum, left} })
}

// tests makes the tests of the flags.
func (c *findCmd) tests(l *looker) (*find.Matcher, error) {
	t := &find.Tests{
		Name: c.Name, IName: c.IName, Path: c.Path, IPath: c.IPath, Regex: c.Regex, IRegex: c.IRegex,
		Size: c.Size, Mtime: c.Mtime, Type: c.Type, Empty: c.Empty, Now: time.Now(),
	}
	for _, text := range c.NewerThan {
		since, err := find.ParseSince(text, t.Now)
		if err != nil {
			return nil, refused(fmt.Errorf("--newer-than: %w", err))
		}
		t.Newer = append(t.Newer, since)
	}
	var err error
	if t.UID, err = ownerID(c.User, func(name string) (string, error) {
		u, err := user.Lookup(name)
		if err != nil {
			return "", err
		}
		return u.Uid, nil
	}); err != nil {
		return nil, refused(fmt.Errorf("--user: %w", err))
	}
	if t.GID, err = ownerID(c.Group, func(name string) (string, error) {
		g, err := user.LookupGroup(name)
		if err != nil {
			return "", err
		}
		return g.Gid, nil
	}); err != nil {
		return nil, refused(fmt.Errorf("--group: %w", err))
	}
	if _, err := find.New(t); err != nil { // before a server is asked
		return nil, refused(fmt.Errorf("--%w", err))
	}
	if err := c.newer(l, t); err != nil {
		return nil, err
	}
	return find.New(t)
}

// newer asks when the places of --newer were modified.
func (c *findCmd) newer(l *looker, t *find.Tests) error {
	for _, arg := range c.Newer {
		arg, err := l.e.meant(arg)
		if err != nil {
			return refused(err)
		}
		err = onePlace(l.e.ctx, arg, l.po, place.Open, func(p *place.Place) error {
			r, err := p.Resolve(l.e.ctx, false)
			t.Newer = append(t.Newer, r.Attr.Mtime)
			return err
		})
		if err != nil {
			return fmt.Errorf("--newer: %w", err)
		}
	}
	return nil
}

// ownerID is a number, or that of a name; nil for "".
func ownerID(text string, lookup func(string) (string, error)) (*uint32, error) {
	if text == "" {
		return nil, nil
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		id, err := lookup(text)
		if err != nil {
			return nil, err
		}
		if n, err = strconv.ParseUint(id, 10, 32); err != nil {
			return nil, err
		}
	}
	id := uint32(n)
	return &id, nil
}

// finder is find under way.
type finder struct {
	*looker
	cmd   *findCmd
	tests *find.Matcher
}

// one looks through a place.
func (f *finder) one(p *place.Place, r *vfs.Resolved) error {
	v := &findVisitor{finder: f, p: p, names: spell(p)}
	v.base = []byte(path.Base(v.names.path))
	if v.names.path == "" {
		v.base = []byte("/")
	}
	if r.Attr.Type != vfs.TypeDir {
		return v.try(nil, nil, v.base, 0, r.Handle, &r.Attr, false)
	}
	o := walk.Options{Descend: v.descend, LeftOut: v.leftOut}
	if f.cmd.MaxDepth >= 0 && !f.cmd.Empty {
		o.MaxDepth = max(f.cmd.MaxDepth-1, 1) // what is listed ahead; descend decides
	}
	return f.walk(p, r.Handle, o, v)
}

// findVisitor is the visitor of one place.
type findVisitor struct {
	*finder
	p     *place.Place
	names *speller
	base  []byte // the name of the place itself
}

// within are the data of a directory.
type within struct{ entries atomic.Uint64 }

func (v *findVisitor) Enter(_ context.Context, d *walk.Dir) error {
	if v.cmd.Empty {
		d.Data = new(within)
	} else if d.Parent == nil {
		if err := v.try(d, nil, v.base, 0, d.Handle, &d.Attr, false); err != nil {
			return err
		}
	}
	if d.Parent == nil && v.cmd.MaxDepth == 0 && !v.cmd.Empty {
		return walk.ErrSkipDir
	}
	return nil
}

// descend tests a directory when it is met, and reports whether it is to be listed. An
// error ends the walk.
func (v *findVisitor) descend(child *walk.Dir) bool {
	d, depth := child.Parent, child.Depth()
	if v.cmd.Empty {
		// What is in it shows whether it is empty: it is tested when it is left.
		d.Data.(*within).entries.Add(1)
		if v.deeper(depth) {
			return false
		}
	}
	elsewhere := v.elsewhere(child)
	if v.cmd.Empty && !elsewhere {
		return true
	}
	if err := v.try(child, nil, []byte(child.Name), depth, child.Handle, &child.Attr, false); err != nil {
		d.Abort(err)
	}
	return !elsewhere && (v.cmd.MaxDepth < 0 || depth < v.cmd.MaxDepth)
}

// deeper reports whether a depth is below the lowest.
func (v *findVisitor) deeper(depth int) bool { return v.cmd.MaxDepth >= 0 && depth > v.cmd.MaxDepth }

func (v *findVisitor) Entry(_ context.Context, d *walk.Dir, e *vfs.Entry) error {
	if in, ok := d.Data.(*within); ok {
		in.entries.Add(1)
	}
	if v.deeper(d.Depth() + 1) {
		return nil
	}
	return v.try(d, e.Name, e.Name, d.Depth()+1, e.Handle, &e.Attr, false)
}

// leftOut notes that a directory is not empty, though nothing in it may be shown.
func (v *findVisitor) leftOut(d *walk.Dir, _ *vfs.Entry) {
	if in, ok := d.Data.(*within); ok {
		in.entries.Add(1)
	}
}

func (v *findVisitor) Fault(_ context.Context, d *walk.Dir, name string, err error) error {
	if in, ok := d.Data.(*within); ok && name != "" {
		in.entries.Add(1)
	}
	v.fault(v.names.fault(d, name, err), err)
	return nil
}

func (v *findVisitor) Leave(_ context.Context, d *walk.Dir, incomplete error) error {
	in, ok := d.Data.(*within)
	if !ok {
		return nil
	}
	name := []byte(d.Name)
	if d.Parent == nil {
		name = v.base
	}
	return v.try(d, nil, name, d.Depth(), d.Handle, &d.Attr, incomplete == nil && in.entries.Load() == 0)
}

// try prints an object if all tests hold. It is what is called below in d; d itself if that is
// empty; or the place if d is nil.
func (v *findVisitor) try(d *walk.Dir, below, name []byte, depth int, h vfs.Handle, a *vfs.Attr, empty bool) error {
	if depth < v.cmd.MinDepth {
		return nil
	}
	o := find.Object{Name: name, Attr: a, Empty: empty, Path: func() []byte { return v.names.appendPath(nil, d, below) }}
	if !v.tests.Match(&o) {
		return nil
	}
	at := v.p.Spelled()
	if d != nil {
		at = v.names.place(d, below)
	}
	return v.show(at, h, a)
}

// show prints a path.
func (v *findVisitor) show(at string, h vfs.Handle, a *vfs.Attr) error {
	switch {
	case v.json:
		return v.event("entry", newRow(at, *a))
	case v.cmd.Print0:
		return v.line(at + "\x00")
	case !v.cmd.Ls:
		return v.line(v.shown(at) + "\n")
	}
	x := ls.Entry{Name: at, Handle: h, Attr: *a}
	if a.Type == vfs.TypeSymlink {
		var err error
		if x.Target, _, err = v.p.FS.Readlink(v.e.ctx, h); err != nil {
			v.fault(at, fmt.Errorf("readlink: %w", err))
		}
	}
	return v.line((&ls.Style{}).Line(&x) + "\n")
}
