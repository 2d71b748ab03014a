package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/nfsbox/nfsbox/internal/tools/glob"
	"github.com/nfsbox/nfsbox/internal/tools/ls"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

type lsCmd struct {
	Places    []string `arg:"" place:"" name:"PLACE" help:"Directories or files: paths or nfs://host/export/path, in whose last parts *, ? (as %3F) and [ stand for names."`
	Long      bool     `short:"l" help:"Show mode, links, owner, size and time."`
	All       bool     `short:"a" help:"Show names that begin with a dot as well (--json always does)."`
	Directory bool     `short:"d" help:"Show directories themselves, and not what is in them."`
	One       bool     `name:"one" short:"1" help:"Show one name a line, also on a terminal."`
	Human     bool     `name:"human-readable" short:"h" help:"Show sizes as 1.5K, 12M, with -l."`
	Time      bool     `short:"t" help:"Sort by time, the newest first."`
	Size      bool     `short:"S" help:"Sort by size, the largest first."`
	Reverse   bool     `short:"r" help:"Turn the order around."`
	Sort      string   `enum:"name,time,size,none," default:"" placeholder:"name|time|size|none" help:"What to sort by; none is the server's order."`
	Recursive bool     `short:"R" help:"List all that lies below, each with its path."`
	MaxDepth  int      `placeholder:"N" help:"With -R, go down no more than N levels; 1 is PLACE alone."`
	Color     string   `enum:"auto,always,never" default:"auto" help:"Show names in the colours of LS_COLORS: on a terminal, unless NO_COLOR is set (auto), always or never."`
	JSON      bool     `help:"Print one line of JSON for each, then a summary."`
	alikeFlags
	clientFlags
}

func (*lsCmd) Help() string {
	return `Lists directories. The names of one are sorted, and shown when all are there. A directory of 10,000 names or
more comes in the order of its server, as it arrives; with -t, -S, -r or --sort, one of 250,000 or more. With -R
every line is a path below PLACE, in the order of the server, as it arrives. Memory does not grow
with the directory beyond that.

Where the server exports nothing but what lies below PLACE, as below nfs://filer/, these exports are listed.

On a terminal names stand in columns. A sorted long listing begins with the space that its entries use, in KiB,
or with -h in the unit that is shown. Its lines are not cut, however narrow the terminal is.

Characters that could steer a terminal are shown as escapes; --json has the bytes.

  nfsbox ls -l nfs://filer/export/home
  nfsbox ls -lhS 'nfs://filer/export/pictures/*.jpg'
  nfsbox ls -R --json nfs://filer/export | jq -r 'select(.type=="entry").path'`
}

const (
	// sortLimit is how many entries ls collects for sorting. A larger directory is printed in the
	// server's order.
	sortLimit = 10000
	// sortAsked is the same where an order was asked for.
	sortAsked = 250000
)

// Validate is called by kong.
func (c *lsCmd) Validate() error {
	if c.Recursive && c.sorted() {
		return errors.New("-R lists in the server's order: sort what it prints, with sort(1)")
	}
	if c.MaxDepth < 0 || c.MaxDepth > 0 && !c.Recursive {
		return errors.New("--max-depth goes with -R, and is at least 1")
	}
	return nil
}

// sorted reports whether an order was asked for.
func (c *lsCmd) sorted() bool {
	return c.Time || c.Size || c.Reverse || c.Sort != "" && c.Sort != string(ls.AsIs)
}

func (c *lsCmd) key() ls.Key {
	switch {
	case c.Sort != "":
		return ls.Key(c.Sort)
	case c.Time:
		return ls.ByTime
	case c.Size:
		return ls.BySize
	}
	return ls.ByName
}

func (c *lsCmd) Run(e *env) error {
	po, err := c.place(!c.Directory)
	if err != nil {
		return err
	}
	defer c.print(e)
	out := newOutput(e, c.JSON)
	if err := c.group(out); err != nil {
		return err
	}
	po = out.watch(e, po)
	return out.end(out.each(e, glob.Each(e.ctx, c.Places, po), func(arg string) error {
		err := onePlace(e.ctx, arg, po, place.Open, func(p *place.Place) error { return c.one(e, out, p) })
		none, ok := errors.AsType[*place.NoExport](err)
		if !ok || c.Directory || c.Recursive || len(none.Below()) == 0 {
			return err
		}
		out.note(fmt.Sprintf("%s is no export itself; these are the exports below it", arg))
		if none.LeftOut != nil {
			out.failed(arg, fmt.Errorf("%s: %w", arg, none.LeftOut))
		}
		return c.lister(e, out, nil).exports(arg, none, po)
	}))
}

// one lists what a place names.
func (c *lsCmd) one(e *env, out *output, p *place.Place) error {
	defer c.count(p)
	r, err := p.Resolve(e.ctx, !c.Directory)
	if err != nil {
		return err
	}
	l := c.lister(e, out, p.FS)
	switch {
	case r.Attr.Type != vfs.TypeDir || c.Directory:
		name := p.Text // as it was typed
		if c.JSON {
			name = p.Spelled()
		}
		return l.single(name, r.Handle, r.Attr)
	case c.Recursive:
		err = walk.Tree(e.ctx, p.FS, r.Handle, walk.Options{Parallel: 1}, l)
	default:
		if err = l.heading(p.Text); err == nil {
			err = l.directory(p.Text, r.Handle)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.Text, err)
	}
	return nil
}

func (c *lsCmd) lister(e *env, out *output, fsys vfs.FS) *lister {
	return &lister{cmd: c, out: out, fs: fsys, ctx: e.ctx, style: c.style(e), size: e.size}
}

func (c *lsCmd) style(e *env) ls.Style {
	style := ls.Style{Human: c.Human}
	if c.Color == "always" || c.Color == "auto" && e.size != nil && e.colour {
		style.Colours = ls.ParseColours(os.Getenv("LS_COLORS"))
	}
	return style
}

// lister prints entries. It is the visitor of a walk with one worker: directories are listed
// ahead, and printed one after the other.
type lister struct {
	cmd   *lsCmd
	out   *output
	fs    vfs.FS
	ctx   context.Context
	style ls.Style
	size  func() (width, height int) // of the terminal; nil: there is none
	width int                        // of the terminal, for columns; 0: one name a line
	sort  []ls.Entry
}

// heading begins the list of a directory: with its name, if there are several.
func (l *lister) heading(name string) error {
	c := l.cmd
	if l.size != nil && !c.One && !c.Long && !c.JSON {
		l.width, _ = l.size()
	}
	if len(c.Places) == 1 || c.JSON {
		return nil
	}
	return l.out.text(progress.Clean(name) + ":\n")
}

// exports lists the exports below a path that is none, as directories of it. Their attributes are
// those that their servers tell when they are mounted, one after the other.
func (l *lister) exports(arg string, none *place.NoExport, po place.Options) error {
	if err := l.heading(arg); err != nil {
		return err
	}
	for _, name := range none.Below() {
		x := ls.Entry{Name: name, Attr: vfs.Attr{Type: vfs.TypeDir}}
		if l.hides(name) {
			continue
		}
		if l.wants() != 0 {
			err := onePlace(l.ctx, none.At(glob.Inside(none.URL.Path, name)), po, place.Open, func(p *place.Place) error {
				r, err := p.Resolve(l.ctx, true)
				x.Attr = r.Attr
				return err
			})
			if l.ctx.Err() != nil {
				return err
			}
			if err != nil {
				l.out.failed(name, err)
				continue
			}
		}
		l.sort = append(l.sort, x)
	}
	return l.inOrder()
}

// wants are the attributes that are shown or sorted by; 0: names alone.
func (l *lister) wants() vfs.Mask {
	c := l.cmd
	if c.Long || c.JSON || c.key() != ls.ByName && c.key() != ls.AsIs || l.style.Colours != nil {
		return vfs.MaskV3 | vfs.MaskHandle
	}
	return 0
}

// hides reports whether a name is left out.
func (l *lister) hides(name string) bool { return !l.cmd.All && !l.cmd.JSON && ls.Hidden(name) }

func (l *lister) directory(path string, dir vfs.Handle) error {
	l.sort = l.sort[:0]
	limit, all := sortLimit, true
	if l.cmd.sorted() {
		limit = sortAsked
	}
	for entry, err := range walk.List(l.ctx, l.fs, dir, l.wants()) {
		if err != nil {
			return errors.Join(l.flush(), err)
		}
		if !l.take(dir, entry) || all && len(l.sort) < limit {
			continue
		}
		// Too many to sort: print the collected ones, and then the rest as it comes.
		if all && l.cmd.sorted() {
			l.out.note(fmt.Sprintf("%s: more than %d names: they come in the server's order", path, limit))
		}
		all, l.width = false, 0
		if err := l.flush(); err != nil {
			return err
		}
	}
	if !all {
		return l.flush()
	}
	return l.inOrder()
}

// take collects an entry, unless it is hidden or fails.
func (l *lister) take(dir vfs.Handle, entry *vfs.Entry) bool {
	if err := walk.Check(entry); err != nil {
		// As with -R, entries with an invalid name are errors.
		name := string(entry.Name[:min(len(entry.Name), vfs.MaxName)])
		l.out.failed(name, fmt.Errorf("%q: %w", name, err))
		return false
	}
	x := ls.Entry{Name: string(entry.Name), Handle: entry.Handle, Attr: entry.Attr}
	if l.hides(x.Name) {
		return false
	}
	if err := l.complete(dir, &x); err != nil {
		l.out.failed(x.Name, fmt.Errorf("%s: %w", x.Name, err))
		return false
	}
	l.sort = append(l.sort, x)
	return true
}

// inOrder prints all entries of a directory, sorted.
func (l *lister) inOrder() error {
	l.readLinks()
	ls.Sort(l.sort, l.cmd.key(), l.cmd.Reverse)
	if l.cmd.Long && !l.cmd.JSON && len(l.sort) > 0 {
		if err := l.out.text(l.style.Total(l.sort) + "\n"); err != nil {
			return err
		}
	}
	if l.width > 0 {
		return l.out.text(l.style.Columns(l.sort, l.width))
	}
	return l.flush()
}

// complete asks for attributes that a listing lacks.
func (l *lister) complete(dir vfs.Handle, x *ls.Entry) (err error) {
	if l.wants() == 0 || x.Attr.Has(vfs.MaskV3) && !x.Handle.IsZero() {
		return nil
	}
	x.Handle, x.Attr, _, err = l.fs.Lookup(l.ctx, dir, x.Name)
	if err == nil && !x.Attr.Has(vfs.MaskV3) {
		x.Attr, err = l.fs.GetAttr(l.ctx, x.Handle, vfs.MaskV3)
	}
	return err
}

// flush prints what has been collected, a line each.
func (l *lister) flush() error {
	l.readLinks()
	for i := range l.sort {
		if err := l.print(&l.sort[i]); err != nil {
			return err
		}
	}
	l.sort = l.sort[:0]
	return nil
}

// linksAtOnce is how many links of a directory are read concurrently.
const linksAtOnce = 64

// readLinks reads the links that have been collected and not been read.
func (l *lister) readLinks() {
	if !l.cmd.Long && !l.cmd.JSON {
		return
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, linksAtOnce)
	for i := range l.sort {
		x := &l.sort[i]
		if x.Attr.Type != vfs.TypeSymlink || x.Target != "" || x.Err != nil {
			continue
		}
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			x.Target, _, x.Err = l.fs.Readlink(l.ctx, x.Handle)
		})
	}
	all.Wait()
}

// single prints one object whose link, if it is one, has not been read.
func (l *lister) single(path string, h vfs.Handle, a vfs.Attr) error {
	x := ls.Entry{Name: path, Handle: h, Attr: a}
	if a.Type == vfs.TypeSymlink && (l.cmd.Long || l.cmd.JSON) {
		x.Target, _, x.Err = l.fs.Readlink(l.ctx, h)
	}
	return l.print(&x)
}

func (l *lister) print(x *ls.Entry) error {
	if !l.cmd.Long && !l.cmd.JSON {
		return l.out.text(l.style.Name(x) + "\n")
	}
	if x.Err != nil {
		l.out.failed(x.Name, fmt.Errorf("%s: readlink: %w", x.Name, x.Err))
	}
	if l.cmd.JSON {
		row := newRow(x.Name, x.Attr)
		row.Target, row.TargetBytes = x.Target, notUTF8(x.Target)
		return l.out.event("entry", row)
	}
	return l.out.text(l.style.Line(x) + "\n")
}

// Enter prints the directory itself, except for the root.
func (l *lister) Enter(_ context.Context, d *walk.Dir) error {
	if d.Parent == nil {
		return nil
	}
	if l.hides(d.Name) {
		return walk.ErrSkipDir
	}
	if err := l.single(d.Path(""), d.Handle, d.Attr); err != nil {
		return err
	}
	if l.cmd.MaxDepth > 0 && d.Depth() >= l.cmd.MaxDepth {
		return walk.ErrSkipDir
	}
	return nil
}

func (l *lister) Entry(_ context.Context, d *walk.Dir, e *vfs.Entry) error {
	if l.hides(string(e.Name)) {
		return nil
	}
	return l.single(d.Path(string(e.Name)), e.Handle, e.Attr)
}

func (l *lister) Fault(_ context.Context, d *walk.Dir, name string, err error) error {
	path := d.Path(name)
	l.out.failed(path, fmt.Errorf("%s: %w", path, err))
	return nil
}

func (*lister) Leave(context.Context, *walk.Dir, error) error { return nil }
