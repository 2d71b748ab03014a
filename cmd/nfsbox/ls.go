package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

type lsCmd struct {
	Places    []string `arg:"" name:"PLACE" help:"Directories or files: paths or nfs://host/export/path."`
	Long      bool     `short:"l" help:"Show mode, links, owner, size and time."`
	Recursive bool     `short:"R" help:"List all that lies below, each with its path."`
	JSON      bool     `help:"Print one line of JSON for each, then a summary."`
	clientFlags
}

func (*lsCmd) Help() string {
	return `Lists directories. Fewer than 10,000 names are sorted, and shown when all are there; a larger directory
comes in the order of its server, what follows the first 10,000 as it arrives. With -R, every line
is a path below PLACE, and comes as it arrives, in the order of the server. Memory does not grow with
the directory beyond that.

Characters that could steer a terminal are shown as escapes; --json has the bytes.

  nfsbox ls -l nfs://filer/export/home
  nfsbox ls -R --json nfs://127.0.0.1:2049/ | jq -r 'select(.type=="entry").path'`
}

// sortLimit is how many entries ls collects for sorting. A larger directory is printed in the
// server's order.
const sortLimit = 10000

func (c *lsCmd) Run(e *env) error {
	po, err := c.place(true)
	if err != nil {
		return err
	}
	defer c.print(e)
	return eachPlace(e, c.Places, c.JSON, po, func(out *output, p *place.Place) error {
		defer c.count(p)
		r, err := p.Resolve(e.ctx, true)
		if err != nil {
			return err
		}
		l := &lister{cmd: c, out: out, fs: p.FS, ctx: e.ctx}
		switch {
		case r.Attr.Type != vfs.TypeDir:
			return l.single(p.Text, r.Handle, r.Attr)
		case c.Recursive:
			if err := walk.Tree(e.ctx, p.FS, r.Handle, walk.Options{Parallel: 1}, l); err != nil {
				return fmt.Errorf("%s: %w", p.Text, err)
			}
			return nil
		}
		if len(c.Places) > 1 && !c.JSON {
			if err := out.text(progress.Clean(p.Text) + ":\n"); err != nil {
				return err
			}
		}
		if err := l.directory(r.Handle); err != nil {
			return fmt.Errorf("%s: %w", p.Text, err)
		}
		return nil
	})
}

// lister prints entries. It is the visitor of a walk with one worker: directories are listed
// ahead, and printed one after the other.
type lister struct {
	cmd  *lsCmd
	out  *output
	fs   vfs.FS
	ctx  context.Context
	sort []listed
}

// listed is an entry that waits to be sorted.
type listed struct {
	name string
	h    vfs.Handle
	attr vfs.Attr

	target string // of a link
	err    error  // of reading it
}

func (l *lister) directory(dir vfs.Handle) error {
	l.sort = l.sort[:0]
	sorting := true
	want := vfs.Mask(0)
	if l.cmd.Long || l.cmd.JSON {
		want = vfs.MaskV3 | vfs.MaskHandle
	}
	for entry, err := range walk.List(l.ctx, l.fs, dir, want) {
		if err != nil {
			return errors.Join(l.flush(), err)
		}
		if err := walk.CheckName(entry.Name); err != nil {
			// As with -R, entries with an invalid name are errors.
			name := string(entry.Name[:min(len(entry.Name), vfs.MaxName)])
			l.out.failed(name, fmt.Errorf("%q: %w", name, err))
			continue
		}
		x := listed{name: string(entry.Name), h: entry.Handle, attr: entry.Attr}
		if err := l.complete(dir, &x, want); err != nil {
			l.out.failed(x.name, fmt.Errorf("%s: %w", x.name, err))
			continue
		}
		if l.sort = append(l.sort, x); sorting && len(l.sort) < sortLimit {
			continue
		}
		// Too many to sort: print the collected ones, and then the rest as it comes.
		sorting = false
		if err := l.flush(); err != nil {
			return err
		}
	}
	if sorting {
		slices.SortFunc(l.sort, func(a, b listed) int { return strings.Compare(a.name, b.name) })
	}
	return l.flush()
}

// complete asks for attributes that a listing lacks.
func (l *lister) complete(dir vfs.Handle, x *listed, want vfs.Mask) (err error) {
	if want == 0 || x.attr.Has(vfs.MaskV3) && !x.h.IsZero() {
		return nil
	}
	x.h, x.attr, _, err = l.fs.Lookup(l.ctx, dir, x.name)
	if err == nil && !x.attr.Has(vfs.MaskV3) {
		x.attr, err = l.fs.GetAttr(l.ctx, x.h, vfs.MaskV3)
	}
	return err
}

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

func (l *lister) readLinks() {
	if !l.cmd.Long && !l.cmd.JSON {
		return
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, linksAtOnce)
	for i := range l.sort {
		x := &l.sort[i]
		if x.attr.Type != vfs.TypeSymlink {
			continue
		}
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			x.target, _, x.err = l.fs.Readlink(l.ctx, x.h)
		})
	}
	all.Wait()
}

// single prints one object whose link, if it is one, has not been read.
func (l *lister) single(path string, h vfs.Handle, a vfs.Attr) error {
	x := listed{name: path, h: h, attr: a}
	if a.Type == vfs.TypeSymlink && (l.cmd.Long || l.cmd.JSON) {
		x.target, _, x.err = l.fs.Readlink(l.ctx, h)
	}
	return l.print(&x)
}

func (l *lister) print(x *listed) error {
	path, a, target := x.name, x.attr, x.target
	if !l.cmd.Long && !l.cmd.JSON {
		return l.out.text(progress.Clean(path) + "\n")
	}
	if x.err != nil {
		l.out.failed(path, fmt.Errorf("%s: readlink: %w", path, x.err))
	}
	if l.cmd.JSON {
		row := newRow(path, a)
		row.Target, row.TargetBytes = target, notUTF8(target)
		return l.out.event(row)
	}
	line := fmt.Appendf(nil, "%s %3d %5d %5d %12d %s %s", modeString(&a), a.Nlink, a.UID, a.GID, a.Size,
		a.Mtime.Format("2006-01-02 15:04:05"), progress.Clean(path))
	if target != "" {
		line = fmt.Appendf(line, " -> %s", progress.Clean(target))
	}
	return l.out.text(string(append(line, '\n')))
}

// Enter prints the directory itself, except for the root.
func (l *lister) Enter(_ context.Context, d *walk.Dir) error {
	if d.Parent == nil {
		return nil
	}
	return l.single(d.Path(""), d.Handle, d.Attr)
}

func (l *lister) Entry(_ context.Context, d *walk.Dir, e *vfs.Entry) error {
	return l.single(d.Path(string(e.Name)), e.Handle, e.Attr)
}

func (l *lister) Fault(_ context.Context, d *walk.Dir, name string, err error) error {
	path := d.Path(name)
	l.out.failed(path, fmt.Errorf("%s: %w", path, err))
	return nil
}

func (*lister) Leave(context.Context, *walk.Dir, error) error { return nil }
