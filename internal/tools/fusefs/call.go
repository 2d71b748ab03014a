//go:build linux

package fusefs

import (
	"context"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/nfsbox/nfsbox/vfs"
)

// call is one request: its context, and the file system as its process sees it.
type call struct {
	context.Context
	fs  vfs.FS
	now time.Time
	end context.CancelFunc
}

// begin begins a request. It has to be ended.
func (m *Mount) begin(cancel <-chan struct{}, h *fuse.InHeader) call {
	ctx, end := context.WithCancel(m.base)
	now := time.Now()
	go interruptible(ctx, end, cancel, h.Pid)
	return call{ctx, m.callers.view(h.Caller, now), now, end}
}

// interruptible ends ctx when the kernel has interrupted the request: at once if the process dies, else after grace.
func interruptible(ctx context.Context, end context.CancelFunc, cancel <-chan struct{}, pid uint32) {
	select {
	case <-ctx.Done():
		return
	case <-cancel:
	}
	defer end()
	over := time.NewTimer(grace)
	defer over.Stop()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for !killed(pid) {
		select {
		case <-ctx.Done():
			return
		case <-over.C:
			return
		case <-tick.C:
		}
	}
}

// closing begins a FLUSH. Since nothing interrupts a process that is on its way out, such a one is looked for: it
// waits no longer than grace if it was killed, and than exitPatience if it ends by itself.
func (m *Mount) closing(cancel <-chan struct{}, h *fuse.InHeader) call {
	c := m.begin(cancel, h)
	pid := h.Pid // h is another request's when this one has been answered
	go func() {
		begun := time.Now()
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for {
			select {
			case <-c.Done():
				return
			case <-tick.C:
			}
			waited := time.Since(begun)
			if waited < grace {
				continue
			}
			if out, bySignal := exiting(pid); out && (bySignal || waited > exitPatience) {
				c.end()
				return
			}
		}
	}()
	return c
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
