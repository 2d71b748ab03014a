package localio

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/session"
	"github.com/nfsbox/nfsbox/proto/localio"
	"github.com/nfsbox/nfsbox/vfs"
)

// link is a session with the server.
type link struct {
	s      *shared
	conn   *session.Conn
	page   *session.View
	slots  int
	socket string // its path

	mu        sync.Mutex
	over      bool // no more requests are sent; mu guards this and what follows
	sending   bool
	lastID    uint32
	pending   map[uint32]*ask
	bySlot    map[uint32]*grant
	strangers map[claim]struct{} // callers that the server does not accept from us
	asks      []*ask             // to be sent
	closes    []localio.SessionFile
}

// ask sends a, with requests of other calls that come meanwhile. It returns false if the
// session has ended.
func (l *link) ask(a *ask) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over || len(l.pending) >= maxOpensAhead {
		return false
	}
	l.lastID++
	for l.pending[l.lastID] != nil {
		l.lastID++
	}
	a.id = l.lastID
	l.pending[a.id] = a
	l.asks = append(l.asks, a)
	l.send()
	return true
}

// giveBack tells the server that a descriptor is closed.
func (l *link) giveBack(f localio.SessionFile) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.closes = append(l.closes, f)
		l.send()
	}
}

// send sends what is queued, unless another call does so already. mu is held, but not during
// the sending. A socket that fails ends the session.
func (l *link) send() {
	if l.sending {
		return
	}
	l.sending = true
	for !l.over && len(l.closes)+len(l.asks) > 0 {
		m := l.message()
		l.mu.Unlock()
		err := l.conn.Send(m)
		l.mu.Lock()
		if err != nil {
			// The receiving goroutine completes the requests that wait.
			l.over = true
			_ = l.conn.Close()
		}
	}
	l.sending = false
}

// message takes what fits into one message from the queue: first what is given back, because that makes
// room. mu is held.
func (l *link) message() *localio.SessionMessage {
	m := new(localio.SessionMessage)
	if n := min(len(l.closes), localio.SESSION_MAX_OPENS); n > 0 {
		m.Type = localio.SESSION_CLOSE
		m.Close.Files = l.closes[:n:n]
		l.closes = l.closes[n:]
		return m
	}
	n := min(len(l.asks), localio.SESSION_MAX_OPENS)
	m.Type = localio.SESSION_OPEN
	m.Open.Files = make([]localio.SessionOpenFile, n)
	for i, a := range l.asks[:n] {
		who := &a.key.who
		m.Open.Files[i] = localio.SessionOpenFile{
			Id: a.id, Handle: a.n.h.Bytes(), Access: uint32(a.key.access),
			Uid: who.uid, Gid: who.gid, Groups: who.groups[:who.n],
		}
	}
	l.asks = l.asks[n:]
	return m
}

// receive takes the server's messages until the session ends, and returns why.
func (l *link) receive() error {
	for {
		var m localio.SessionMessage
		fds, err := l.conn.Receive(&m)
		full := errors.Is(err, session.ErrNoDescriptors)
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET):
			return errors.New("it was broken off")
		case err != nil && !full:
			return err
		}
		switch m.Type {
		case localio.SESSION_OPENED:
			err = l.opened(m.Opened.Files, fds, full)
		case localio.SESSION_REVOKED:
			l.revoked(m.Revoked.Files)
			err = nil
		default:
			err = fmt.Errorf("the server says %v in the middle", m.Type)
		}
		if err != nil {
			return err
		}
	}
}

// opened completes requests. There is a descriptor for each file that was opened, unless this
// process had no room for them. After an error it goes on to the end, so that all descriptors
// are closed.
func (l *link) opened(files []localio.SessionOpenedFile, fds []int, full bool) (err error) {
	for i := range files {
		o := &files[i]
		l.mu.Lock()
		a := l.pending[o.Id]
		delete(l.pending, o.Id)
		l.mu.Unlock()
		fd := -1
		if o.Why == localio.SESSION_OK && !full {
			fd, fds = fds[0], fds[1:]
		}
		switch {
		case a == nil:
			err = errors.New("the server opens what was not asked for")
			if fd >= 0 {
				err = errors.Join(err, closeFD(fd))
			}
		case o.Why != localio.SESSION_OK:
			a.refused(l.refusal(a, o))
		case full:
			l.giveBack(localio.SessionFile{Slot: o.Slot, Generation: o.Generation})
			l.s.shrink()
			a.refused(crowded(l, "this process can have no more descriptors"))
		default:
			err = errors.Join(err, l.install(a, o, fd))
		}
	}
	return err
}

// install makes a grant of fd for a.
func (l *link) install(a *ask, o *localio.SessionOpenedFile, fd int) error {
	err := checkFD(fd, a.key.access)
	l.mu.Lock()
	switch {
	case err != nil:
	case o.Slot < 1 || o.Slot > uint32(l.slots):
		err = fmt.Errorf("slot %d of %d", o.Slot, l.slots)
	case l.bySlot[o.Slot] != nil:
		err = fmt.Errorf("slot %d twice", o.Slot)
	}
	if err != nil {
		l.mu.Unlock()
		a.refused(crowded(l, "the server sends what was not asked for"))
		return errors.Join(fmt.Errorf("the server sends what was not asked for: %w", err), closeFD(fd))
	}
	g := &grant{
		l: l, n: a.n, fd: fd, slot: int(o.Slot), generation: o.Generation, key: a.key,
		id: identity{o.Fsid, o.Fileid},
	}
	l.bySlot[o.Slot] = g
	l.mu.Unlock()
	a.granted(g)
	return nil
}

// revoked retires what the server has revoked. The page says which files these are, because the message
// may be late.
func (l *link) revoked(files []localio.SessionFile) {
	for _, f := range files {
		l.mu.Lock()
		g := l.bySlot[f.Slot]
		l.mu.Unlock()
		if g != nil && !g.valid() {
			g.retire()
		}
	}
}

// forget empties g's slot.
func (l *link) forget(g *grant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bySlot[uint32(g.slot)] == g {
		delete(l.bySlot, uint32(g.slot))
	}
}

// end ends the session: all its grants become invalid.
func (l *link) end() {
	l.page.Close()
	_ = l.conn.Close() // an error loses nothing more
	l.mu.Lock()
	l.over = true
	asks, grants := l.pending, l.bySlot
	l.pending, l.bySlot, l.asks, l.closes = nil, nil, nil, nil
	l.mu.Unlock()
	for _, a := range asks {
		a.refused(crowded(l, "the session has ended"))
	}
	for _, g := range grants {
		g.retire()
	}
}

// refusal is the meaning of the server's answer o to a.
func (l *link) refusal(a *ask, o *localio.SessionOpenedFile) *refusal {
	switch o.Why {
	case localio.SESSION_REFUSED:
		s := vfs.Status(o.Status)
		return &refusal{l: l, why: "the server refuses the file: " + s.Error(), status: s, until: time.Now().Add(refusedTime)}
	case localio.SESSION_IDENTITY:
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.strangers) >= maxStrangers {
			clear(l.strangers)
		}
		l.strangers[a.key.who] = struct{}{}
		return l.stranger(&a.key.who)
	case localio.SESSION_NOT_TO_PASS:
		return &refusal{
			l: l, why: "the export keeps its files to itself, or a descriptor would give more than the caller may",
			until: time.Now().Add(refusedTime),
		}
	case localio.SESSION_NO_FILE:
		return &refusal{l: l, why: "what is exported are no files of this host"}
	}
	return crowded(l, "the server has no room for more files")
}

func (l *link) stranger(who *claim) *refusal {
	return &refusal{l: l, why: fmt.Sprintf("the server does not believe this process to be user %d with its groups", who.uid)}
}

// known reports whether the server may accept who, a user with its groups, from us.
func (l *link) known(who *claim) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.strangers[*who]
	return !ok
}
