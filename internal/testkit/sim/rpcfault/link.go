package rpcfault

import (
	"errors"
	"io"
	"net"
	"sync"
)

// link is one connection of a client and, behind it, one to the server.
type link struct {
	p    *Proxy
	done chan struct{} // closed when the link is

	toServer, toClient lane

	mu      sync.Mutex // guards what follows
	server  net.Conn   // nil until it is there
	closed  bool
	held    bool            // nothing is passed on any more
	pending map[uint32]owed // replies to come, by number
	parked  []*parked       // replies that wait to be overtaken
}

// owed is a reply that has not come yet.
type owed struct {
	call   Head
	faults []firing // to apply to it
}

// run passes messages on until both sides have ended.
func (l *link) run() {
	defer l.p.wg.Done()
	defer l.forget()
	defer l.close(false)
	if !l.connect() {
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() { l.pump(l.toClient.to, &l.toServer, l.call) })
	wg.Go(func() { l.pump(l.toServer.to, &l.toClient, l.reply) })
	wg.Wait()
}

func (l *link) connect() bool {
	c, err := l.p.opt.Upstream(l.p.ctx)
	if err != nil {
		l.p.count(func(s *Stats) { s.Unreachable++ })
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		cut(c, true)
		return false
	}
	l.server, l.toServer.to = c, c
	return true
}

func (l *link) forget() {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	delete(l.p.links, l)
}

// pump passes the records of from to pass. After the end of from it ends the lane, behind
// waiting messages; an error ends the link.
func (l *link) pump(from net.Conn, to *lane, pass func(*Message)) {
	defer to.late.Wait()
	for {
		rec, err := readRecord(from)
		if err != nil {
			if errors.Is(err, errRecord) {
				l.p.count(func(s *Stats) { s.Malformed++ })
			}
			if !errors.Is(err, io.EOF) {
				l.close(false)
				return
			}
			to.late.Wait()
			to.end()
			return
		}
		m := &Message{Record: rec, Claim: -1}
		var ok bool
		if m.Head, ok = parseHead(rec); !ok {
			l.p.count(func(s *Stats) { s.Unparsed++ })
		}
		pass(m)
	}
}

func (l *link) call(m *Message) {
	if m.Program == 0 || m.Reply {
		l.toServer.send(m, nil)
		return
	}
	var now, later []firing
	for _, f := range l.p.decide(m) {
		if f.Kind.ofReply() {
			later = append(later, f)
		} else {
			now = append(now, f)
		}
	}
	if l.remember(m, later) {
		return
	}
	for _, f := range now {
		switch f.Kind {
		case Hold:
			l.p.injected(Hold)
			l.hold()
			return
		case Refuse:
			l.p.injected(Refuse)
			l.p.Refuse(f.Wait)
			l.close(f.Reset)
			return
		case CutBefore:
			l.p.injected(CutBefore)
			l.close(f.Reset)
			return
		case DropCall:
			l.p.injected(DropCall)
			return
		}
	}
	l.toServer.send(m, now)
}

// remember records a call's reply to come, and its faults. held reports that the link drops everything.
func (l *link) remember(m *Message, later []firing) (held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) < maxPending {
		l.pending[m.XID] = owed{m.Head, later}
	}
	return l.held
}

func (l *link) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = true
}

func (l *link) reply(m *Message) {
	l.mu.Lock()
	o, known := l.pending[m.XID]
	held := l.held
	if m.Reply {
		delete(l.pending, m.XID)
	}
	l.mu.Unlock()
	known = known && m.Reply
	l.p.count(func(s *Stats) {
		s.Replies++
		if !known {
			s.Unmatched++
		}
	})
	if held {
		return
	}
	if !known {
		l.toClient.send(m, nil)
		return
	}
	m.Program, m.Version, m.Proc = o.call.Program, o.call.Version, o.call.Proc
	for _, f := range o.faults {
		if f.Kind == DropReply {
			l.p.injected(DropReply)
			return
		}
	}
	l.toClient.send(m, o.faults)
}

// close ends both connections; reset says that they end with a RST.
func (l *link) close(reset bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	close(l.done)
	cut(l.toClient.to, reset)
	if l.server != nil {
		cut(l.server, reset)
	}
}

// cut closes a connection. An error says that it was closed before.
func cut(c net.Conn, reset bool) {
	if reset {
		switch c := c.(type) {
		case interface{ SetLinger(sec int) error }: // *net.TCPConn
			_ = c.SetLinger(0)
		case interface{ Reset() }: // *sim.Conn
			c.Reset()
		}
	}
	_ = c.Close()
}

// parked is a reply that waits for others to overtake it.
type parked struct {
	left int // how many are to come before
	free chan struct{}
}

// park adds a reply that waits for n others.
func (l *link) park(n int) *parked {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := &parked{left: max(n, 1), free: make(chan struct{})}
	l.parked = append(l.parked, w)
	return w
}

// overtaken tells parked replies that a reply was sent.
func (l *link) overtaken() {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := l.parked[:0]
	for _, w := range l.parked {
		if w.left--; w.left == 0 {
			close(w.free)
		} else {
			rest = append(rest, w)
		}
	}
	clear(l.parked[len(rest):])
	l.parked = rest
}
