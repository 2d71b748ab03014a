package localio

import (
	"errors"

	"github.com/nfsbox/nfsbox/internal/client/localio/session"
	"github.com/nfsbox/nfsbox/proto/localio"
)

// queue has put add to what is to be sent, and that sent by somebody else.
func (c *client) queue(put func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return
	}
	put()
	c.wake()
}

// wake finds somebody to send, if nobody does. c.mu is held, and the client is not
// gone: so end is still to come, and wg not waited for yet.
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

// send sends what is to be sent, unless somebody does.
func (c *client) send() {
	c.mu.Lock()
	idle := !c.sending
	c.sending = true
	c.mu.Unlock()
	if idle {
		c.sendAll()
	}
}

// sendAll sends until there is nothing left, as the only one: so what is said of a
// file stays in its order. A client that does not take it loses its session.
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

// next fills m with what is to be sent next, and returns whose answers these are.
// Those that are lost were revoked too early for their files to be sent. fd is
// what goes beside the rest. If there is nothing, ok is false, and nobody sends.
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

// settle looks once more at what is about to be sent: from here on a revocation
// is a message of its own, which follows. It returns copies of the answers whose
// files were lost before. c.mu is held.
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

// sendOpened sends answers, and with them the files, which nobody needs any more
// then.
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

// withhold keeps the files of answers back: too many are on their way. It may be
// that one was revoked since; the client ignores what it hears of a file that it
// does not have.
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
