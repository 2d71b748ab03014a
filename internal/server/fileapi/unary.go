package fileapi

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "github.com/nfsbox/nfsbox/proto/fileapi"
)

// A call of one message each way, in protobuf, by POST over HTTP/1.1, is answered
// here; package connect answers all others. The bytes on the wire are the same
// (https://connectrpc.com/docs/protocol, "Unary"): the body is a message, and the answer
// a message, or an error in JSON. But the bytes of a file are not copied: they are
// written from the buffer that the request came in, and sent from the one that the
// file was read into. For a small file that saves a third of the call's cost.
//
// HTTP/2 is left out: a buffer may still be in use there after a failed write has
// returned, so it could not be lent to another call.

// unaryCall answers the message of a request with a message. Both lie in memory that
// is valid until the call has left.
type unaryCall func(s service, ctx context.Context, message []byte) ([]byte, error)

// unaryCalls maps the names of procedures to their handlers.
var unaryCalls = map[string]unaryCall{
	"Stat":          unary(service.Stat),
	"Exist":         unary(service.Exist),
	"List":          unary(service.List),
	"MakeDirectory": unary(service.MakeDirectory),
	"Delete":        unary(service.Delete),
	"Echo":          unary(service.Echo),
	"Get":           unaryGet,
	"Put":           unaryPut,
}

// unaryOf returns the call that a request is for, or nil if package connect has to
// answer it.
func unaryOf(r *http.Request, procedure Procedure) unaryCall {
	if r.ProtoMajor != 1 || r.Method != http.MethodPost || r.ContentLength < 0 || r.ContentLength > maxMessage {
		return nil
	}
	h := r.Header
	if v := h["Content-Type"]; len(v) != 1 || v[0] != "application/proto" || h["Content-Encoding"] != nil {
		return nil
	}
	if v := h["Connect-Protocol-Version"]; len(v) > 0 && (len(v) > 1 || v[0] != "1") {
		return nil
	}
	return unaryCalls[procedure.String()]
}

// unary answers a request, whose body it is handed, paced as the writer is.
func (s *Server) unary(ctx context.Context, w http.ResponseWriter, r *http.Request, body io.Reader, do unaryCall) {
	answer, err := s.answer(ctx, r, body, do)
	q := requestOf(ctx)
	if err = q.outcome(s.wire(err)); err != nil {
		if q.pacer.slow {
			// Otherwise the answer would wait for the rest of the message.
			w.Header().Set("Connection", "close")
		}
		// If this fails, the client is gone.
		_ = s.errors.Write(w, r, err)
		return
	}
	h := w.Header()
	h["Content-Type"] = contentType
	h["Content-Length"] = []string{strconv.Itoa(len(answer))}
	_, _ = w.Write(answer) // as above
}

var contentType = []string{"application/proto"}

// answer reads the message and has the call made.
func (s *Server) answer(ctx context.Context, r *http.Request, body io.Reader, do unaryCall) ([]byte, error) {
	if v := r.Header.Get("Connect-Timeout-Ms"); v != "" {
		timeout, err := parseTimeout(v)
		if err != nil {
			return nil, err
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	message, err := s.receive(requestOf(ctx).call, body, int(r.ContentLength))
	if err != nil {
		return nil, err
	}
	return do(service{s}, ctx, message)
}

// parseTimeout reads a timeout in milliseconds, of ten digits at most, as the protocol
// has it.
func parseTimeout(v string) (time.Duration, error) {
	if len(v) > 10 {
		return 0, refuse(connect.CodeInvalidArgument, "parse timeout: %q has >10 digits", v)
	}
	ms, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return 0, refuse(connect.CodeInvalidArgument, "parse timeout: %w", err)
	}
	if ms < 0 {
		return 0, refuse(connect.CodeInvalidArgument, "parse timeout: %q is negative", v)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// A message gets onTrust bytes of memory before any of it has come. Each time the buffer
// is full it grows trustGrows times, or to the whole message if that is within twice as
// much. So a client that announces a megabyte and does not send it costs the server only
// a few times what it has sent.
const (
	onTrust    = 64 << 10
	trustGrows = 4
)

func (s *Server) receive(c *call, body io.Reader, size int) ([]byte, error) {
	room := min(size, onTrust)
	if err := c.hold(room); err != nil {
		return nil, err
	}
	if room == size {
		message := c.lend(size)
		return message, readFull(body, message)
	}
	begun := s.buffers.Get(room)
	defer func() { begun.Release() }()
	for have := 0; ; {
		if err := readFull(body, begun.B[have:]); err != nil {
			return nil, err
		}
		have = len(begun.B)
		if room = have * trustGrows; room >= size/2 {
			room = size // rather than to grow once more for the rest
		}
		if err := c.hold(room); err != nil {
			return nil, err
		}
		if room == size {
			whole := c.lend(size)
			return whole, readFull(body, whole[copy(whole, begun.B):])
		}
		more := s.buffers.Get(room)
		copy(more.B, begun.B)
		begun.Release()
		begun = more
	}
}

func readFull(r io.Reader, p []byte) error {
	_, err := io.ReadFull(r, p)
	if err == nil || connect.CodeOf(err) != connect.CodeUnknown {
		return err
	}
	return refuse(connect.CodeInvalidArgument, "read message: %w", err)
}

// unary is a call with small messages, which are simply decoded and encoded.
func unary[Q any, R proto.Message, P interface {
	*Q
	proto.Message
}](do func(service, context.Context, P) (R, error)) unaryCall {
	return func(s service, ctx context.Context, message []byte) ([]byte, error) {
		q := P(new(Q))
		if err := decode(ctx, message, q); err != nil {
			return nil, err
		}
		r, err := do(s, ctx, q)
		if err != nil {
			return nil, err
		}
		return proto.Marshal(r)
	}
}

// decode decodes the message into q. It charges the call for two more copies: q, and what
// may be of it in the answer.
func decode(ctx context.Context, message []byte, q proto.Message) error {
	if err := requestOf(ctx).call.hold((costPerByte - 1) * len(message)); err != nil {
		return err
	}
	if err := (proto.UnmarshalOptions{Merge: true}).Unmarshal(message, q); err != nil {
		return refuse(connect.CodeInvalidArgument, "unmarshal message: unmarshal into %T: %w", q, err)
	}
	return nil
}

// The numbers in fileapi.proto of the fields that hold a file's bytes.
const (
	putData = 8
	getData = 2
)

// unaryPut is Put of bytes that stay where they are.
func unaryPut(s service, ctx context.Context, message []byte) ([]byte, error) {
	q := &pb.PutRequest{}
	data, err := cut(message, putData, func(rest []byte) error { return decode(ctx, rest, q) })
	if err != nil {
		return nil, err
	}
	q.Data = data
	r, err := s.Put(ctx, q)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(r)
}

// cut takes a field of bytes out of a message, and returns the bytes, which share the
// message's memory. If the field is repeated, the last one counts, as for any decoder. It
// calls rest with each piece of the other fields, and with what is no field.
func cut(message []byte, field protowire.Number, rest func([]byte) error) (data []byte, err error) {
	begin := 0 // of the piece
	for at := 0; ; {
		number, kind, n := protowire.ConsumeTag(message[at:])
		m := -1
		if n > 0 {
			m = protowire.ConsumeFieldValue(number, kind, message[at+n:])
		}
		if m < 0 {
			return data, rest(message[begin:])
		}
		end := at + n + m
		if number == field && kind == protowire.BytesType {
			if err := rest(message[begin:at]); err != nil {
				return nil, err
			}
			data, _ = protowire.ConsumeBytes(message[at+n:])
			begin = end
		}
		at = end
	}
}

// headRoom is the space in front of a file's bytes for the rest of the message, in bytes.
// If that does not fit, the bytes are moved.
const headRoom = 512

// unaryGet is Get into the message that is sent.
func unaryGet(s service, ctx context.Context, message []byte) ([]byte, error) {
	q := &pb.GetRequest{}
	if err := decode(ctx, message, q); err != nil {
		return nil, err
	}
	r, buf, err := s.get(ctx, q)
	if err != nil {
		return nil, err
	}
	data := r.GetData()
	r.Data = nil
	head, err := proto.Marshal(r)
	if err != nil {
		return nil, err
	}
	head = protowire.AppendTag(head, getData, protowire.BytesType)
	head = protowire.AppendVarint(head, uint64(len(data)))
	if len(head) > headRoom {
		return append(head, data...), nil
	}
	copy(buf[headRoom-len(head):], head)
	return buf[headRoom-len(head):], nil
}
