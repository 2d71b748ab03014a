// Package place turns what people type into what the house works on: a path of
// this host or an nfs:// URL becomes a [vfs.FS] and a path in it. Commands take
// places; nothing below them reads an argument.
//
// A local place is rooted as deep as the argument allows: at the directory it
// names, or at the directory that holds the file it names. Nothing that is done
// through a place can reach outside that root, whatever names or links are met.
package place

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/tools/dirfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// ErrUnreachable marks the error of a place that could not be opened: its server
// does not answer, or has no such export or directory.
var ErrUnreachable = errors.New("cannot be reached")

// ErrUsage marks the error of an argument that is no place at all.
var ErrUsage = errors.New("not a place")

// usageError is an ErrUsage that says itself what is wrong.
type usageError struct{ error }

func (e usageError) Is(target error) bool { return target == ErrUsage }
func (e usageError) Unwrap() error        { return e.error }

// Options says how to open a place. The zero Options are those of a command.
type Options struct {
	// Follow makes a symbolic link that the argument itself names stand for its
	// target, as ls and cat want it and cp -r does not.
	Follow bool
	// OneFileSystem leaves directories of a local place empty that something is
	// mounted on; see Place.Mounts.
	OneFileSystem bool
	// Dial are further options for nfs:// places.
	Dial []nfsbox.Option
}

// Place is an open place. Close it.
type Place struct {
	FS   vfs.FS
	Path string // of the object below FS's root, clean; "" is the root itself
	Text string // the argument, for messages
	nfs  *nfsbox.Client
	far  *Place // what Follow has opened
	told bool   // what was found when it was opened; from then on the server is asked
}

// IsURL reports whether arg is a URL rather than a path of this host.
func IsURL(arg string) bool {
	scheme, _, ok := strings.Cut(arg, "://")
	return ok && scheme != "" && !strings.ContainsAny(scheme, "/.")
}

// Open opens the place that arg names. The object itself need not exist, but
// the directory that holds it must. Errors are ErrUsage or ErrUnreachable, or neither if
// they are what the file system says of the path ([Reached]). What a server does not export
// is ErrUnreachable.
func Open(ctx context.Context, arg string, o Options) (*Place, error) {
	switch {
	case arg == "":
		return nil, fmt.Errorf("an empty argument is %w; give a path or nfs://host/export/path", ErrUsage)
	case strings.HasPrefix(arg, "nfs://"):
		return openNFS(ctx, arg, o)
	case IsURL(arg):
		scheme, _, _ := strings.Cut(arg, "://")
		return nil, fmt.Errorf("%s:// is %w that this version knows; give a path or nfs://host/export/path", scheme, ErrUsage)
	}
	return openLocal(arg, o)
}

func openNFS(ctx context.Context, arg string, o Options) (*Place, error) {
	if _, err := nfsbox.ParseURL(arg); err != nil {
		return nil, usageError{err}
	}
	c, err := nfsbox.Dial(ctx, arg, o.Dial...)
	if errors.Is(err, fs.ErrNotExist) && MeansDir(arg) {
		if absent := dialAbsent(ctx, arg, o); absent != nil {
			c, err = absent, nil
		}
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok && answer(path) {
		return nil, fmt.Errorf("%s: %w", arg, err)
	}
	if cerr := ctx.Err(); err != nil && cerr != nil {
		return nil, fmt.Errorf("%s: %w", arg, cerr) // whether it can be reached, nobody knows
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", arg, ErrUnreachable, err)
	}
	return &Place{FS: c.FS(), Path: c.Target(), Text: arg, nfs: c}, nil
}

// dialAbsent is a client whose URL names nothing in a directory that is there, if arg does so
// with a slash or a dot at its end: what shall be a directory need not exist. A link there
// that leads nowhere is something.
func dialAbsent(ctx context.Context, arg string, o Options) *nfsbox.Client {
	c, err := nfsbox.Dial(ctx, withoutEnd(spelled(arg))+arg[len(spelled(arg)):], o.Dial...)
	if err != nil {
		return nil
	}
	if _, err = c.Found(); !errors.Is(err, fs.ErrNotExist) {
		_ = c.Close() // nothing was written there
		return nil
	}
	return c
}

// OpenName opens the place of the name that arg ends in: where a server mounts the directory
// that a link leads to, what Open opens is that directory, and what this opens is the link.
// Where arg has no such name, as that of what a server exports, or as one behind which a
// slash says that a directory is meant, it is Open.
func OpenName(ctx context.Context, arg string, o Options) (*Place, error) {
	dir, name, ok := divided(arg)
	if !ok {
		return Open(ctx, arg, o)
	}
	p, err := openNFS(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	p.Path, p.Text, p.told = name, arg, true
	return p, nil
}

func openLocal(arg string, o Options) (*Place, error) {
	root, rest, err := splitLocal(arg, o.Follow)
	if err != nil {
		return nil, Reached(err)
	}
	fsys, err := dirfs.New(root, dirfs.Options{OneFileSystem: o.OneFileSystem})
	if err != nil {
		return nil, Reached(fmt.Errorf("%s: %w", arg, err))
	}
	return &Place{FS: fsys, Path: rest, Text: arg}, nil
}

// splitLocal divides a path of this host into the directory to root the place
// at, and the name in it: none if the path is a directory. It takes ".." for what this host
// finds there, which behind a link is not what the text says.
func splitLocal(arg string, follow bool) (root, name string, err error) {
	stat, isDir := os.Lstat, MeansDir(arg)
	if follow || isDir {
		stat = os.Stat
	}
	switch info, err := stat(arg); {
	case err == nil && info.IsDir():
		return arg, "", nil
	case err == nil && isDir:
		return "", "", notDir(arg)
	case err == nil && follow:
		// A link may lead to where no path from its own directory does.
		if arg, err = filepath.EvalSymlinks(arg); err != nil {
			return "", "", err
		}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", "", err
	case err != nil && isDir && exists(withoutEnd(arg)):
		return "", "", err // a link that leads nowhere
	}
	root, name = filepath.Split(withoutEnd(arg))
	if name == "" || name == ".." {
		return "", "", &fs.PathError{Op: "open", Path: arg, Err: vfs.ErrNoEnt}
	}
	info, err := os.Stat(cmp.Or(root, "."))
	if err == nil && !info.IsDir() {
		err = notDir(root)
	}
	return cmp.Or(root, "."), name, err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func notDir(path string) error { return &fs.PathError{Op: "open", Path: path, Err: vfs.ErrNotDir} }

// Resolve finds the object that the place names. follow says whether a symbolic
// link there stands for its target. If the object does not exist, the error Is
// fs.ErrNotExist; other errors are those of [Reached]. The first answer for a server is what
// was found when the place was opened.
func (p *Place) Resolve(ctx context.Context, follow bool) (vfs.Resolved, error) {
	r, ok, err := p.found(follow)
	if !ok {
		r, err = p.look(ctx, follow)
	}
	if err == nil && !r.Attr.Has(vfs.MaskV3) {
		r.Attr, err = p.FS.GetAttr(ctx, r.Handle, vfs.MaskV3)
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w", p.Text, Reached(err))
	}
	return r, nil
}

// Follow finds what the symbolic link that the place names leads to, and the file system that
// has it: of this host it may lie out of FS. A link of a server that leads out of the
// directory that it is in is an error. Errors are those of Resolve. The file system is the
// place's, which closes it.
func (p *Place) Follow(ctx context.Context) (vfs.FS, vfs.Resolved, error) {
	if p.nfs != nil {
		r, err := p.Resolve(ctx, true)
		return p.FS, r, err
	}
	if p.far == nil {
		far, err := openLocal(p.Text, Options{Follow: true})
		if err != nil {
			return nil, vfs.Resolved{}, err
		}
		p.far = far
	}
	r, err := p.far.Resolve(ctx, true)
	return p.far.FS, r, err
}

// found is what opening the place has found, once; ok is false if that does not tell.
func (p *Place) found(follow bool) (r vfs.Resolved, ok bool, err error) {
	if p.nfs == nil || p.told {
		return r, false, nil
	}
	p.told = true
	r, err = p.nfs.Found()
	return r, err != nil || !follow || r.Attr.Has(vfs.MaskType) && r.Attr.Type != vfs.TypeSymlink, err
}

// look follows the path from the root. Of a server the root is the directory that holds
// what the path names, and a link that leads out of that is not followed. Of this host,
// opening the place has followed all that leads somewhere.
func (p *Place) look(ctx context.Context, follow bool) (vfs.Resolved, error) {
	root, attr, err := p.root(ctx)
	if err != nil {
		return vfs.Resolved{}, err
	}
	r, err := vfs.Resolve(ctx, vfs.Inside(p.FS), root, p.Path, follow && p.nfs != nil)
	if err == nil && follow && r.Attr.Type == vfs.TypeSymlink {
		err = fmt.Errorf("the symbolic link leads nowhere: %w", vfs.ErrNoEnt)
	}
	if errors.Is(err, vfs.ErrOutside) {
		err = fmt.Errorf("%w, which is the directory that it is in: name what it leads to", err)
	}
	if err == nil && r.Handle == root {
		r.Attr = attr
	}
	return r, err
}

// root is FS's root, and its attributes if the place is the root. Of a server the
// handle is known, and who goes on from there is told soon enough if it is gone.
func (p *Place) root(ctx context.Context) (vfs.Handle, vfs.Attr, error) {
	if p.nfs != nil && p.Path != "" {
		return p.nfs.Raw().Root, vfs.Attr{}, nil
	}
	return p.FS.Root(ctx)
}

// Parent finds the directory that holds, or will hold, the object, and the
// object's name in it: "" if the place is the root itself.
func (p *Place) Parent(ctx context.Context) (dir vfs.Handle, name string, err error) {
	root, _, err := p.root(ctx)
	if err != nil || p.Path == "" {
		return root, "", err
	}
	parent, name := path.Split(p.Path)
	r, err := vfs.Resolve(ctx, p.FS, root, parent, true)
	if err != nil {
		return vfs.Handle{}, "", fmt.Errorf("%s: %w", p.Text, Reached(err))
	}
	return r.Handle, name, nil
}

// Base is the last part of the argument's path, as a copy of it would be named:
// "" for the root of a server.
func (p *Place) Base() string {
	text := p.Text
	if u, err := nfsbox.ParseURL(text); err == nil && p.nfs != nil {
		text = u.Path
	} else if abs, err := filepath.Abs(text); err == nil {
		text = abs
	}
	if base := path.Base(text); base != "/" && base != "." {
		return base
	}
	return ""
}

// Stats are the counters of an nfs:// place; ok is false for any other.
func (p *Place) Stats() (s nfsbox.Stats, ok bool) {
	if p.nfs == nil {
		return s, false
	}
	return p.nfs.Stats(), true
}

// Mounts is how many directories Options.OneFileSystem has left empty so far.
func (p *Place) Mounts() uint64 {
	if f, ok := p.FS.(*dirfs.FS); ok {
		return uint64(f.Mounts())
	}
	return 0
}

// Close gives back what the place holds.
func (p *Place) Close() error {
	if p.nfs != nil {
		return p.nfs.Close()
	}
	err := vfs.CloseFS(p.FS)
	if p.far != nil {
		err = errors.Join(err, p.far.Close())
	}
	return err
}
