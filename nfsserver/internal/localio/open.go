package localio

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/base/session"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/localio"
	"github.com/nfsbox/nfsbox/vfs"
)

// request is a session_open_file that borrows nothing.
type request struct {
	id     uint32
	handle vfs.Handle
	bad    error // why handle is not valid
	access vfs.Share
	caller vfs.Caller
}

// answer is the result of a request. Its holder closes the file.
type answer struct {
	localio.SessionOpenedFile
	file *os.File // SESSION_OK: to be sent
}

// land closes the file of an answer: the client has a duplicate of it, or nothing.
func (c *client) land(a *answer) error {
	if a.file == nil {
		return nil
	}
	c.s.aloft.give(c.peer.UID, 1)
	return a.file.Close()
}

// openAll queues files to be opened, and waits while the queue is full.
func (c *client) openAll(files []localio.SessionOpenFile) error {
	all := make([]request, len(files))
	for i := range files {
		f, r := &files[i], &all[i]
		if f.Access == 0 || f.Access&^(localio.SESSION_READ|localio.SESSION_WRITE) != 0 {
			return fmt.Errorf("OPEN of a file for %#x", f.Access)
		}
		*r = request{id: f.Id, access: vfs.Share(f.Access), caller: vfs.Caller{UID: f.Uid, GID: f.Gid, Groups: slices.Clone(f.Groups)}}
		r.handle, r.bad = vfs.MakeHandle(f.Handle)
	}
	for !c.line(all) {
		select {
		case <-c.room:
		case <-c.ctx.Done():
			return c.ctx.Err()
		}
	}
	return nil
}

// line queues requests. It is false, and queues none, if there would be more than
// maxAsked.
func (c *client) line(all []request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.asked)+len(all) > maxAsked {
		return false
	}
	c.asked = append(c.asked, all...)
	c.begin()
	return true
}

// begin starts to open the first files of the queue, each in a goroutine of its own. If
// the client is gone it starts none, since wg may be waited for. c.mu is held.
func (c *client) begin() {
	if c.gone {
		c.asked = nil
	}
	for len(c.asked) > 0 && c.opening < maxOpening {
		r := c.asked[0]
		c.asked = c.asked[1:]
		c.opening++
		c.s.wg.Add(1)
		go func() {
			defer c.s.wg.Done()
			c.answer(c.open(&r))
		}()
	}
	select {
	case c.room <- struct{}{}: // the reader tries again
	default:
	}
}

// open opens a file, which then counts in Service.aloft.
func (c *client) open(r *request) *answer {
	a := &answer{SessionOpenedFile: localio.SessionOpenedFile{Id: r.id}}
	if c.foreign.Load() || !mayClaim(&c.peer, &r.caller) {
		a.Why = localio.SESSION_IDENTITY
		return a
	}
	if r.bad != nil {
		c.refuse(a, r.bad)
		return a
	}
	view, err := c.view(&r.caller)
	if err != nil {
		c.refuse(a, err)
		return a
	}
	if !c.s.aloft.take(c.peer.UID) {
		a.Why = localio.SESSION_CROWDED
		return a
	}
	if c.openBy(view, r, a); a.file == nil {
		c.s.aloft.give(c.peer.UID, 1)
	}
	return a
}

// openBy takes a slot, begins to watch the file, and only then checks whether it may
// be opened, so that no change between is missed.
func (c *client) openBy(view *export.View, r *request, a *answer) {
	number, generation, ok := c.reserve()
	if !ok {
		a.Why = localio.SESSION_CROWDED
		return
	}
	var attr vfs.Attr
	stop, err := view.Watch(r.handle, func(ch vfs.Change) { c.revoke(number, generation, ch) })
	if err == nil {
		c.watched(number, generation, stop)
		a.file, attr, err = view.OpenHost(c.ctx, r.handle, c.how(r))
	}
	if err != nil {
		c.release(number, generation, stateOpening, stateLost)
		c.refuse(a, err)
		return
	}
	a.Slot, a.Generation, a.Fsid, a.Fileid = number, generation, attr.FSID, attr.FileID
}

func (c *client) how(r *request) *vfs.HostOpen {
	return &vfs.HostOpen{
		Access: r.access, Trusted: c.s.o.Trusted,
		Peer: vfs.Caller{UID: c.peer.UID, GID: c.peer.GID, Groups: c.peer.Groups},
	}
}

// view is the caller's view by the RPC connection, which remembers views.
func (c *client) view(caller *vfs.Caller) (*export.View, error) {
	claim := oncrpc.AuthSys{UID: caller.UID, GID: caller.GID, GIDs: caller.Groups}
	auth, err := claim.Auth()
	if err != nil {
		return nil, err
	}
	v, err := c.conn.Load().View(auth)
	if err != nil {
		return nil, err
	}
	return v.FS, nil
}

// mayClaim reports whether a process may act for caller: it is root, or the same user and
// in all of caller's groups.
func mayClaim(p *session.Peer, caller *vfs.Caller) bool {
	if p.UID == 0 {
		return true
	}
	foreign := func(g uint32) bool { return !p.InGroup(g) }
	return p.UID == caller.UID && p.InGroup(caller.GID) && !slices.ContainsFunc(caller.Groups, foreign)
}

func (c *client) refuse(a *answer, err error) {
	st, known := vfs.StatusOf(err)
	switch {
	case st == vfs.ErrNotSupp:
		a.Why = localio.SESSION_NOT_TO_PASS
	case st == vfs.ErrNoDev:
		a.Why = localio.SESSION_NO_FILE
	case known && st != vfs.ErrBusy:
		a.Why, a.Status = localio.SESSION_REFUSED, uint32(st)
	default:
		a.Why = localio.SESSION_CROWDED // the client uses RPC, which reports the error
		if !known && !errors.Is(err, context.Canceled) {
			c.s.o.Log.Warn("the file system failed", slog.String("procedure", "OPEN of LOCALIO"), slog.Any("error", err))
		}
	}
}

func (c *client) answer(a *answer) {
	c.mu.Lock()
	gone, company := c.gone, c.opening > 1
	if !gone {
		c.answers = append(c.answers, a)
	}
	c.mu.Unlock()
	if gone {
		c.discard(a)
		return
	}
	if company {
		runtime.Gosched() // other answers may be ready at once: one message for all
	}
	c.send()
}

// discard closes the file of an answer that is not sent.
func (c *client) discard(a *answer) {
	if err := c.land(a); err != nil {
		c.s.o.Log.Warn("closing a file failed", slog.Any("error", err))
	}
}
