package fileapi

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"connectrpc.com/connect"
)

// progress is how much a client has to send to get another Limits.Idle, and piece how
// much it has to receive, in bytes.
const (
	progress = 4 << 10
	piece    = 64 << 10
)

// pacer bounds one request: how slowly its client sends or receives, and the memory of
// what it sends. The timeouts of net/http are for whole requests, and a file of a
// terabyte needs none.
//
// Only waits for the client count, not those for the disk. A deadline of HTTP/2 ends its
// stream even between two reads, so there it is cleared after each.
type pacer struct {
	c       *http.ResponseController
	longest time.Duration
	drain   *drain
	now     func() time.Time
	call    *call // counts the memory of what comes in; nil: the reader counts it
	http2   bool
	conn    net.Conn      // of HTTP/2, without its TLS; nil: that of another http.Server
	waits   bool          // the client sends nothing before it is told to (Expect), and was not told
	whole   bool          // the request has been read to its end
	in      int           // bytes that have come since the last progress
	waited  time.Duration // for those bytes
	broken  error         // the error at the bound of memory

	header        http.Header // of the answer
	status        int         // of it
	began         bool        // the answer's header was written
	read, written uint64      // bytes of the bodies
	failed        error       // of the first read that failed
	slow          bool        // the client was too slow

	mu      sync.Mutex // guards what follows, and the deadlines: hurry is another goroutine's
	waiting waiting
	until   time.Time // the deadline of that
}

// waiting is what a pacer waits for.
type waiting uint8

const (
	forDisk   waiting = iota // or for the handler: not for the client
	forBytes                 // of the request
	forRoom                  // for the answer
	forNobody                // the call is over
)

func (s *Server) newPacer(w http.ResponseWriter, r *http.Request, c *call) *pacer {
	p := &pacer{
		c: http.NewResponseController(w), longest: s.o.Limits.Idle, drain: &s.admit.drain, now: s.o.Now, call: c, http2: r.ProtoMajor > 1,
		waits: r.Header.Get("Expect") != "" && r.Body != http.NoBody, whole: r.Body == http.NoBody, header: w.Header(), status: http.StatusOK,
	}
	if p.http2 {
		p.conn, _ = r.Context().Value(connKey{}).(net.Conn)
	}
	c.pacer.Store(p)
	return p
}

// idle is how long the client may take for the next bytes.
func (p *pacer) idle() time.Duration {
	if p.drain.begun.Load() {
		return min(p.longest, drainIdle)
	}
	return p.longest
}

// await notes what is waited for, until the client's time is over, of which it has taken some
// already.
func (p *pacer) await(what waiting, taken time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting, p.until = what, p.now().Add(p.idle()-taken)
	p.bound()
}

// bound sets the deadline. A connection without deadlines is a test's, or is closed. p.mu is
// held.
func (p *pacer) bound() {
	if p.waiting == forBytes {
		_ = p.c.SetReadDeadline(p.until)
	} else {
		_ = p.c.SetWriteDeadline(p.until)
	}
}

// goOn ends a wait.
func (p *pacer) goOn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = forDisk
}

// hurry shortens a wait under way, when the server is shutting down.
func (p *pacer) hurry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	until := p.now().Add(p.idle())
	if (p.waiting == forBytes || p.waiting == forRoom) && until.Before(p.until) {
		p.until = until
		p.bound()
	}
}

// cut closes a connection of HTTP/2 whose socket is full: there the deadline of a stream has not
// ended its wait.
func (p *pacer) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != nil && p.waiting == forRoom && p.now().Sub(p.until) > drainIdle/looks {
		_ = p.conn.Close() // which it is, whatever that says
	}
}

// end leaves deadlines behind for what net/http does after the handler: reading what
// is left of the request, and writing what is left of the answer. It sets its own, or
// we ours, before the next request's bytes. Of a request that is whole nothing is left.
// There a deadline would only end net/http's wait for the client's leaving: HTTP/1 takes
// that for its leaving, and cancels the connection's next request.
func (p *pacer) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = forNobody
	idle := p.idle()
	until := p.now().Add(idle)
	// A connection without deadlines is a test's, or is closed.
	if p.waits {
		_ = p.c.SetReadDeadline(p.now()) // nothing comes
	} else if !p.whole {
		_ = p.c.SetReadDeadline(until)
	}
	// An answer that waits for the rest of the request gets its time after that.
	_ = p.c.SetWriteDeadline(until.Add(idle))
}

// pacedBody is a request's body.
type pacedBody struct {
	body io.ReadCloser
	p    *pacer
}

func (b *pacedBody) Read(q []byte) (int, error) {
	n, err := b.read(q)
	b.p.read += uint64(n)
	if err != nil && b.p.failed == nil && !errors.Is(err, io.EOF) {
		b.p.failed = err
	}
	return n, err
}

func (b *pacedBody) read(q []byte) (int, error) {
	p := b.p
	if p.broken != nil {
		return 0, p.broken
	}
	if p.whole {
		return b.body.Read(q) // without a deadline: see end
	}
	p.waits = false
	start := p.now()
	p.await(forBytes, p.waited)
	n, err := b.body.Read(q)
	p.goOn()
	if p.waited += p.now().Sub(start); p.in+n >= progress {
		p.in, p.waited = 0, 0
	} else {
		p.in += n
	}
	// At the end net/http goes on to read, to learn of the client's leaving: that it
	// sends nothing more is not to be taken for that. After an error the deadline
	// stays, for it also reads what is left of the request.
	p.whole = errors.Is(err, io.EOF)
	if p.whole || p.http2 {
		_ = p.c.SetReadDeadline(time.Time{})
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return n, p.tooSlow("send")
	}
	if p.call == nil {
		return n, err
	}
	if held := p.call.hold(n * costPerByte); held != nil {
		p.broken = held
		return n, held
	}
	return n, err
}

func (b *pacedBody) Close() error { return b.body.Close() }

// pacedWriter writes the answer.
type pacedWriter struct {
	http.ResponseWriter
	p *pacer
}

func (w *pacedWriter) Write(q []byte) (int, error) {
	defer w.p.taken()
	w.p.began = true
	done := 0
	for {
		w.p.await(forRoom, 0)
		n, err := w.ResponseWriter.Write(q[:min(len(q), piece)])
		done += n
		w.p.written += uint64(n)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return done, w.p.tooSlow("take")
		}
		if q = q[n:]; err != nil || len(q) == 0 {
			return done, err
		}
	}
}

func (w *pacedWriter) WriteHeader(status int) {
	w.p.status, w.p.began = status, true
	w.ResponseWriter.WriteHeader(status)
}

// Flush implements http.Flusher, which streams need.
func (w *pacedWriter) Flush() {
	defer w.p.taken()
	w.p.await(forRoom, 0)
	// Its error is that of the next Write. But there may be none, since net/http ends
	// the request's context with it.
	w.p.slow = errors.Is(w.p.c.Flush(), os.ErrDeadlineExceeded) || w.p.slow
}

func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// taken ends the client's time to receive.
func (p *pacer) taken() {
	p.goOn()
	if p.http2 {
		_ = p.c.SetWriteDeadline(time.Time{})
	}
}

// tooSlow is the error of a client that did not do in time what it had to.
func (p *pacer) tooSlow(what string) error {
	p.slow = true
	return connect.NewError(connect.CodeDeadlineExceeded, plainError("the client took too long to "+what+" the next bytes"))
}
