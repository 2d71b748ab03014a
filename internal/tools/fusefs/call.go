//go:build linux

package fusefs

import (
	"context"
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/nfsbox/nfsbox/vfs"
)

// call is one request: its context, and the file system as its process sees it.
//
// As a context it costs little while nobody waits for its end. The client below asks it (Err), and only for a wait (Done) is
// a channel made. Nothing but the clock of flights looks whether the kernel has interrupted it.
type call struct {
	fs   vfs.FS
	now  time.Time
	base context.Context // of all requests

	flights *flights        // where it is under way; nil: nowhere
	place   int             // there; guarded by flights.mu, as is cancel
	cancel  <-chan struct{} // closed by the kernel's INTERRUPT; another request's when this one has ended; nil: it has come
	pid     uint32
	closes  bool // it is a FLUSH

	mu    sync.Mutex
	inner context.Context // from the first Done on; its end is this one's
	stop  context.CancelFunc
	over  bool
}

// begin begins a request. It has to be ended.
func (m *Mount) begin(cancel <-chan struct{}, h *fuse.InHeader) *call {
	now := time.Now()
	c := &call{fs: m.callers.view(h.Caller, now), now: now, base: m.base, flights: &m.flights, cancel: cancel, pid: h.Pid}
	m.flights.add(c)
	return c
}

// closing begins a FLUSH. Since nothing interrupts a process that is on its way out, such a one is looked for: it
// waits no longer than grace if it was killed, and than exitPatience if it ends by itself.
func (m *Mount) closing(cancel <-chan struct{}, h *fuse.InHeader) *call {
	c := m.begin(cancel, h)
	m.flights.closing(c)
	return c
}

// end ends the request, and what waits in its context.
func (c *call) end() {
	c.flights.remove(c)
	c.finish()
}

// finish ends the context.
func (c *call) finish() {
	c.mu.Lock()
	c.over = true
	stop := c.stop
	c.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// Deadline implements context.Context: there is none.
func (c *call) Deadline() (at time.Time, ok bool) { return c.base.Deadline() }

// Done implements context.Context.
func (c *call) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner == nil {
		c.inner, c.stop = context.WithCancel(c.base)
		if c.over {
			c.stop()
		}
	}
	return c.inner.Done()
}

// Err implements context.Context.
func (c *call) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return context.Canceled
	}
	return c.base.Err()
}

// Value implements context.Context. Package context finds inner by it, so that contexts made of this one take no goroutine.
func (c *call) Value(key any) any {
	c.mu.Lock()
	inner := c.inner
	c.mu.Unlock()
	if inner != nil {
		return inner.Value(key)
	}
	return c.base.Value(key)
}

// node is the object of a request, and its handle.
func (m *Mount) node(id uint64) (*node, vfs.Handle, bool) {
	n := m.nodes.get(id)
	if n == nil {
		return nil, vfs.Handle{}, false
	}
	return n, n.handle(), true
}

// attr are all attributes of h that the kernel needs: a, if they are there.
func (c *call) attr(h vfs.Handle, a *vfs.Attr) (vfs.Attr, error) {
	if a != nil && a.Has(needed) {
		return *a, nil
	}
	got, err := c.fs.GetAttr(c, h, vfs.MaskV3)
	if err == nil && !got.Has(needed) {
		err = vfs.ErrServerFault
	}
	return got, err
}

// entry tells the kernel of the object h, which is called name in dir.
func (m *Mount) entry(c *call, dir *node, name string, h vfs.Handle, a *vfs.Attr, out *fuse.EntryOut) fuse.Status {
	full, err := c.attr(h, a)
	if err != nil {
		return errno(c, err)
	}
	m.enter(c, dir, name, h, &full, out)
	return fuse.OK
}

// enter is entry with attributes that are complete.
func (m *Mount) enter(c *call, dir *node, name string, h vfs.Handle, a *vfs.Attr, out *fuse.EntryOut) {
	n := m.nodes.look(h, dir, name)
	out.NodeId, out.Generation = n.id, m.generation
	out.SetAttrTimeout(n.tell(a, c.now, &m.opt.Times))
	out.SetEntryTimeout(dir.entryTime(&m.opt, true))
	fill(&out.Attr, a, m.fsid)
	n.numbered(out.Attr.Ino)
}
