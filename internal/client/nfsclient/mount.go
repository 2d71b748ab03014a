package nfsclient

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/nfsclient/v3"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/vfs"
)

// Conn is a mounted directory of a server. All methods but Close may be called
// concurrently.
type Conn struct {
	opt     Options
	rpc     *oncrpc.Client
	port    uint16 // of rpc
	fs      *v3.FS
	target  string
	mounted string       // what the MOUNT service was asked for
	looked  bool         // it gave "/" as well, which is not what is mounted
	found   vfs.Resolved // what the path names
	missing error        // why it names nothing; nil if it does
	mountd  mountd       // that was asked; its rpc is not for later
	parting sync.WaitGroup
	asking  sync.WaitGroup // for limits
	hangUps atomic.Int32   // in a row, on questions of LOCALIO

	abandoned atomic.Bool
}

// FS is the file system, as Options.FS.Caller sees it.
func (c *Conn) FS() vfs.FS { return c.fs }

// Target is the name of what the path names, in FS's root; "" is the root itself.
// It need not exist.
func (c *Conn) Target() string { return c.target }

// Found is what the path names, as the server said while it was mounted: fields of the
// attributes may be missing. The error Is fs.ErrNotExist if it names nothing.
func (c *Conn) Found() (vfs.Resolved, error) { return c.found, c.missing }

// Raw is what the file system calls procedures through: a client of the
// connection to NFS, and the credential of Options.FS.Caller. It is the Conn's,
// which closes it.
func (c *Conn) Raw() (*oncrpc.Client, oncrpc.Auth) { return c.rpc, c.fs.Auth }

// Root is the handle of the directory that FS is rooted at.
func (c *Conn) Root() vfs.Handle { return c.fs.Top() }

// Close tells the server, if it listens, and ends the connection. Calls under
// way fail.
func (c *Conn) Close() error { return c.close(umountTime) }

// Leave is Close for somebody who has to go: the server has a moment to listen.
func (c *Conn) Leave() error { return c.close(leaveTime) }

func (c *Conn) close(patience time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c.parting.Wait()
	if !c.abandoned.Load() {
		c.umount(ctx)
	}
	return c.rpc.Close()
}

// Quiet is how long the server has not answered although calls of NFS wait for it.
func (c *Conn) Quiet() time.Duration { return c.rpc.Quiet() }

// Abandon ends the connection without a word. Calls under way fail, and all that come.
func (c *Conn) Abandon() {
	c.abandoned.Store(true)
	_ = c.rpc.Close() // Close says the same again
}

// part gives "/" back and ends the connection to MOUNT. Close waits for it, and nobody
// else: it is a courtesy, as umount is.
func (c *Conn) part(m *mountd) {
	ctx, cancel := context.WithTimeout(context.Background(), umountTime)
	defer cancel()
	_ = m.umnt(ctx, "/")
	_ = m.close()
}

// umount sends UMNT, to where MOUNT was found: by the connection to NFS if that is at the
// same port. It is a courtesy: that it failed changes nothing for anyone, so its errors
// end here.
func (c *Conn) umount(ctx context.Context) {
	if c.port == c.mountd.port {
		m := mountd{rpc: c.rpc, auth: c.mountd.auth}
		_ = m.umnt(ctx, c.mounted)
		return
	}
	o := c.opt
	o.DialTries, o.Retries = 1, -1
	rpc, r, err := o.client(ctx, c.mountd.port, &mountService)
	if err != nil {
		return
	}
	m := mountd{rpc: rpc, auth: c.mountd.auth}
	_ = m.umnt(ctx, c.mounted)
	_, _ = rpc.Close(), r.drop()
}

// Mount mounts a directory, or the one that holds what o.Path names. The
// directory must exist. What a server refuses is a [*MountError].
func Mount(ctx context.Context, o Options) (*Conn, error) {
	if err := checkPath(o.Path); err != nil {
		return nil, err
	}
	if err := o.fill(); err != nil {
		return nil, err
	}
	c := &Conn{opt: o}
	if err := c.connect(ctx); err != nil {
		if c.rpc != nil {
			err = errors.Join(err, c.rpc.Close())
		}
		return nil, err
	}
	o.Log.Debug("nfs: mounted", "server", o.Host, "path", c.mounted, "target", c.target)
	return c, nil
}

// checkPath is nil for a path that can be divided by text alone.
func checkPath(path string) error {
	switch {
	case !strings.HasPrefix(path, "/"):
		return fmt.Errorf("nfs: path %q does not begin with a slash", path)
	case len(path) > vfs.MaxPath:
		return fmt.Errorf("nfs: path of %d bytes: %w", len(path), vfs.ErrNameTooLong)
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == ".." {
			return fmt.Errorf("nfs: path %q contains \"..\"; write it without", path)
		}
	}
	return nil
}

// connect reaches both services, at the same time, and opens the path, for which MOUNT is
// asked before it is known to be there. That there is none ends the other attempt, and is
// the error.
func (c *Conn) connect(ctx context.Context) error {
	var nfs sync.WaitGroup
	var err error
	beside, stop := context.WithCancel(ctx)
	defer stop()
	nfs.Go(func() { c.rpc, c.port, err = c.opt.connect(beside, &nfsService) })
	o := c.opt // connectMountd fills it
	m, merr := connectMountd(ctx, &o, c.begin)
	if merr != nil {
		stop()
	}
	nfs.Wait()
	if merr != nil {
		return merr
	}
	c.mountd = *m
	if err == nil {
		err = c.open(ctx, m)
	}
	if err == nil && c.looked {
		c.parting.Go(func() { c.part(m) })
		return nil
	}
	return errors.Join(err, m.close())
}

// split is the parts of a path that stand for something.
func split(path string) (parts []string) {
	for part := range strings.SplitSeq(path, "/") {
		if part != "" && part != "." {
			parts = append(parts, part)
		}
	}
	return parts
}

// meansDir reports whether a path can only mean a directory, by its end.
func meansDir(path string) bool { return strings.HasSuffix(path, "/") || strings.HasSuffix(path, "/.") }

// joined is the path that has these parts.
func joined(parts []string) string { return "/" + strings.Join(parts, "/") }

// climb mounts the longest prefix of the path that the server mounts and that is
// a directory, and returns how many parts that are. It tries most of them. If there is
// none, the error is that of the whole path. Of a prefix that something comes behind,
// the LOOKUP of that tells whether it is a directory.
func (c *Conn) climb(ctx context.Context, m *mountd, parts []string, most int) (root vfs.Handle, n int, err error) {
	var first error
	whole := len(split(c.opt.Path))
	for range min(len(parts)+1, most) {
		n = len(parts)
		path := joined(parts)
		root, err = c.directory(ctx, m, path, n == whole)
		if err == nil {
			c.mounted = path
			return root, n, nil
		}
		if first == nil {
			first = err
		}
		if !climbs(err) || n == 0 {
			break
		}
		parts = parts[:n-1]
	}
	return root, 0, first
}

// directory mounts path, and looks what it is: some servers mount files.
func (c *Conn) directory(ctx context.Context, m *mountd, path string, look bool) (vfs.Handle, error) {
	root, err := m.mnt(ctx, path)
	if err != nil {
		return root, err
	}
	fsys, err := v3.New(c.rpc, root, c.opt.FS)
	if err != nil {
		return root, fmt.Errorf("nfs: mount %q: %w", path, err)
	}
	c.found = vfs.Resolved{Handle: root, Dir: root}
	c.asking.Go(func() { c.limits(ctx, fsys) })
	if look {
		if _, c.found.Attr, err = fsys.Root(ctx); err != nil {
			return root, fmt.Errorf("nfs: mount %q: %w", path, err)
		}
		if c.found.Attr.Type != vfs.TypeDir {
			return root, &MountError{Path: path, Status: vfs.ErrNotDir}
		}
	}
	c.fs = fsys
	return root, nil
}

// limits asks for the limits of a mounted directory beside what is looked up in it: the
// first file to be opened needs them. Without an answer they are asked for then.
func (c *Conn) limits(ctx context.Context, fsys *v3.FS) {
	ctx, cancel := context.WithTimeout(ctx, limitsTime)
	defer cancel()
	_, _ = fsys.Info(ctx, fsys.Top(), vfs.InfoLimits)
}

// climbs reports whether the parent may mount where a path did not.
func climbs(err error) bool {
	refusal, ok := errors.AsType[*MountError](err)
	if !ok {
		return false
	}
	switch refusal.Status {
	case vfs.ErrNoEnt, vfs.ErrNotDir, vfs.ErrAccess, vfs.ErrPerm, vfs.ErrInval, vfs.ErrNameTooLong, vfs.ErrServerFault:
		return true
	}
	return false
}

// descend moves the root down the rest of the path: to the directory that it
// names, or to the one that holds what it names. Links on the way are followed below
// the mounted directory; the last one only if the path says that it is a directory. What
// the server says of the path is a *fs.PathError.
func (c *Conn) descend(ctx context.Context, root vfs.Handle, rest []string, isDir bool) error {
	if len(rest) == 0 {
		return nil
	}
	at, err := c.lookup(ctx, root, rest, isDir)
	if errors.Is(err, vfs.ErrStale) {
		// A directory on the way was replaced between two steps. The path is
		// what was asked for, so it is walked once more.
		at, err = c.lookup(ctx, root, rest, isDir)
	}
	if err != nil {
		return fmt.Errorf("nfs: %q in the mounted %q: %w", strings.Join(rest, "/"), c.mounted, err)
	}
	if at != root { // else it is rooted there, and has counted what failed
		c.fs, err = v3.New(c.rpc, at, c.opt.FS)
	}
	return err
}

// lookup goes down the rest of the path, to the directory to root the file system at.
func (c *Conn) lookup(ctx context.Context, root vfs.Handle, rest []string, isDir bool) (vfs.Handle, error) {
	dir, last := rest[:len(rest)-1], rest[len(rest)-1]
	at, err := c.resolve(ctx, root, dir)
	if err != nil {
		return at, err
	}
	return c.enter(ctx, at, last, isDir)
}

// inside follows a path below the mounted directory, and all links. One that leads out of
// that is [vfs.ErrOutside]: something else may have the name that it leads to.
func (c *Conn) inside(ctx context.Context, dir vfs.Handle, path string) (vfs.Resolved, error) {
	found, err := vfs.Resolve(ctx, vfs.Inside(c.fs), dir, path, true)
	if errors.Is(err, vfs.ErrOutside) {
		err = fmt.Errorf("%w: name what it leads to", err)
	}
	return found, err
}

// resolve finds a directory below the mounted one.
func (c *Conn) resolve(ctx context.Context, root vfs.Handle, dir []string) (vfs.Handle, error) {
	if len(dir) == 0 {
		return root, nil
	}
	path := strings.Join(dir, "/")
	found, err := c.inside(ctx, root, path)
	if err == nil && found.Attr.Type != vfs.TypeDir {
		err = notDir(path)
	}
	return found.Handle, err
}

// enter goes to the directory last in dir. Anything else that has the name, or nothing,
// becomes the target. If it has to be a directory, a link is followed, and else there is none.
func (c *Conn) enter(ctx context.Context, dir vfs.Handle, last string, isDir bool) (vfs.Handle, error) {
	found, err := vfs.Resolve(ctx, c.fs, dir, last, false)
	if err == nil && isDir && found.Attr.Type == vfs.TypeSymlink {
		if found, err = c.inside(ctx, dir, last); err != nil {
			return dir, err
		}
	}
	switch {
	case err == nil && found.Attr.Type == vfs.TypeDir:
		c.found = vfs.Resolved{Handle: found.Handle, Attr: found.Attr, Dir: found.Handle}
		return found.Handle, nil
	case err == nil && isDir:
		return dir, notDir(last)
	case err == nil || errors.Is(err, vfs.ErrNoEnt) && !isDir:
		c.target, c.found, c.missing = last, found, err
		return dir, nil
	}
	return dir, err
}

func notDir(path string) error { return &fs.PathError{Op: "resolve", Path: path, Err: vfs.ErrNotDir} }
