package localio

import (
	"errors"

	"github.com/nfsbox/nfsbox/internal/base/session"
	"github.com/nfsbox/nfsbox/proto/localio"
)

// queue calls put, which adds to what is to be sent, and has another goroutine send it.
func (c *client) queue(put func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return
	}
	put()
	c.wake()
}

// wake starts a goroutine that sends, if there is none. c.mu is held, and the client is
// not gone, so wg is not waited for yet.
func (c *client) wake() {
	if c.sending {
		return
	}
	c.sending = true
	c.s.wg.Add(1)
	go func() {
		defer c.s.wg.Done()
		c.sendAll()
	}()
}

// send sends what is to be sent, unless another goroutine does.
func (c *client) send() {
	c.mu.Lock()
	idle := !c.sending
	c.sending = true
	c.mu.Unlock()
	if idle {
		c.sendAll()
	}
}

// sendAll sends until there is nothing left. Only one goroutine does, so messages about a
// file stay in order. A client that does not receive them loses its session.
func (c *client) sendAll() {
	var m localio.SessionMessage
	for {
		answers, lost, fd, ok := c.next(&m)
		for _, a := range lost {
			c.release(a.Slot, a.Generation, stateLost)
			c.discard(a)
		}
		if !ok {
			return
		}
		var err error
		if m.Type == localio.SESSION_OPENED {
			err = c.sendOpened(&m, answers)
		} else {
			err = c.c.Send(&m, fd...)
		}
		if err != nil {
			c.fail(err)
		}
	}
}

// next fills m with what is to be sent next, and returns the answers in it. Those in lost
// were revoked before their files were sent. fd is a descriptor to send with other
// messages. If there is nothing to send, ok is false, and c.sending is cleared.
func (c *client) next(m *localio.SessionMessage) (answers, lost []*answer, fd []int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case len(c.greetings) > 0:
		*m, c.greetings = c.greetings[0], c.greetings[1:]
		if m.Type == localio.SESSION_WELCOME {
			fd = []int{c.page.FD()}
		}
	case len(c.revoked) > 0:
		n := min(len(c.revoked), localio.SESSION_MAX_OPENS)
		*m = localio.SessionMessage{Type: localio.SESSION_REVOKED, Revoked: localio.SessionFiles{Files: c.revoked[:n:n]}}
		c.revoked = c.revoked[n:]
	case len(c.answers) > 0:
		n := min(len(c.answers), localio.SESSION_MAX_OPENS)
		answers, c.answers = c.answers[:n:n], c.answers[n:]
		*m = localio.SessionMessage{Type: localio.SESSION_OPENED}
		lost = c.settle(answers)
	default:
		c.sending = false
		return nil, nil, nil, false
	}
	return answers, lost, fd, true
}

// settle checks the answers that are about to be sent: after it, a revocation is a message
// of its own, which follows. It returns copies of the answers whose files were revoked
// before. c.mu is held.
func (c *client) settle(answers []*answer) (lost []*answer) {
	for _, a := range answers {
		if a.Why != localio.SESSION_OK {
			continue
		}
		if sl := c.find(a.Slot, a.Generation); sl != nil && sl.state == stateOpening {
			sl.state = stateOpen
			c.s.n.files.Add(1)
			continue
		}
		gone := *a
		lost = append(lost, &gone)
		*a = crowded(a.Id)
	}
	return lost
}

func crowded(id uint32) answer {
	return answer{SessionOpenedFile: localio.SessionOpenedFile{Id: id, Why: localio.SESSION_CROWDED}}
}

// sendOpened sends answers with their files, and closes the files.
func (c *client) sendOpened(m *localio.SessionMessage, answers []*answer) error {
	err := c.sendFiles(m, answers)
	if errors.Is(err, session.ErrNoDescriptors) {
		c.withhold(answers)
		err = c.sendFiles(m, answers)
	}
	c.settled(answers, err == nil)
	return err
}

// sendFiles makes one message of answers and sends it, with all their files or not
// at all.
func (c *client) sendFiles(m *localio.SessionMessage, answers []*answer) error {
	m.Opened.Files = m.Opened.Files[:0]
	var fds []int
	for _, a := range answers {
		m.Opened.Files = append(m.Opened.Files, a.SessionOpenedFile)
		if a.file != nil {
			fds = append(fds, int(a.file.Fd()))
		}
	}
	return c.c.Send(m, fds...)
}

// withhold turns answers into refusals, since too many descriptors are in flight. A file
// may have been revoked meanwhile: the client ignores messages about files that it does
// not have.
func (c *client) withhold(answers []*answer) {
	for _, a := range answers {
		if a.file != nil {
			c.release(a.Slot, a.Generation, stateOpen, stateRevoked)
			c.discard(a)
			*a = crowded(a.Id)
		}
	}
}

// settled counts answers and makes room for as many requests.
func (c *client) settled(answers []*answer, sent bool) {
	for _, a := range answers {
		c.discard(a)
		switch {
		case !sent:
		case a.Why == localio.SESSION_OK:
			c.s.n.opened.Add(1)
		default:
			c.s.n.why[a.Why].Add(1)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opening -= len(answers)
	c.begin()
}
