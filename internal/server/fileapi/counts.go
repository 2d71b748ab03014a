package fileapi

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/internal/base/metric"
	pb "github.com/nfsbox/nfsbox/proto/fileapi"
)

// Procedure is one of the calls, a method of HTTP for a path, or Unknown.
type Procedure uint8

// procedures are the calls and methods, by their names.
var procedures = [...]string{
	"Stat", "Exist", "List", "MakeDirectory", "Delete", "Get", "Put", "Download", "Upload", "Search", "Echo",
	"HTTP GET", "HTTP HEAD", "HTTP PUT", "HTTP DELETE", "HTTP OPTIONS", "unknown",
}

// Unknown is the procedure of a request for none of the calls, and by none of the methods.
const Unknown Procedure = Procedure(len(procedures)) - 1

// String returns the name, such as "Upload".
func (p Procedure) String() string { return procedures[min(p, Unknown)] }

// procedureOf is the procedure that a request's path names, or its method.
func procedureOf(method, path string) Procedure {
	name, ok := strings.CutPrefix(path, "/"+pb.FileServiceName+"/")
	if !ok {
		name, ok = "HTTP "+method, true
	}
	if i := slices.Index(procedures[:], name); ok && i >= 0 {
		return Procedure(i)
	}
	return Unknown
}

// Code is the outcome of a call: 0, or the code of its error.
type Code connect.Code

// maxCode is the last of the codes.
const maxCode = Code(connect.CodeUnauthenticated)

// String returns "ok", or the code as the protocol writes it, such as "not_found".
func (c Code) String() string {
	if c == 0 {
		return "ok"
	}
	return connect.Code(c).String()
}

// counts are what has happened.
type counts struct {
	denied [len(reasons)]atomic.Uint64 // none of the reason 0
	slow   atomic.Uint64
	calls  [len(procedures)]counted

	searched struct{ files, bytes, matches atomic.Uint64 } // by searches that have ended
}

type counted struct {
	inProgress atomic.Int64
	codes      [maxCode + 1]atomic.Uint64
	in, out    atomic.Uint64
	time       metric.Histogram
}

// Snapshot is what a server has done so far, and what it is doing.
type Snapshot struct {
	// Calls are the calls that were admitted, by the names of their procedures;
	// "unknown" are requests for none.
	Calls map[string]Call
	// Denied counts connections and requests that were denied, by the Reason. Those
	// that were denied before they were admitted are counted only here.
	Denied map[string]uint64
	// Slow counts the calls that were cut off because their clients sent or received
	// too slowly.
	Slow uint64
	// InProgress are the calls that have not ended, Memory the bytes of messages that
	// they hold, and Conns the connections.
	InProgress int
	Memory     int64
	Conns      int
	// Searches are the calls in progress that search. SearchedFiles and SearchedBytes are what searches have read that
	// have ended, and SearchMatches the lines that they have found.
	Searches                                    int
	SearchedFiles, SearchedBytes, SearchMatches uint64
	// Left are the temporaries that could not be removed.
	Left uint64
}

// Call counts one procedure's calls.
type Call struct {
	InProgress int64             // calls that have not ended; the other fields do not count them
	Codes      map[string]uint64 // by outcome, as Code writes it, without zeros
	Errors     uint64            // the sum of Codes without "ok"
	// BytesIn and BytesOut are those of the bodies of requests and answers, as on the
	// wire.
	BytesIn, BytesOut uint64
	Time              *metric.Snapshot // from the request's header to the end of its answer, in nanoseconds
}

// Snapshot returns the counts as they are now.
func (s *Server) Snapshot() Snapshot {
	r := Snapshot{
		Calls: make(map[string]Call, len(procedures)), Denied: make(map[string]uint64, len(reasons)-1),
		Slow: s.counts.slow.Load(), Conns: s.conns.Len(), Left: s.temps.left.Load(),
		SearchedFiles: s.counts.searched.files.Load(), SearchedBytes: s.counts.searched.bytes.Load(), SearchMatches: s.counts.searched.matches.Load(),
	}
	r.InProgress, r.Searches, r.Memory = s.admit.inProgress()
	for i, name := range reasons {
		if i == 0 {
			continue
		}
		r.Denied[name] = s.counts.denied[i].Load()
	}
	for i, name := range procedures {
		r.Calls[name] = s.counts.calls[i].snapshot()
	}
	return r
}

func (c *counted) snapshot() Call {
	r := Call{
		InProgress: c.inProgress.Load(), Codes: make(map[string]uint64),
		BytesIn: c.in.Load(), BytesOut: c.out.Load(), Time: c.time.Snapshot(),
	}
	for i := range c.codes {
		n := c.codes[i].Load()
		if n > 0 {
			r.Codes[Code(i).String()] = n
		}
		if i > 0 {
			r.Errors += n
		}
	}
	return r
}

// interceptor records the outcome of calls that package connect answers, and converts
// their errors to those of the protocol.
type interceptor struct{ s *Server }

func (i *interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, q connect.AnyRequest) (connect.AnyResponse, error) {
		r, err := next(ctx, q)
		if err = requestOf(ctx).outcome(i.s.wire(err)); err != nil {
			return nil, cleaned(err)
		}
		return r, nil
	}
}

func (i *interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		err := next(ctx, conn)
		if e, ok := errors.AsType[*connect.Error](err); ok && e.Code() == connect.CodeResourceExhausted {
			if _, ours := errors.AsType[*denial](err); !ours { // package connect's: the message is too long
				err = oversize("%s", e.Message())
			}
		}
		return cleaned(requestOf(ctx).outcome(i.s.wire(err)))
	}
}

func (*interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}
