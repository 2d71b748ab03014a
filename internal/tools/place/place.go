// Package place opens what users type: a path of this host, an nfs:// URL or a snapshot becomes a
// [vfs.FS] and a path in it. Commands take places; no package below them parses an argument. What
// is typed passes through [Meant] first. [OpenStore] opens what snapshots are kept in: a directory of this host or of a
// server, or a part of a bucket (s3://). Credentials of a bucket come from the environment, and never from an argument.
//
// s3://BUCKET/PATH is a place among the plain objects of a bucket (package bucketfs).
//
// STORE::NAME[@ID][/PATH] is a place in a snapshot: of that ID, or the newest complete one of that name. What this host, or a
// server, has by that very name wins. PATH is as it is typed: nothing in it is escaped, or a pattern. It is read only,
// without a lock, and has the memory of its snapshot, whatever the size of the tree. A command that reads
// it at length asks for a lease ([Reading]).
//
// A local place is rooted as deep as the argument allows: at the directory it names, or at
// the directory that holds the file it names. Nothing done through its FS can reach outside
// that root, whatever names or links are met. [Place.Follow] returns another FS for the
// target of a link that leads out.
package place

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/server/bucket"
	"github.com/nfsbox/nfsbox/internal/tools/bucketfs"
	"github.com/nfsbox/nfsbox/internal/tools/dirfs"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/vfs"
)

// ErrUnreachable marks the error of a place that could not be opened: the server does not
// answer, or has no such export or directory.
var ErrUnreachable = errors.New("cannot be reached")

// ErrUsage marks the error of an argument that is no place at all.
var ErrUsage = errors.New("not a place")

// usageError is an ErrUsage with a message of its own.
type usageError struct{ error }

func (e usageError) Is(target error) bool { return target == ErrUsage }
func (e usageError) Unwrap() error        { return e.error }

// Options says how to open a place. The zero Options are those of a command.
type Options struct {
	// Follow makes a symbolic link that the argument itself names stand for its target,
	// which ls and cat need and cp -r does not.
	Follow bool
	// OneFileSystem shows mount points of a local place as empty directories; see
	// Place.Mounts.
	OneFileSystem bool
	// Dial is further options for nfs:// places.
	Dial []nfsbox.Option
	// Silent is told of a bucket's store that does not answer, and that it does again; nil: nobody is. What tells of servers is in Dial.
	Silent func(bucket.Silence)
	// Change says that something is to be changed there. A place in a snapshot is then ErrUsage.
	Change bool
	// Note is told that a snapshot is incomplete; nil: nobody is.
	Note func(text string)
	// Reading has a snapshot that several hosts could prune kept until the place is closed; nil: it is not.
	Reading *Reading
}

// Place is an open place. The caller closes it.
type Place struct {
	FS   vfs.FS
	Path string // of the object below FS's root, clean; "" is the root itself
	Text string // the argument, for messages
	dir  string // of this host: FS's root
	nfs  *nfsbox.Client
	far  *Place       // the place that Follow has opened
	told bool         // the result of opening was used; from then on the server is asked
	ends func() error // closes what Of was given; nil: nothing more

	snap  *snapshot.Snapshot // that the place is in
	store *Store             // that has it

	bucket *bucketfs.FS // that the place is in
}

// Of is the place of a path in a file system that somebody else has opened, as text names it. Close calls ends, too.
func Of(f vfs.FS, path, text string, ends func() error) *Place {
	return &Place{FS: f, Path: path, Text: text, ends: ends}
}

// IsURL reports whether arg is a URL rather than a path of this host.
func IsURL(arg string) bool {
	scheme, _, ok := strings.Cut(arg, "://")
	return ok && scheme != "" && !strings.ContainsAny(scheme, "/.")
}

// Open opens the place that arg names. The object itself need not exist, but the directory
// that holds it must. Errors are ErrUsage or ErrUnreachable, or the file system's answer about
// the path ([Reached]). A path that a server does not export is ErrUnreachable, as a [NoExport] if the
// server says what it exports.
func Open(ctx context.Context, arg string, o Options) (*Place, error) {
	if strings.HasPrefix(arg, "nfs://") {
		p, err := openNFS(ctx, arg, true, o)
		return orSnapshot(ctx, arg, o, p, err)
	}
	if p, err := openDivided(ctx, arg, o); !errors.Is(err, errPlain) {
		return p, err
	}
	switch {
	case arg == "":
		return nil, fmt.Errorf("an empty argument is %w; give a path or nfs://host/export/path", ErrUsage)
	case IsURL(arg):
		scheme, _, _ := strings.Cut(arg, "://")
		if scheme == "s3" {
			return openBucket(ctx, arg, o.Silent)
		}
		return nil, fmt.Errorf("%s:// is %w that this version knows; give a path or nfs://host/export/path", scheme, ErrUsage)
	}
	return openLocal(arg, o)
}

// openNFS opens a URL. absent says that an arg which means a directory may name one that is not
// there.
func openNFS(ctx context.Context, arg string, absent bool, o Options) (*Place, error) {
	u, err := nfsbox.ParseURL(arg)
	if err != nil {
		return nil, usageError{err}
	}
	c, err := nfsbox.Dial(ctx, arg, o.Dial...)
	if wrong, ok := errors.AsType[*nfsbox.CacheError](err); ok {
		return nil, usageError{wrong}
	}
	if absent && errors.Is(err, fs.ErrNotExist) && MeansDir(arg) {
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
	if noHost, ok := errors.AsType[*net.DNSError](err); ok && noHost.IsNotFound && meantHost(u) != "" {
		return nil, fmt.Errorf("%s: %w: no host has the name nfs; did you mean %s?", arg, ErrUnreachable, meantHost(u))
	}
	if err != nil {
		return nil, notExported(ctx, arg, o, fmt.Errorf("%s: %w: %w", arg, ErrUnreachable, err))
	}
	return &Place{FS: c.FS(), Path: c.Target(), Text: arg, nfs: c}, nil
}

// dialAbsent handles an arg whose end says that it means a directory: that need not exist. It
// returns a client if nothing has the name in an existing directory. A dangling link there has
// the name.
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

// OpenName opens the place of the last name in arg. If that is a link to a directory that the
// server mounts, Open opens the directory, and OpenName the link. If arg has no such name, as
// for an export itself or with a slash at the end, OpenName is Open.
func OpenName(ctx context.Context, arg string, o Options) (*Place, error) {
	dir, name, ok := divided(arg)
	if !ok {
		return Open(ctx, arg, o)
	}
	if _, _, _, ok := Divide(arg); ok {
		p, err := Open(ctx, arg, o)
		if err != nil || p.snap != nil {
			return p, err
		}
		if err := p.Close(); err != nil {
			return nil, err
		}
	}
	// A directory that is not there must not become a name in the one above.
	p, err := openNFS(ctx, dir, false, o)
	if err != nil {
		return nil, err
	}
	p.Path, p.Text, p.told = name, arg, true
	return p, nil
}

func openLocal(arg string, o Options) (*Place, error) {
	if url := withPort(arg); url != "" {
		return nil, fmt.Errorf("%s is %w: no such directory is here; if it is a server's, say %s", arg, ErrUsage, url)
	}
	if url := withScheme(arg); url != "" {
		return nil, fmt.Errorf("%s is %w; did you mean %s?", arg, ErrUsage, url)
	}
	root, rest, err := splitLocal(arg, o.Follow)
	if err != nil {
		return nil, Reached(err)
	}
	fsys, err := dirfs.New(root, dirfs.Options{OneFileSystem: o.OneFileSystem})
	if err != nil {
		return nil, Reached(fmt.Errorf("%s: %w", arg, err))
	}
	return &Place{FS: fsys, Path: rest, Text: arg, dir: root}, nil
}

// splitLocal divides a path of this host into the directory to root the place at, and the
// name in it; "" if the path is a directory. ".." means what this host finds there, which after
// a link is not what the text says.
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
		return "", "", err // a dangling link
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

// Resolve finds the object that the place names. follow says whether a symbolic link there
// stands for its target. If the object does not exist, the error Is fs.ErrNotExist; other
// errors are those of [Reached]. For a server the first call may use what Open has found. With a
// slash behind its name it has to be a directory, or a link to one, which is followed (POSIX,
// Pathname Resolution); else it is [vfs.ErrNotDir].
func (p *Place) Resolve(ctx context.Context, follow bool) (vfs.Resolved, error) {
	isDir := MeansDir(p.Text)
	follow = follow || isDir
	r, ok, err := p.found(follow)
	if !ok {
		r, err = p.look(ctx, follow)
	}
	if err == nil && !r.Attr.Has(vfs.MaskV3) {
		r.Attr, err = p.FS.GetAttr(ctx, r.Handle, vfs.MaskV3)
	}
	if err == nil && isDir && r.Attr.Type != vfs.TypeDir {
		err = vfs.ErrNotDir
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w", p.Text, Reached(err))
	}
	return r, nil
}

// Follow finds the target of the symbolic link that the place names, and its file system,
// which on this host may be another than FS. The place closes that. A link of a server that
// leads out of its own directory is an error. Errors are those of Resolve.
func (p *Place) Follow(ctx context.Context) (vfs.FS, vfs.Resolved, error) {
	if !p.IsLocal() {
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

// found returns once what opening the place has found; ok is false if that is not enough.
func (p *Place) found(follow bool) (r vfs.Resolved, ok bool, err error) {
	if p.nfs == nil || p.told {
		return r, false, nil
	}
	p.told = true
	r, err = p.nfs.Found()
	return r, err != nil || !follow || r.Attr.Has(vfs.MaskType) && r.Attr.Type != vfs.TypeSymlink, err
}

// look follows the path from the root. For a server the root is the directory that holds the
// object, and a link that leads out of it is not followed. On this host, opening the place has
// followed every link that leads somewhere.
func (p *Place) look(ctx context.Context, follow bool) (vfs.Resolved, error) {
	root, attr, err := p.root(ctx)
	if err != nil {
		return vfs.Resolved{}, err
	}
	r, err := vfs.Resolve(ctx, vfs.Inside(p.FS), root, p.Path, follow && !p.IsLocal())
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

// root is FS's root, and its attributes if the place is the root. A server's root handle is
// used unchecked: later calls report it if it is stale.
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

// SetMaxLoad changes how many calls of each class the place's server may have in flight; see
// nfsbox.Client. A path of this host has none.
func (p *Place) SetMaxLoad(n int) error {
	if p.nfs == nil {
		return nil
	}
	return p.nfs.SetMaxLoad(n)
}

// Base is the last part of the argument's path, which a copy gets as its name; "" for the root
// of a server. Of a snapshot itself it is the name.
func (p *Place) Base() string {
	if p.snap != nil {
		return p.snapshotBase()
	}
	if p.bucket != nil {
		return p.bucketBase()
	}
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

// Stats returns the counters of an nfs:// place; ok is false for any other.
func (p *Place) Stats() (s nfsbox.Stats, ok bool) {
	if p.nfs == nil {
		return s, false
	}
	return p.nfs.Stats(), true
}

// Mounts is how many directories Options.OneFileSystem has shown as empty so far.
func (p *Place) Mounts() uint64 {
	if f, ok := p.FS.(*dirfs.FS); ok {
		return uint64(f.Mounts())
	}
	return 0
}

// Close closes what the place has opened.
func (p *Place) Close() error {
	if p.nfs != nil {
		return p.nfs.Close()
	}
	if p.store != nil {
		return p.store.Close()
	}
	err := vfs.CloseFS(p.FS)
	if p.far != nil {
		err = errors.Join(err, p.far.Close())
	}
	if p.ends != nil {
		err = errors.Join(err, p.ends())
	}
	return err
}
