package nfsclient

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nfsbox/nfsbox/vfs"
)

// checkExport checks that the path lies in Options' export, if there is one.
func (o *Options) checkExport() error {
	end := split(o.Export)
	switch parts := split(o.Path); {
	case o.Export == "":
		return nil
	case len(end) > len(parts) || !slices.Equal(end, parts[:len(end)]):
		return fmt.Errorf("nfs: path %q does not lie in the export %q", o.Path, o.Export)
	}
	return checkPath(o.Export)
}

// begin sends the MOUNT calls that open needs in any case.
func (c *Conn) begin(ctx context.Context, m *mountd) {
	if c.opt.Export != "" {
		m.ask(ctx, joined(split(c.opt.Export)), 0)
		return
	}
	m.ask(ctx, joined(split(c.opt.Path)), 0)
	m.ask(ctx, "/", seenTime)
}

// open mounts o.Path and goes to its end: by MOUNT as far as the server mounts it, or as the
// options' export goes, and by LOOKUP for the rest.
func (c *Conn) open(ctx context.Context, m *mountd) error {
	defer c.asking.Wait()
	parts := split(c.opt.Path)
	var root vfs.Handle
	var n int
	var err error
	if c.opt.Export != "" {
		end := split(c.opt.Export)
		root, _, err = c.climb(ctx, m, end, 1)
		n = len(end)
	} else {
		root, n, err = c.find(ctx, m, parts)
	}
	if err != nil {
		return err
	}
	return c.descend(ctx, root, parts[n:], meansDir(c.opt.Path))
}

// find mounts as much of the path as the server does, and returns how many parts that are. Two
// cases need "/", so it is asked for in advance: the parent of a name that cannot be mounted, and
// the test whether the server looks at the path at all.
func (c *Conn) find(ctx context.Context, m *mountd, parts []string) (root vfs.Handle, n int, err error) {
	if len(parts) == 0 {
		return c.climb(ctx, m, parts, 1)
	}
	t := m.ask(ctx, "/", seenTime)
	root, n, err = c.climb(ctx, m, parts, maxClimb)
	if err == nil && n == len(parts) {
		n, err = c.seen(ctx, m, t, root, parts)
	}
	t.stop() // the answer is not needed any more
	_, terr := t.answer()
	c.looked = terr == nil && c.mounted != "/"
	return root, n, err
}

// seen returns how many of the parts the server has descended when it mounted all of them. Some
// servers ignore the path: they have one file system, and give its root for every path. Such a
// server gives the same handle for "/". Then the longest export that the path lies in is what was
// mounted; without one, the whole path is looked up below the root, if it is there.
func (c *Conn) seen(ctx context.Context, m *mountd, t *asked, root vfs.Handle, parts []string) (int, error) {
	top, err := t.answer()
	if err != nil {
		return len(parts), ctx.Err() // it looks at the path, and does not export "/", like most servers
	}
	if top != root {
		return len(parts), nil
	}
	exports, _ := m.exports(ctx) // those that are known
	if n := within(exports, parts); n > 0 {
		return n, nil
	}
	path := joined(parts)
	_, err = vfs.Resolve(ctx, vfs.Inside(c.fs), root, path[1:], true)
	if errors.Is(err, vfs.ErrNoEnt) || errors.Is(err, vfs.ErrNotDir) {
		return 0, fmt.Errorf("nfs: mount %q: the server gives the same directory for this path as for \"/\", and the path is not there: "+
			"say with export= where the export ends, such as export=/%s: %w", path, parts[0], err)
	}
	if err != nil {
		return 0, fmt.Errorf("nfs: mount %q: %w", path, err)
	}
	c.mounted = "/"
	return 0, nil
}

// within returns how many of the parts are the longest export that they lie in; 0 if they lie in
// none, or in "/".
func within(exports []Export, parts []string) (n int) {
	for i := range exports {
		end := split(exports[i].Path)
		if len(end) <= len(parts) && slices.Equal(end, parts[:len(end)]) {
			n = max(n, len(end))
		}
	}
	return n
}
