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
	Name      string         // of the caller, as in Callers; "": not known
	UID       uint32         // of the caller
	HasUID    bool           // UID is known
	Took      time.Duration  // from the request's header to the end of its answer
	BytesIn   uint64         // of the request's body
	BytesOut  uint64         // of the answer's body; 0 if the request was not admitted
	Code      Code
	Path      string // of the file; "": the request names none, or is about content
	Sampled   bool   // Options.Sample picked it
}

// Denied is a request that was denied before it was executed, such as for want of a proof.
type Denied struct {
	Client netip.AddrPort // not valid: a Unix socket's
	Method string         // of HTTP
	Path   string         // what it asked for
	Err    error          // why, as the client is told
}

// request is what there is to know of a request beside its message. It is its
// handler's goroutine's.
type request struct {
	start     time.Time
	procedure Procedure
	remote    netip.AddrPort
	who       *identity // nil: not known
	path      string    // of the file; "": none was named
	call      *call     // nil: the request was not admitted; pacer is then nil, too
	pacer     *pacer

	known bool // the outcome is known: code and why
	code  Code
	why   Reason // why it was denied; 0: it was not
}

// outcome records the request's outcome, an error of the protocol or nil, and returns it.
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

// guess is outcome for a request that package connect has answered by itself: it was not of
// the protocol, or its message could not be read. The outcome is then taken from the
// answer's header, as far as its protocol has it there.
func (q *request) guess() {
	p := q.pacer
	q.known, q.code = true, codeOfAnswer(p.status, p.header)
	if p.failed != nil && connect.CodeOf(p.failed) == connect.CodeUnknown {
		q.code = Code(connect.CodeInvalidArgument) // the message has not come to its end
	}
	if q.code != Code(connect.CodeResourceExhausted) {
		return
	}
	q.why = TooLarge // the message
	if d, ok := errors.AsType[*denial](p.failed); ok {
		q.why = d.why
	}
}

// codeOfAnswer is the code in an answer of package connect.
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

// ended counts a call that was admitted, and reports it to Observe.
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

// observe calls Observe for a request that took so long, if it is slow or sampled.
func (s *Server) observe(q *request, took time.Duration) {
	if s.o.Observe == nil {
		return
	}
	sampled := s.o.Sample != nil && s.o.Sample()
	if !sampled && (s.o.Slow == 0 || took < s.o.Slow) {
		return
	}
	served := Served{Procedure: q.procedure, Client: q.remote, Took: took, Code: q.code, Path: q.path, Sampled: sampled}
	if q.who != nil {
		served.Name, served.UID, served.HasUID = q.who.name, q.who.as.UID, true
	}
	if q.pacer != nil {
		served.BytesIn, served.BytesOut = q.pacer.read, q.pacer.written
	}
	s.o.Observe(served)
}
