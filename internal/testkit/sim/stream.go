package sim

import (
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// StreamBuffer bounds the bytes on their way in one direction of a [Conn]. At
// the bound Write blocks until the other end has read some.
const StreamBuffer = 256 << 10

// errEOF is what read returns at the end, named so that Conn need not dress it.
var errEOF = io.EOF

// Faults says what befalls the bytes of one direction of a connection. The zero
// Faults leaves them alone.
type Faults struct {
	// Latency is how long a byte is on its way.
	Latency time.Duration
	// Bandwidth, in bytes per second, spaces bytes out; 0 is unlimited. A byte
	// arrives when all of its Write has been sent at this speed.
	Bandwidth int64
	// Chop lets every Read return between 1 and Chop bytes, by the seed; 0
	// leaves Reads as long as they can be.
	Chop int
	// CutAfter resets the connection once so many bytes have been sent since
	// the faults were set; they arrive, and no more. 0 never does. To cut at
	// once there is [Conn.Reset].
	CutAfter int64
	// StallAfter holds back what is sent after so many bytes since the faults
	// were set, and the end of the stream too, until other faults are set. 0
	// never does. To stall at once there is [Network.Partition].
	StallAfter int64
}

// segment is what one Write sent: it can be read from due on.
type segment struct {
	b   []byte
	due time.Time
}

// stream is one direction of a connection. A condition variable wakes every
// goroutine that waits; timers do the same when a byte falls due or a deadline passes.
type stream struct {
	mu   sync.Mutex
	cond *sync.Cond
	rand *Rand

	faults Faults
	sent   int64 // since faults were set

	queue   []segment // on their way, oldest first
	held    [][]byte  // stalled by StallAfter
	queued  int       // bytes in queue and held
	free    time.Time // when the line has sent all that was written
	fin     bool      // no more will be written
	finDue  time.Time
	parted  bool // nothing arrives now
	wclosed bool // the writing end was closed
	rclosed bool // the reading end was closed
	rst     bool // reset: both ends fail
	cut     bool // reset behind the queue: the reading end gets that first

	rdead, wdead   time.Time
	rtimer, wtimer *time.Timer
	due            *time.Timer // wakes the reader when a segment falls due

	writes, wbytes, reads, rbytes int64
}

func newStream(r *Rand, f Faults) *stream {
	s := &stream{rand: r, faults: f}
	s.cond = sync.NewCond(&s.mu)
	return s
}

func expired(t time.Time) bool { return !t.IsZero() && !time.Now().Before(t) }

func (s *stream) write(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		if n > 0 {
			s.writes++
			s.wbytes += int64(n)
		}
	}()
	for {
		if err := s.writeErr(); err != nil {
			return n, err
		}
		if n == len(p) {
			return n, nil
		}
		if room := StreamBuffer - s.queued; room > 0 {
			n += s.send(p[n:min(len(p), n+room)])
			continue
		}
		s.cond.Wait()
	}
}

// writeErr says why nothing can be written now.
func (s *stream) writeErr() error {
	switch {
	case s.wclosed:
		return net.ErrClosed
	case s.rst || s.cut:
		return syscall.ECONNRESET
	case s.fin || s.rclosed:
		return syscall.EPIPE
	case expired(s.wdead):
		return os.ErrDeadlineExceeded
	}
	return nil
}

// send puts p, or as much of it as goes before a cut, on the line. s.mu is held.
func (s *stream) send(p []byte) int {
	f := &s.faults
	if f.CutAfter > 0 && s.sent+int64(len(p)) >= f.CutAfter {
		p = p[:f.CutAfter-s.sent]
		s.cut = true
	}
	if len(p) == 0 {
		s.cond.Broadcast()
		return 0
	}
	pass := len(p)
	if f.StallAfter > 0 {
		pass = int(min(max(f.StallAfter-s.sent, 0), int64(len(p))))
	}
	s.sent += int64(len(p))
	s.queued += len(p)
	s.enqueue(p[:pass])
	if pass < len(p) {
		s.held = append(s.held, slices.Clone(p[pass:]))
	}
	s.cond.Broadcast()
	return len(p)
}

// enqueue lets a copy of p start on its way.
func (s *stream) enqueue(p []byte) {
	if len(p) == 0 {
		return
	}
	s.queue = append(s.queue, segment{b: slices.Clone(p), due: s.arrival(len(p))})
}

// arrival says when n more bytes will have arrived.
func (s *stream) arrival(n int) time.Time {
	f := &s.faults
	if f.Latency == 0 && f.Bandwidth == 0 && s.free.IsZero() {
		return time.Time{}
	}
	now := time.Now()
	if s.free.Before(now) {
		s.free = now
	}
	if f.Bandwidth > 0 {
		s.free = s.free.Add(time.Duration(float64(n) / float64(f.Bandwidth) * float64(time.Second)))
	}
	return s.free.Add(f.Latency)
}

func (s *stream) read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.rclosed {
			return 0, net.ErrClosed
		}
		if s.rst {
			return 0, syscall.ECONNRESET
		}
		if expired(s.rdead) {
			return 0, os.ErrDeadlineExceeded
		}
		if len(p) == 0 {
			return 0, nil
		}
		if n, err := s.take(p); n > 0 || err != nil {
			return n, err
		}
		s.cond.Wait()
	}
}

// take reads what is due, or says that there will be nothing more. 0, nil means
// that the reader must wait.
func (s *stream) take(p []byte) (int, error) {
	if s.parted {
		return 0, nil
	}
	switch {
	case len(s.queue) > 0:
		if !s.isDue(s.queue[0].due) {
			return 0, nil
		}
		return s.copyOut(p), nil
	case s.cut:
		return 0, syscall.ECONNRESET
	case s.fin && !s.stalled() && s.isDue(s.finDue):
		return 0, errEOF
	}
	return 0, nil
}

func (s *stream) stalled() bool { return s.faults.StallAfter > 0 && s.sent >= s.faults.StallAfter }

// isDue reports whether t has come, and sees to it that the reader wakes if not.
func (s *stream) isDue(t time.Time) bool {
	wait := time.Until(t)
	if t.IsZero() || wait <= 0 {
		return true
	}
	if s.due != nil {
		s.due.Stop()
	}
	s.due = time.AfterFunc(wait, s.wake)
	return false
}

// copyOut moves due bytes to p: as many as fit, or as the seed allows.
func (s *stream) copyOut(p []byte) int {
	if s.faults.Chop > 0 {
		p = p[:min(len(p), 1+s.rand.IntN(s.faults.Chop))]
	}
	n := 0
	for n < len(p) && len(s.queue) > 0 && s.isDue(s.queue[0].due) {
		k := copy(p[n:], s.queue[0].b)
		n += k
		if s.queue[0].b = s.queue[0].b[k:]; len(s.queue[0].b) == 0 {
			s.queue = s.queue[1:]
		}
	}
	s.queued -= n
	s.reads++
	s.rbytes += int64(n)
	s.cond.Broadcast()
	return n
}

func (s *stream) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cond.Broadcast()
}

// closeWrite ends the stream; the writing end stays open.
func (s *stream) closeWrite() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wclosed {
		return net.ErrClosed
	}
	s.end()
	return nil
}

// finish ends the stream and closes the writing end.
func (s *stream) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
	s.wclosed = true
	s.stopTimer(&s.wtimer)
}

func (s *stream) end() {
	if !s.fin {
		s.fin, s.finDue = true, s.arrival(0)
	}
	s.cond.Broadcast()
}

// closeRead closes the reading end and reports whether bytes were left unread.
func (s *stream) closeRead() (unread bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rclosed {
		return false, net.ErrClosed
	}
	unread = s.queued > 0
	s.rclosed = true
	s.drop()
	s.stopTimer(&s.rtimer)
	s.cond.Broadcast()
	return unread, nil
}

// reset makes both ends fail, and drops what is on its way.
func (s *stream) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rst = true
	s.drop()
	s.stopTimer(&s.rtimer)
	s.stopTimer(&s.wtimer)
	s.cond.Broadcast()
}

func (s *stream) wasCut() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cut
}

// cutBehind lets the reading end have what is on its way, and then a reset.
func (s *stream) cutBehind() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = true
	s.cond.Broadcast()
}

// drop forgets what is on its way.
func (s *stream) drop() {
	s.queue, s.held, s.queued = nil, nil, 0
	s.stopTimer(&s.due)
}

func (s *stream) stopTimer(t **time.Timer) {
	if *t != nil {
		(*t).Stop()
		*t = nil
	}
}

func (s *stream) setReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rclosed {
		return net.ErrClosed
	}
	s.rdead = t
	s.arm(&s.rtimer, t)
	return nil
}

func (s *stream) setWriteDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wclosed {
		return net.ErrClosed
	}
	s.wdead = t
	s.arm(&s.wtimer, t)
	return nil
}

// arm lets timer wake everyone at the deadline.
func (s *stream) arm(timer **time.Timer, deadline time.Time) {
	s.stopTimer(timer)
	if !deadline.IsZero() {
		*timer = time.AfterFunc(time.Until(deadline), s.wake)
	}
	s.cond.Broadcast()
}

func (s *stream) setFaults(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.held
	s.faults, s.sent, s.held = f, 0, nil
	for _, b := range held {
		s.queued -= len(b)
		s.send(b)
	}
	s.cond.Broadcast()
}

// hold stops or resumes all delivery.
func (s *stream) hold(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parted = on
	s.cond.Broadcast()
}

func (s *stream) written() (calls, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes, s.wbytes
}

func (s *stream) taken() (calls, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads, s.rbytes
}
