package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/nfsbox/nfsbox"
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
	out := newOutput(e, f.JSON)
	return &verb{f, out, e, out.watch(e, po)}, nil
}

// matches yields what the arguments stand for.
func (v *verb) matches(args []string) iter.Seq2[string, error] { return eachMatch(v.e.ctx, args, v.po) }

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

type mkdirCmd struct {
	Places  []string `arg:"" place:"" name:"PLACE" help:"Directories to make: paths or nfs://host/export/path."`
	Parents bool     `short:"p" help:"Make the directories above as well, and take one that is there."`
	Mode    string   `short:"m" default:"755" placeholder:"OCTAL" help:"The permissions of PLACE, whatever the umask."`
	verbFlags
}

func (*mkdirCmd) Help() string {
	return `Makes directories. When the command has ended well they are on the server's disk.

  nfsbox mkdir -p nfs://filer/export/projects/new/data`
}

func (c *mkdirCmd) Run(e *env) error {
	mode, err := octalMode(c.Mode)
	if err != nil {
		return err
	}
	v, err := c.begin(e)
	if err != nil {
		return err
	}
	if !c.Parents {
		return v.each("made", given(c.Places), func(p *place.Place) error { return makeDir(e, p, mode, false) })
	}
	return v.each("made", v.withParents(c.Places), func(p *place.Place) error {
		if slices.Contains(c.Places, p.Text) {
			return makeDir(e, p, mode, true)
		}
		return makeDir(e, p, usualDirMode, true)
	})
}

// usualDirMode is that of directories above one with a mode of its own.
const usualDirMode = 0o755

// withParents yields for each argument the directories above it that are not there, the highest
// first, and the argument.
func (v *verb) withParents(args []string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, arg := range args {
			all, err := v.missing(arg)
			if err != nil {
				all = []string{arg}
			}
			for _, one := range all {
				if !yield(one, err) {
					return
				}
			}
		}
	}
}

// missing are the directories above arg that are not there, the highest first, and arg.
func (v *verb) missing(arg string) (all []string, err error) {
	po := v.po
	po.Follow = true
	for all = []string{arg}; ; all = append([]string{arg}, all...) {
		p, err := place.Open(v.e.ctx, arg, po) // which finds the directory that holds it
		if err == nil {
			return all, p.Close()
		}
		above, ok := above(arg)
		if !ok || !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		arg = above
	}
}

// above is the place of the directory that holds what arg names.
func above(arg string) (string, bool) {
	if !place.IsURL(arg) {
		dir := path.Dir(strings.TrimRight(arg, "/"))
		return dir, dir != "." && dir != "/"
	}
	u, err := nfsbox.ParseURL(arg)
	if err != nil || strings.Trim(u.Path, "/") == "" {
		return "", false
	}
	u.Path = path.Dir(strings.TrimRight(u.Path, "/"))
	return u.String(), true
}

func makeDir(e *env, p *place.Place, mode uint32, may bool) error {
	dir, name, err := p.Parent(e.ctx)
	switch {
	case err != nil:
		return err
	case name == "" && may:
		return nil
	case name == "":
		return about(p, vfs.ErrExist)
	}
	how := vfs.CreateHow{Type: vfs.TypeDir, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: mode}}
	_, _, _, err = p.FS.Create(e.ctx, dir, name, &how)
	if may && errors.Is(err, fs.ErrExist) {
		r, err := p.Resolve(e.ctx, true)
		if err == nil && r.Attr.Type != vfs.TypeDir {
			err = about(p, vfs.ErrExist)
		}
		return err
	}
	return about(p, err)
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
			return &exitError{status: exitUsage, err: fmt.Errorf("%s is a path of this host: there is rmdir(1)", arg)}
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

type mvCmd struct {
	Places []string `arg:"" place:"" name:"PLACE" help:"What to move, and last the new name or a directory: nfs://host/export/path, all of one server."`
	verbFlags
}

func (*mvCmd) Help() string {
	return `Gives objects of a server another name, or moves them into a directory, as mv(1) does. Each takes one
RENAME, which atomically replaces what has the name. Of two names of one file the first is removed. Nothing is
moved from one file system to another: copy it with nfsbox cp, and verify the copy. For paths of this host
there is mv(1).

  nfsbox mv nfs://filer/export/a nfs://filer/export/b
  nfsbox mv 'nfs://filer/export/*.log' nfs://filer/export/logs`
}

func (c *mvCmd) Run(e *env) error {
	return c.onto(e, "moved", c.Places, func(p, to *place.Place, toDir vfs.Handle, toName string) error {
		dir, name, err := p.Parent(e.ctx)
		if err != nil {
			return err
		}
		if name == "" {
			return fmt.Errorf("%s is what was mounted, and cannot be moved from within", p.Text)
		}
		if err := dirBehind(e.ctx, p, dir, name); err != nil {
			return err
		}
		if dir == toDir && name == toName {
			return fmt.Errorf("%s has this name already", p.Text)
		}
		_, _, err = p.FS.Rename(e.ctx, dir, name, toDir, toName)
		if err == nil {
			err = dropLink(e.ctx, p.FS, dir, name, toDir, toName)
		}
		return about(p, err)
	})
}

// dropLink removes name after it was renamed to toName, if both are links to one object. RENAME
// leaves both (RFC 1813, section 3.3.14), and mv(1) leaves toName alone. Where a server takes two
// names for one, only one of them is listed, and nothing is removed.
func dropLink(ctx context.Context, f vfs.FS, dir vfs.Handle, name string, toDir vfs.Handle, toName string) error {
	was, err := attrAt(ctx, f, dir, name)
	if errors.Is(err, vfs.ErrNoEnt) {
		return nil
	}
	var is vfs.Attr
	if err == nil {
		is, err = attrAt(ctx, f, toDir, toName)
	}
	const id = vfs.MaskFSID | vfs.MaskFileID
	if err != nil || !was.Has(id) || !is.Has(id) || was.FSID != is.FSID || was.FileID != is.FileID || is.Type == vfs.TypeDir {
		return err // another object has got the name
	}
	for _, at := range [...]struct {
		dir  vfs.Handle
		name string
	}{{dir, name}, {toDir, toName}} {
		if listed, err := isListed(ctx, f, at.dir, at.name); err != nil || !listed {
			return err
		}
	}
	_, err = f.Remove(ctx, dir, name, false)
	return err
}

func attrAt(ctx context.Context, f vfs.FS, dir vfs.Handle, name string) (vfs.Attr, error) {
	h, a, _, err := f.Lookup(ctx, dir, name)
	if err == nil && !a.Has(vfs.MaskV3) {
		a, err = f.GetAttr(ctx, h, vfs.MaskV3)
	}
	return a, err
}

// isListed reports whether dir lists name in just this form.
func isListed(ctx context.Context, f vfs.FS, dir vfs.Handle, name string) (bool, error) {
	for e, err := range f.ReadDir(ctx, dir, vfs.Pos{}, 0, 0) {
		if err != nil || string(e.Name) == name {
			return err == nil, err
		}
	}
	return false, nil
}

// dirBehind is an error unless a slash behind a name, if there is one, tells the truth: the name is that of a
// directory, and of no link, as rename(2) and symlink(2) have it.
func dirBehind(ctx context.Context, p *place.Place, dir vfs.Handle, name string) error {
	if !place.MeansDir(p.Text) {
		return nil
	}
	a, err := attrAt(ctx, p.FS, dir, name)
	if err == nil && a.Type != vfs.TypeDir {
		err = vfs.ErrNotDir
	}
	return about(p, err)
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
		return v.each("linked", given(c.Places[1:]), func(p *place.Place) error { return symlink(e, p, c.Places[0]) })
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
	return v.each(done, given(from), func(p *place.Place) error {
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

// sameServer refuses two places whose handles have nothing to do with each other.
func sameServer(a, b string) error {
	if !place.IsURL(a) || !place.IsURL(b) {
		return &exitError{status: exitUsage, err: errors.New("places of a server are needed, nfs://host/export/path; for paths of this host there are mv(1) and ln(1)")}
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
