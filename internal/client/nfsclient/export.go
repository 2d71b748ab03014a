package nfsclient

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nfsbox/nfsbox/vfs"
)

// checkExport is nil for an export that the path lies in, or none.
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

// begin asks MOUNT for all that open will ask for in any case.
func (c *Conn) begin(ctx context.Context, m *mountd) {
	if c.opt.Export != "" {
		m.ask(ctx, joined(split(c.opt.Export)), 0)
		return
	}
	m.ask(ctx, joined(split(c.opt.Path)), 0)
	m.ask(ctx, "/", seenTime)
}

// open mounts o.Path and goes to where it leads: as far as the server mounts it, or as
// the options say that the export goes, by MOUNT, and the rest by LOOKUP.
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

// find mounts as much of the path as the server does, and returns how many parts that
// are. Two of its questions may be for "/", which is therefore asked at once: what holds
// a name that cannot be mounted, and whether the server looks at a path that can.
func (c *Conn) find(ctx context.Context, m *mountd, parts []string) (root vfs.Handle, n int, err error) {
	if len(parts) == 0 {
		return c.climb(ctx, m, parts, 1)
	}
	t := m.ask(ctx, "/", seenTime)
	root, n, err = c.climb(ctx, m, parts, maxClimb)
	if err == nil && n == len(parts) {
		n, err = c.seen(ctx, m, t, root, parts)
	}
	t.stop() // what needed the answer has it
	_, terr := t.answer()
	c.looked = terr == nil && c.mounted != "/"
	return root, n, err
}

// seen is how many of the parts the server has gone down when it mounted all of them.
// Some servers do not look at the path: they have one file system, and give its root
// for whatever is asked, which is not what the path names. Such a server gives the same
// handle for "/". Then the list of exports says where the export ends, which is what is
// meant for their one file system; or else the path is one within it, if it is there.
func (c *Conn) seen(ctx context.Context, m *mountd, t *asked, root vfs.Handle, parts []string) (int, error) {
	top, err := t.answer()
	if err != nil {
		return len(parts), ctx.Err() // it looks at the path: most servers do not export "/"
	}
	if top != root {
		return len(parts), nil
	}
	exports, err := m.exports(ctx)
	if err == nil {
		if n := within(exports, parts); n > 0 {
			return n, nil
		}
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

// within is how many of the parts are the longest export that they lie in; 0 if they
// lie in none, or in "/".
func within(exports []Export, parts []string) (n int) {
	for i := range exports {
		end := split(exports[i].Path)
		if len(end) <= len(parts) && slices.Equal(end, parts[:len(end)]) {
			n = max(n, len(end))
		}
	}
	return n
}
