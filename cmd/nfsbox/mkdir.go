package main

import (
	"errors"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/tools/chmod"
	"github.com/nfsbox/nfsbox/internal/tools/glob"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/vfs"
)

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
	mode, err := chmod.Octal(c.Mode)
	if err != nil {
		return refused(err)
	}
	v, err := c.begin(e)
	if err != nil {
		return err
	}
	if !c.Parents {
		return v.each("made", glob.Given(c.Places), func(p *place.Place) error { return makeDir(e, p, mode, false) })
	}
	failed := false // something of the argument at hand
	return v.each("made", v.withParents(c.Places, &failed), func(p *place.Place) error {
		mode := mode
		if !slices.Contains(c.Places, p.Text) {
			mode = usualDirMode
		}
		err := makeDir(e, p, mode, true)
		failed = err != nil
		return err
	})
}

// usualDirMode is that of directories above one with a mode of its own.
const usualDirMode = 0o755

// withParents yields for each argument the directories above it that are not there, the highest
// first, and the argument. When one has failed those below it are left out: they would fail for no
// reason of their own.
func (v *verb) withParents(args []string, failed *bool) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, arg := range args {
			*failed = false
			all, err := v.missing(arg)
			if err != nil {
				all = []string{arg}
			}
			for _, one := range all {
				if !yield(one, err) {
					return
				}
				if *failed {
					break
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
