package fileapi

import (
	"errors"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"connectrpc.com/connect"
)

// Served is a request that was answered, or denied.
type Served struct {
	Procedure Procedure
	Client    netip.AddrPort // not valid: a Unix socket's
	Name      string         // who calls, as Callers name him; "": nobody was found
	UID       uint32         // as whom
	HasUID    bool           // somebody was found
	Took      time.Duration  // from the request's header to the end of its answer
	BytesIn   uint64         // of the request's body
	BytesOut  uint64         // of the answer's; 0 of one that was denied unheard
	Code      Code
	Sampled   bool // Options.Sample picked it
}

// request is what there is to know of a request beside its message. It is its
// handler's goroutine's.
type request struct {
	start     time.Time
	procedure Procedure
	remote    netip.AddrPort
	who       *identity // nil: nobody was found
	call      *call     // nil: it was denied unheard, and the pacer is, too
	pacer     *pacer

	known bool // what it has come to, which is:
	code  Code
	why   Reason // it was denied, if it was
}

// outcome notes what the request has come to, an error of the wire's or none, and
// returns it.
func (q *request) outcome(err error) error {
	q.known, q.code, q.why = true, 0, 0
	if err == nil {
		return nil
	}
	if q.code = Code(connect.CodeOf(err)); q.code > maxCode {
		q.code = Code(connect.CodeUnknown)
	}
	if d, ok := errors.AsType[*denial](err); ok {
		q.why = d.why
	}
	return err
}

// guess is outcome for a request that package connect has answered without asking
// us: it was none of the protocol, or its message could not be read. The answer then
// tells, as far as its protocol has it in a header.
func (q *request) guess() {
	p := q.pacer
	q.known, q.code = true, codeOfAnswer(p.status, p.header)
	if p.failed != nil && connect.CodeOf(p.failed) == connect.CodeUnknown {
		q.code = Code(connect.CodeInvalidArgument) // as of a message that unary has not got all of
	}
	if q.code != Code(connect.CodeResourceExhausted) {
		return
	}
	q.why = TooLarge // the message
	if d, ok := errors.AsType[*denial](p.failed); ok {
		q.why = d.why
	}
}

// codeOfAnswer is the code that an answer of package connect's bears.
func codeOfAnswer(status int, h http.Header) Code {
	for _, key := range []string{"Grpc-Status", http.TrailerPrefix + "Grpc-Status"} {
		if v := h[key]; len(v) > 0 {
			if n, err := strconv.ParseUint(v[0], 10, 32); err == nil && n <= uint64(maxCode) {
				return Code(n)
			}
		}
	}
	switch status {
	case http.StatusOK, http.StatusBadRequest: // a stream has its errors in the body
		return Code(connect.CodeInvalidArgument)
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUnsupportedMediaType,
		http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return Code(connect.CodeUnimplemented)
	case http.StatusTooManyRequests:
		return Code(connect.CodeResourceExhausted)
	case http.StatusGatewayTimeout:
		return Code(connect.CodeDeadlineExceeded)
	}
	return Code(connect.CodeUnknown)
}

// begins counts a call as one in progress.
func (s *Server) begins(q *request) { s.counts.calls[q.procedure].inProgress.Add(1) }

// ended counts a call that was heard, and tells of it.
func (s *Server) ended(q *request) {
	if !q.known { // its handler has panicked
		q.code = Code(connect.CodeInternal)
	}
	took := s.o.Now().Sub(q.start)
	c := &s.counts.calls[q.procedure]
	c.inProgress.Add(-1)
	c.codes[q.code].Add(1)
	c.in.Add(q.pacer.read)
	c.out.Add(q.pacer.written)
	c.time.Duration(took)
	if q.why != 0 {
		s.counts.denied[q.why].Add(1)
	}
	if q.pacer.slow {
		s.counts.slow.Add(1)
	}
	s.observe(q, took)
}

// observe tells of a request, which took so long, if somebody wants to know.
func (s *Server) observe(q *request, took time.Duration) {
	if s.o.Observe == nil {
		return
	}
	sampled := s.o.Sample != nil && s.o.Sample()
	if !sampled && (s.o.Slow == 0 || took < s.o.Slow) {
		return
	}
	served := Served{Procedure: q.procedure, Client: q.remote, Took: took, Code: q.code, Sampled: sampled}
	if q.who != nil {
		served.Name, served.UID, served.HasUID = q.who.name, q.who.as.UID, true
	}
	if q.pacer != nil {
		served.BytesIn, served.BytesOut = q.pacer.read, q.pacer.written
	}
	s.o.Observe(served)
}
