package fileapi

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/internal/metric"
	pb "github.com/nfsbox/nfsbox/proto/fileapi"
)

// procedures are the calls, by their names.
var procedures = [...]string{"Stat", "Exist", "List", "MakeDirectory", "Delete", "Get", "Put", "Download", "Upload", "Echo"}

// counts are what has happened.
type counts struct {
	refused atomic.Uint64
	calls   [len(procedures)]counted
}

type counted struct {
	errors atomic.Uint64
	time   metric.Histogram
}

// Snapshot is what a server has done so far, and what it is doing.
type Snapshot struct {
	// Calls are those that have ended, by their names: "Upload".
	Calls map[string]Call
	// Refused are connections and requests that were turned away unheard: too many,
	// or without a right to be heard.
	Refused uint64
	// InProgress are the calls that have not ended, Memory the bytes of messages that
	// they hold, and Conns the connections.
	InProgress int
	Memory     int64
	Conns      int64
	// Left are the temporaries that could not be removed.
	Left uint64
}

// Call is what has become of one procedure's calls.
type Call struct {
	Errors uint64           // of all that were made
	Time   *metric.Snapshot // of all that were made, in nanoseconds
}

// Snapshot returns the counts as they are now.
func (s *Server) Snapshot() Snapshot {
	r := Snapshot{
		Calls: make(map[string]Call, len(procedures)), Refused: s.counts.refused.Load(),
		Conns: s.conns.Load(), Left: s.temps.left.Load(),
	}
	r.InProgress, r.Memory = s.admit.inProgress()
	for i, name := range procedures {
		c := &s.counts.calls[i]
		r.Calls[name] = Call{Errors: c.errors.Load(), Time: c.time.Snapshot()}
	}
	return r
}

// nameOf is the name of a call by that which it has on the wire.
func nameOf(procedure string) string {
	return strings.TrimPrefix(procedure, "/"+pb.FileServiceName+"/")
}

// ended counts a call.
func (s *Server) ended(name string, start time.Time, err error) {
	if i := slices.Index(procedures[:], name); i >= 0 {
		c := &s.counts.calls[i]
		c.time.Since(start, s.o.Now())
		if err != nil {
			c.errors.Add(1)
		}
	}
}

// interceptor counts calls and turns their errors into the wire's.
type interceptor struct{ s *Server }

// WrapUnary implements connect.Interceptor.
func (i *interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, q connect.AnyRequest) (connect.AnyResponse, error) {
		start := i.s.o.Now()
		r, err := next(ctx, q)
		i.s.ended(nameOf(q.Spec().Procedure), start, err)
		if err != nil {
			return nil, i.s.wire(err)
		}
		return r, nil
	}
}

// WrapStreamingHandler implements connect.Interceptor.
func (i *interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		start := i.s.o.Now()
		err := next(ctx, conn)
		i.s.ended(nameOf(conn.Spec().Procedure), start, err)
		return i.s.wire(err)
	}
}

// WrapStreamingClient implements connect.Interceptor.
func (*interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}
