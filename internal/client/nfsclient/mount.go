package nfsclient

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/nfsclient/v3"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/vfs"
)

// Conn is a mounted directory of a server. All methods but Close may be called
// concurrently.
type Conn struct {
	opt       Options
	rpc       *oncrpc.Client
	port      uint16 // of rpc
	fs        *v3.FS
	target    string
	mounted   string       // the path that MOUNT was asked for
	looked    bool         // MOUNT gave "/" as well, which is not what is mounted
	found     vfs.Resolved // the path's object
	missing   error        // why there is none; nil if there is
	mountd    mountd       // the MOUNT service that was asked; its rpc is closed
	parting   sync.WaitGroup
	asking    sync.WaitGroup // for limits
	hangUps   atomic.Int32   // in a row, on questions of LOCALIO
	abandoned atomic.Bool
}

// FS is the file system, for Options.FS.Caller.
func (c *Conn) FS() vfs.FS { return c.fs }

// Target is the name of the path's object in FS's root; "" is the root itself. The object need
// not exist.
func (c *Conn) Target() string { return c.target }

// Found is the path's object as Mount has found it; attributes may be incomplete. The error Is
// fs.ErrNotExist if there is none.
func (c *Conn) Found() (vfs.Resolved, error) { return c.found, c.missing }

// Raw returns the RPC client and the credential that the file system uses. They belong to the
// Conn, which closes the client.
func (c *Conn) Raw() (*oncrpc.Client, oncrpc.Auth) { return c.rpc, c.fs.Auth }

// Root is the handle of the directory that FS is rooted at.
func (c *Conn) Root() vfs.Handle { return c.fs.Top() }

// Close unmounts, waits up to umountTime for the server's answer, and closes the connections. Calls
// in flight fail.
func (c *Conn) Close() error { return c.close(umountTime) }

// Leave is Close with leaveTime, for a program that has to end.
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

// Quiet is how long the server has sent nothing although NFS calls wait for it.
func (c *Conn) Quiet() time.Duration { return c.rpc.Quiet() }

// Abandon closes the connections without UMNT. Calls in flight fail, and all later ones.
func (c *Conn) Abandon() {
	c.abandoned.Store(true)
	_ = c.rpc.Close() // Close returns the same error
}

// part unmounts "/" and closes the connection to MOUNT, in the background. Only Close waits for it.
func (c *Conn) part(m *mountd) {
	ctx, cancel := context.WithTimeout(context.Background(), umountTime)
	defer cancel()
	_ = m.umnt(ctx, "/")
	_ = m.close()
}

// umount sends UMNT, on the connection to NFS if MOUNT has the same port. It is a courtesy: a
// failure has no consequences, so errors are dropped.
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

// Mount mounts the directory o.Path, or the one that holds the object o.Path. The directory must
// exist. A refusal by the server is a [*MountError].
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

// checkPath returns an error for a path that cannot be divided by its text.
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

// connect connects to both services concurrently, and opens the path. MOUNT is called before the
// service is known to be there. If one service is missing, the other attempt ends, and that is the
// error.
func (c *Conn) connect(ctx context.Context) error {
	var nfs sync.WaitGroup
	var err error
	beside, stop := context.WithCancel(ctx)
	defer stop()
	nfs.Go(func() { c.rpc, c.port, err = c.opt.connect(beside, &nfsService) })
	o := c.opt // connectMountd changes it
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

// split returns the parts of a path, without empty ones and ".".
func split(path string) (parts []string) {
	for part := range strings.SplitSeq(path, "/") {
		if part != "" && part != "." {
			parts = append(parts, part)
		}
	}
	return parts
}

func meansDir(path string) bool { return strings.HasSuffix(path, "/") || strings.HasSuffix(path, "/.") }

// joined is the path that has these parts.
func joined(parts []string) string { return "/" + strings.Join(parts, "/") }

// climb mounts the longest prefix of the path that the server mounts and that is a directory, and
// returns how many parts that are. It makes most tries. If all fail, the error is the first one's.
// For a proper prefix the following LOOKUP shows whether it is a directory.
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

// directory mounts path and, if look is set, checks its type: some servers mount files.
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

// limits asks for the limits of a mounted directory while the path is looked up: the first file
// that is opened needs them. If no answer comes, they are asked for then.
func (c *Conn) limits(ctx context.Context, fsys *v3.FS) {
	ctx, cancel := context.WithTimeout(ctx, limitsTime)
	defer cancel()
	_, _ = fsys.Info(ctx, fsys.Top(), vfs.InfoLimits)
}

// climbs reports whether a parent may be mountable after err for a path.
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

// descend moves the root down the rest of the path: to the directory that it names, or to the one
// that holds its object. Links on the way are followed below the mounted directory; the last one
// only if the path says that it is a directory. An answer of the server about the path is a
// *fs.PathError.
func (c *Conn) descend(ctx context.Context, root vfs.Handle, rest []string, isDir bool) error {
	if len(rest) == 0 {
		return nil
	}
	at, err := c.lookup(ctx, root, rest, isDir)
	if errors.Is(err, vfs.ErrStale) {
		// A directory on the way was replaced between two steps: walk the path once more.
		at, err = c.lookup(ctx, root, rest, isDir)
	}
	if err != nil {
		return below(c.mounted, err)
	}
	if at != root { // otherwise c.fs has the root already, and its counters
		c.fs, err = v3.New(c.rpc, at, c.opt.FS)
	}
	return err
}

// below is an error of a path that begins in dir, with the path as it is seen from above dir.
func below(dir string, err error) error {
	at, ok := err.(*fs.PathError)             //nolint:errorlint // itself: what is around it would be lost
	if !ok || errors.Is(err, syscall.ELOOP) { // which has the link alone
		return err
	}
	return &fs.PathError{Op: at.Op, Path: path.Join(dir, at.Path), Err: at.Err}
}

// lookup goes down the rest of the path, to the directory that becomes the root.
func (c *Conn) lookup(ctx context.Context, root vfs.Handle, rest []string, isDir bool) (vfs.Handle, error) {
	dir, last := rest[:len(rest)-1], rest[len(rest)-1]
	at, err := c.resolve(ctx, root, dir)
	if err != nil {
		return at, err
	}
	at, err = c.enter(ctx, at, last, isDir)
	return at, below(strings.Join(dir, "/"), err)
}

// inside follows a path below the mounted directory, with all links. A link that leads out of it is
// [vfs.ErrOutside]: its target's name may be another object's here.
func (c *Conn) inside(ctx context.Context, dir vfs.Handle, path string) (vfs.Resolved, error) {
	found, err := vfs.Resolve(ctx, vfs.Inside(c.fs), dir, path, true)
	if at, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(err, vfs.ErrOutside) {
		at.Err = fmt.Errorf("%w: name what it leads to", at.Err)
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

// enter goes to the directory last in dir. If something else has the name, or nothing, the name
// becomes the target. A link is followed only if isDir.
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
