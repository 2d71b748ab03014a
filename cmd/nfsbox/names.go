package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"strings"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/tools/glob"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/vfs"
)

// verbFlags are those of the commands that change names and attributes.
type verbFlags struct {
	JSON bool `help:"Print one line of JSON for each, then a summary."`
	clientFlags
}

// verb is a command that changes names or attributes, under way.
type verb struct {
	*verbFlags
	*output
	e  *env
	po place.Options
}

func (f *verbFlags) begin(e *env) (*verb, error) {
	po, err := f.place(false)
	if err != nil {
		return nil, err
	}
	po.Change = true
	out := newOutput(e, f.JSON)
	return &verb{f, out, e, out.watch(e, po)}, nil
}

// matches yields what the arguments stand for.
func (v *verb) matches(args []string) iter.Seq2[string, error] { return glob.Each(v.e.ctx, args, v.po) }

// each opens the places, does something to each, says so in JSON, and ends the command.
func (v *verb) each(done string, args iter.Seq2[string, error], do func(*place.Place) error) error {
	defer v.print(v.e)
	return v.end(v.output.each(v.e, args, func(arg string) error {
		return onePlace(v.e.ctx, arg, v.po, openName, func(p *place.Place) error {
			defer v.count(p)
			if err := do(p); err != nil || !v.JSON {
				return err
			}
			return v.event(done, doneEvent{p.Spelled(), notUTF8(p.Spelled())})
		})
	}))
}

// openName opens a place by its name, also if a slash stands behind it, as completion adds it.
func openName(ctx context.Context, arg string, po place.Options) (*place.Place, error) {
	u, err := nfsbox.ParseURL(arg)
	if !place.IsURL(arg) || err != nil || strings.Trim(u.Path, "/") == "" || !strings.HasSuffix(u.Path, "/") {
		return place.OpenName(ctx, arg, po)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	p, err := place.OpenName(ctx, u.String(), po)
	if err == nil {
		p.Text = arg
	}
	return p, err
}

// doneEvent is a change that was made: "made", "removed", "moved", "linked" or "changed".
type doneEvent struct {
	Path      string `json:"path"`
	PathBytes string `json:"path_base64,omitempty"` // if the path is not UTF-8
}

// about adds the place to an error of its file system.
func about(p *place.Place, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", p.Text, err)
}

type rmdirCmd struct {
	Places []string `arg:"" place:"" name:"PLACE" help:"Empty directories: nfs://host/export/path."`
	verbFlags
}

func (*rmdirCmd) Help() string {
	return `Removes directories of a server that are empty. For paths of this host there is rmdir(1).

  nfsbox rmdir nfs://filer/export/old`
}

func (c *rmdirCmd) Run(e *env) error {
	for _, arg := range c.Places {
		if !place.IsURL(arg) {
			return &exitError{status: exitUsage, err: notServers(arg, "rmdir(1)")}
		}
	}
	v, err := c.begin(e)
	if err != nil {
		return err
	}
	return v.each("removed", v.matches(c.Places), func(p *place.Place) error {
		dir, name, err := p.Parent(e.ctx)
		if err != nil {
			return err
		}
		if name == "" {
			return fmt.Errorf("%s is what was mounted, and cannot be removed from within", p.Text)
		}
		_, err = p.FS.Remove(e.ctx, dir, name, true)
		return about(p, err)
	})
}

type lnCmd struct {
	Symbolic bool     `short:"s" help:"Make a symbolic link: the first argument is its text, which nothing looks at."`
	Places   []string `arg:"" name:"PLACE" help:"What to link, and last the new name or a directory: nfs://host/export/path, all of one server."`
	verbFlags
}

func (*lnCmd) Help() string {
	return `Gives objects of a server further names (hard links), or with -s makes a symbolic link, also on this host.

  nfsbox ln nfs://filer/export/a nfs://filer/export/b
  nfsbox ln -s ../shared/a nfs://filer/export/home/a`
}

func (c *lnCmd) Run(e *env) error {
	for i := range c.Places {
		if i > 0 || !c.Symbolic { // a text stands for nothing else
			var err error
			if c.Places[i], err = e.meant(c.Places[i]); err != nil {
				return &exitError{status: exitUsage, err: err}
			}
		}
	}
	if c.Symbolic {
		if len(c.Places) != 2 {
			return &exitError{status: exitUsage, err: errors.New("ln -s takes two arguments: a text, and the name of the link")}
		}
		v, err := c.begin(e)
		if err != nil {
			return err
		}
		return v.each("linked", glob.Given(c.Places[1:]), func(p *place.Place) error { return symlink(e, p, c.Places[0]) })
	}
	return c.onto(e, "linked", c.Places, func(p, to *place.Place, toDir vfs.Handle, toName string) error {
		r, err := p.Resolve(e.ctx, false)
		if err == nil {
			_, _, err = p.FS.Link(e.ctx, r.Handle, toDir, toName)
			err = about(to, err)
		}
		return err
	})
}

func symlink(e *env, p *place.Place, text string) error {
	dir, name, err := p.Parent(e.ctx)
	if err == nil {
		err = dirBehind(e.ctx, p, dir, name)
	}
	if err != nil {
		return err
	}
	_, _, _, err = p.FS.Create(e.ctx, dir, name, &vfs.CreateHow{Type: vfs.TypeSymlink, Target: text})
	return about(p, err)
}

// onto does something to all places but the last, each with the directory and the name that the
// last gives it. Where that would replace one of them by another, nothing is done.
func (f *verbFlags) onto(e *env, done string, places []string, do func(p, to *place.Place, dir vfs.Handle, name string) error) error {
	if len(places) < 2 {
		return &exitError{status: exitUsage, err: errors.New("two places are needed: what there is, and its new name or a directory")}
	}
	args, last := places[:len(places)-1], places[len(places)-1]
	for _, arg := range args {
		if err := sameServer(arg, last); err != nil {
			return err
		}
	}
	v, err := f.begin(e)
	if err != nil {
		return err
	}
	from, arg, err := v.sources(args)
	if err != nil {
		return v.fail(e, arg, err)
	}
	to, err := place.Open(e.ctx, last, v.po)
	if err != nil {
		return v.fail(e, last, err)
	}
	return errors.Join(v.into(done, from, to, do), to.Close())
}

// into does something to each of from, with the directory and the name that to gives it.
func (v *verb) into(done string, from []string, to *place.Place, do func(p, to *place.Place, dir vfs.Handle, name string) error) error {
	dir, name, isDir, err := target(v.e, to)
	if err == nil && len(from) > 1 && !isDir {
		err = &exitError{status: exitUsage, err: fmt.Errorf("%s is no directory, which several places need", to.Text)}
	}
	if err != nil {
		return v.fail(v.e, to.Text, err)
	}
	return v.each(done, glob.Given(from), func(p *place.Place) error {
		name := name
		if isDir {
			name = p.Base()
		} else if place.MeansDir(to.Text) { // which nothing but a directory may become
			if r, err := p.Resolve(v.e.ctx, false); err != nil || r.Attr.Type != vfs.TypeDir {
				return cmp.Or(err, about(to, vfs.ErrNotDir))
			}
		}
		return do(p, to, dir, name)
	})
}

// sources are the places that arguments stand for, of which no two have one name: the second would
// replace the first. An error is about the place at.
func (v *verb) sources(args []string) (from []string, at string, err error) {
	names := make(map[string]string)
	for arg, err := range v.matches(args) {
		if err != nil {
			return nil, arg, err
		}
		if err := noBucket(arg); err != nil {
			return nil, arg, err
		}
		u, err := nfsbox.ParseURL(arg)
		if err != nil {
			return nil, arg, err
		}
		name := path.Base(u.Path)
		if before, ok := names[name]; ok {
			return nil, arg, &exitError{status: exitUsage, err: fmt.Errorf("%s would replace %s: both are called %q", arg, before, name)}
		}
		names[name] = arg
		from = append(from, arg)
	}
	return from, "", nil
}

// target is what a last argument means: a directory that is there, or a name in one.
func target(e *env, to *place.Place) (dir vfs.Handle, name string, isDir bool, err error) {
	r, err := to.Resolve(e.ctx, true)
	if err == nil && r.Attr.Type == vfs.TypeDir {
		return r.Handle, "", true, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return dir, "", false, err
	}
	dir, name, err = to.Parent(e.ctx)
	return dir, name, false, err
}

// noBucket refuses a place in a bucket, where nothing is renamed or linked.
func noBucket(arg string) error {
	if !strings.HasPrefix(arg, "s3://") {
		return nil
	}
	return &exitError{status: exitUsage, err: errors.New("in a bucket nothing is renamed, and nothing has a second name: copy with nfsbox cp, and remove with nfsbox rm")}
}

// sameServer refuses two places whose handles have nothing to do with each other.
func sameServer(a, b string) error {
	if !place.IsURL(a) || !place.IsURL(b) {
		return &exitError{status: exitUsage, err: errors.New("places of a server are needed, nfs://host/export/path; for paths of this host there are mv(1) and ln(1)")}
	}
	if err := cmp.Or(noBucket(a), noBucket(b)); err != nil {
		return err
	}
	u, err := nfsbox.ParseURL(a)
	if err != nil {
		return err
	}
	v, err := nfsbox.ParseURL(b)
	if err != nil {
		return err
	}
	u.Path, v.Path = "/", "/"
	if u.String() != v.String() {
		return &exitError{status: exitUsage, err: fmt.Errorf("%s and %s are not said to be on one server, with the same arguments: copy with nfsbox cp", a, b)}
	}
	return nil
}
