package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"syscall"

	"github.com/nfsbox/nfsbox/internal/tools/chmod"
	"github.com/nfsbox/nfsbox/internal/tools/glob"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

type touchCmd struct {
	Places   []string `arg:"" place:"" name:"PLACE" help:"Files: paths or nfs://host/export/path."`
	NoCreate bool     `short:"c" help:"Make no file that is not there."`
	verbFlags
}

func (*touchCmd) Help() string {
	return `Sets the times of objects to now, by the server's clock. What is not there becomes an empty file. A link
stands for its target, also if that is not there.

  nfsbox touch nfs://filer/export/stamp`
}

func (c *touchCmd) Run(e *env) error {
	v, err := c.begin(e)
	if err != nil {
		return err
	}
	return v.each("changed", glob.OrItself(v.matches(c.Places)), func(p *place.Place) error {
		fsys, r, err := followed(e.ctx, p)
		if errors.Is(err, fs.ErrNotExist) {
			if c.NoCreate {
				return nil
			}
			return makeEmpty(e.ctx, p)
		}
		if err != nil {
			return err
		}
		set := vfs.SetAttr{Valid: vfs.MaskAtime | vfs.MaskMtime, AtimeNow: true, MtimeNow: true}
		_, err = fsys.SetAttr(e.ctx, r.Handle, &set, nil)
		return about(p, err)
	})
}

// followed is what a place names, with its file system; a link stands for its target.
func followed(ctx context.Context, p *place.Place) (vfs.FS, vfs.Resolved, error) {
	r, err := p.Resolve(ctx, false)
	if err != nil || r.Attr.Type != vfs.TypeSymlink {
		return p.FS, r, err
	}
	return p.Follow(ctx)
}

// makeEmpty makes an empty file of what is not there; of a link that leads nowhere, where it leads.
func makeEmpty(ctx context.Context, p *place.Place) error {
	dir, name, err := p.Parent(ctx)
	if err == nil && place.MeansDir(p.Text) { // no file has such a name
		err = about(p, vfs.ErrNoEnt)
	}
	if err != nil {
		return err
	}
	// Guarded: what has come there meanwhile is not this command's.
	how := vfs.CreateHow{Type: vfs.TypeReg, Mode: vfs.CreateGuarded, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o644}}
	for range vfs.MaxSymlinks {
		if _, _, _, err = p.FS.Create(ctx, dir, name, &how); !errors.Is(err, fs.ErrExist) {
			return about(p, err)
		}
		if dir, name, err = ledTo(ctx, p.FS, dir, name, err); err != nil {
			return about(p, err)
		}
	}
	return about(p, syscall.ELOOP)
}

// ledTo is the directory and the name that a link, which is called name in dir, leads to; exists, if
// it is no link.
func ledTo(ctx context.Context, fsys vfs.FS, dir vfs.Handle, name string, exists error) (vfs.Handle, string, error) {
	r, err := vfs.Resolve(ctx, fsys, dir, name, false)
	if err == nil && r.Attr.Type != vfs.TypeSymlink {
		err = exists
	}
	if err != nil {
		return dir, "", err
	}
	text, _, err := fsys.Readlink(ctx, r.Handle)
	if err != nil {
		return dir, "", fmt.Errorf("readlink: %w", err)
	}
	way, name := path.Split(text)
	switch {
	case path.IsAbs(text):
		err = vfs.ErrOutside
	case name == "":
		err = vfs.ErrNoEnt
	default:
		r, err = vfs.Resolve(ctx, vfs.Inside(fsys), dir, way, true)
	}
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err
	}
	if err != nil {
		return dir, "", fmt.Errorf("it leads to %s, which is not there: %w", text, err)
	}
	return r.Handle, name, nil
}

type chmodCmd struct {
	Mode      string   `arg:"" name:"MODE" help:"Permissions: octal, as 640, or symbolic, as u+rw,go-w."`
	Places    []string `arg:"" place:"" name:"PLACE" help:"Files and directories: paths or nfs://host/export/path."`
	Recursive bool     `short:"R" help:"Change all that lies below as well, and no symbolic link."`
	alikeFlags
	verbFlags
}

func (*chmodCmd) Help() string {
	return `Changes permissions. MODE is octal, or symbolic: [ugoa...][+-=][rwxXst...], several with commas between
them. Without ugoa it is for all, whatever the umask. X is x for directories, and for what has an x already; g=u
gives the group what the user has. A directory keeps its set-user-ID and set-group-ID if an octal mode does not
name them; five digits, as 00755, take them away. A link stands for its target.

  nfsbox chmod 750 nfs://filer/export/home/ann
  nfsbox chmod -R g+rX,o= nfs://filer/export/projects`
}

func (c *chmodCmd) Run(e *env) error {
	change, err := chmod.Parse(c.Mode)
	if err != nil {
		return refused(err)
	}
	v, err := c.begin(e)
	if err == nil {
		err = c.group(v.output)
	}
	if err != nil {
		return err
	}
	return v.each("changed", v.matches(c.Places), func(p *place.Place) error {
		return v.changeTree(p, c.Recursive, func(a *vfs.Attr) vfs.SetAttr {
			return vfs.SetAttr{Valid: vfs.MaskMode, Mode: change(a)}
		})
	})
}

type chownCmd struct {
	Owner         string   `arg:"" name:"UID[:GID]" help:"The owner, the owner and the group, or :GID, as numbers."`
	Places        []string `arg:"" place:"" name:"PLACE" help:"Files and directories: paths or nfs://host/export/path."`
	Recursive     bool     `short:"R" help:"Change all that lies below as well; of a symbolic link the link itself."`
	NoDereference bool     `name:"no-dereference" help:"Change a symbolic link that PLACE names, and not its target."`
	alikeFlags
	verbFlags
}

func (*chownCmd) Help() string {
	return `Changes owner and group. They are numbers: NFS version 3 has no names of users.

  nfsbox chown 1000:1000 nfs://filer/export/home/ann
  nfsbox chown -R :100 nfs://filer/export/projects`
}

func (c *chownCmd) Run(e *env) error {
	set, err := parseOwner(c.Owner)
	if err != nil {
		return err
	}
	v, err := c.begin(e)
	if err == nil {
		err = c.group(v.output)
	}
	if err != nil {
		return err
	}
	return v.each("changed", v.matches(c.Places), func(p *place.Place) error {
		if c.NoDereference && !c.Recursive {
			r, err := p.Resolve(e.ctx, false)
			if err == nil {
				_, err = p.FS.SetAttr(e.ctx, r.Handle, &set, nil)
				err = about(p, err)
			}
			return err
		}
		return v.changeTree(p, c.Recursive, func(*vfs.Attr) vfs.SetAttr { return set })
	})
}

// parseOwner reads UID, UID:GID or :GID.
func parseOwner(s string) (set vfs.SetAttr, err error) {
	owner, group, _ := strings.Cut(s, ":")
	for _, part := range []struct {
		text string
		mask vfs.Mask
		to   *uint32
	}{{owner, vfs.MaskUID, &set.UID}, {group, vfs.MaskGID, &set.GID}} {
		if part.text == "" {
			continue
		}
		n, err := strconv.ParseUint(part.text, 10, 32)
		if err != nil || n == 1<<32-1 { // which chown(2) takes as "leave it"
			return set, &exitError{status: exitUsage, err: fmt.Errorf("%q is no owner: give numbers, UID, UID:GID or :GID", s)}
		}
		set.Valid |= part.mask
		*part.to = uint32(n)
	}
	if set.Valid == 0 {
		return set, &exitError{status: exitUsage, err: fmt.Errorf("%q is no owner: give numbers, UID, UID:GID or :GID", s)}
	}
	return set, nil
}

// changeTree sets attributes of what a place names, and with below of all that lies below it.
func (v *verb) changeTree(p *place.Place, below bool, of func(*vfs.Attr) vfs.SetAttr) error {
	ctx := v.e.ctx
	fsys, r, err := followed(ctx, p)
	if err != nil {
		return err
	}
	set := of(&r.Attr)
	_, err = fsys.SetAttr(ctx, r.Handle, &set, nil)
	if !below || r.Attr.Type != vfs.TypeDir {
		return about(p, err)
	}
	c := &changer{fs: fsys, of: of, text: p.Text, names: spell(p), out: v.output}
	if err := c.fault(ctx, "", err); err != nil { // as chmod(1), it goes on with what lies below
		return about(p, err)
	}
	if err := walk.Tree(ctx, fsys, r.Handle, walk.Options{Parallel: 1}, c); err != nil {
		return about(p, err)
	}
	if c.failed {
		return &exitError{status: exitIncomplete} // each has been reported
	}
	return nil
}

// changer sets attributes of a tree. It is the visitor of a walk with one worker.
type changer struct {
	fs     vfs.FS
	of     func(*vfs.Attr) vfs.SetAttr
	text   string // of the place
	names  *speller
	out    *output
	failed bool
}

func (c *changer) set(ctx context.Context, path string, h vfs.Handle, a *vfs.Attr) error {
	var err error
	if !a.Has(vfs.MaskMode | vfs.MaskType) {
		*a, err = c.fs.GetAttr(ctx, h, vfs.MaskV3)
	}
	set := c.of(a)
	if err == nil && (a.Type != vfs.TypeSymlink || set.Valid&vfs.MaskMode == 0) {
		_, err = c.fs.SetAttr(ctx, h, &set, nil)
	}
	return c.fault(ctx, path, err)
}

// fault reports what has failed. The walk goes on, unless the command was interrupted.
func (c *changer) fault(ctx context.Context, path string, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	c.failed = true
	at := c.text
	if path != "" {
		at = c.names.below("/" + path)
	}
	c.out.failed(at, fmt.Errorf("%s: %w", at, err))
	return nil
}

// Enter changes a directory before what is in it.
func (c *changer) Enter(ctx context.Context, d *walk.Dir) error {
	if d.Parent == nil {
		return nil
	}
	a := d.Attr
	return c.set(ctx, d.Path(""), d.Handle, &a)
}

func (c *changer) Entry(ctx context.Context, d *walk.Dir, e *vfs.Entry) error {
	return c.set(ctx, d.Path(string(e.Name)), e.Handle, &e.Attr)
}

func (c *changer) Fault(ctx context.Context, d *walk.Dir, name string, err error) error {
	return c.fault(ctx, d.Path(name), err)
}

func (*changer) Leave(context.Context, *walk.Dir, error) error { return nil }
