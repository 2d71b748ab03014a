package fileapi

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "github.com/nfsbox/nfsbox/proto/fileapi"
)

// A call of one message each way, in protobuf, by POST over HTTP/1.1, is answered
// here; all else is package connect's. What stands on the wire is the same
// (https://connectrpc.com/docs/protocol, "Unary"): a message for a body, and a message,
// or an error in JSON, for an answer. But the bytes of a file are not copied: they are
// written from the buffer that the request came in, and sent from the one that the
// file was read into. For a small file that is a third of the call's cost.
//
// Over HTTP/2 a buffer may still be in use when a failed write returns, so that it
// could not be lent to somebody else.

// unaryCall answers the message of a request with a message. Both lie in memory that
// is valid until the call has left.
type unaryCall func(s service, ctx context.Context, message []byte) ([]byte, error)

// unaryCalls are they, by their names.
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

// unaryOf returns the call that a request is for, and its name, or nil if package
// connect has to answer it.
func unaryOf(r *http.Request) (unaryCall, string) {
	if r.ProtoMajor != 1 || r.Method != http.MethodPost || r.ContentLength < 0 || r.ContentLength > maxMessage {
		return nil, ""
	}
	h := r.Header
	if v := h["Content-Type"]; len(v) != 1 || v[0] != "application/proto" || h["Content-Encoding"] != nil {
		return nil, ""
	}
	if v := h["Connect-Protocol-Version"]; len(v) > 0 && (len(v) > 1 || v[0] != "1") {
		return nil, ""
	}
	name, ok := strings.CutPrefix(r.URL.Path, "/"+pb.FileServiceName+"/")
	if !ok {
		return nil, ""
	}
	return unaryCalls[name], name
}

// unary answers a request, whose body it is handed, paced as the writer is.
func (s *Server) unary(ctx context.Context, w http.ResponseWriter, r *http.Request, body io.Reader, do unaryCall, name string) {
	start := s.o.Now()
	answer, err := s.answer(ctx, r, body, do)
	s.ended(name, start, err)
	if err != nil {
		// Whoever does not take the answer has gone.
		_ = s.errors.Write(w, r, s.wire(err))
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
	if v := r.Header["Connect-Timeout-Ms"]; len(v) > 0 {
		// Ten digits at most, says the protocol.
		ms, err := strconv.ParseUint(v[0], 10, 34)
		if err != nil || len(v[0]) > 10 {
			return nil, refuse(connect.CodeInvalidArgument, "%.20q is no timeout in milliseconds", v[0])
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
		defer cancel()
	}
	message, err := receive(requestOf(ctx).call, body, int(r.ContentLength))
	if err != nil {
		return nil, err
	}
	return do(service{s}, ctx, message)
}

// onTrust is how much memory a message gets before any of it has come, in bytes. A
// longer one gets the rest when it has sent so much: to announce a megabyte and keep it
// back costs the server no more than this.
const onTrust = 64 << 10

// receive reads a message of that size.
func receive(c *call, body io.Reader, size int) ([]byte, error) {
	first := min(size, onTrust)
	if err := c.hold(first); err != nil {
		return nil, err
	}
	message := c.lend(first)
	if err := readFull(body, message); err != nil || first == size {
		return message, err
	}
	if err := c.hold(size); err != nil {
		return nil, err
	}
	whole := c.lend(size)
	return whole, readFull(body, whole[copy(whole, message):])
}

func readFull(r io.Reader, p []byte) error {
	_, err := io.ReadFull(r, p)
	if err == nil || connect.CodeOf(err) != connect.CodeUnknown {
		return err
	}
	return refuse(connect.CodeInvalidArgument, "reading the message: %w", err)
}

// unary is a call whose messages are not worth more thought.
func unary[Q any, R proto.Message, P interface {
	*Q
	proto.Message
}](do func(service, context.Context, P) (R, error)) unaryCall {
	return func(s service, ctx context.Context, message []byte) ([]byte, error) {
		q := P(new(Q))
		if err := decode(message, q); err != nil {
			return nil, err
		}
		r, err := do(s, ctx, q)
		if err != nil {
			return nil, err
		}
		return proto.Marshal(r)
	}
}

func decode(message []byte, q proto.Message) error {
	if err := proto.Unmarshal(message, q); err != nil {
		return refuse(connect.CodeInvalidArgument, "unmarshal message: %w", err)
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
	rest, data, err := cut(message, putData)
	if err == nil {
		err = decode(rest, q)
	}
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

// cut takes a field of bytes out of a message, and returns the others and its bytes,
// the last ones if it is there repeatedly, as for any decoder. The bytes are the
// message's own.
func cut(message []byte, field protowire.Number) (rest, data []byte, err error) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil, nil, refuse(connect.CodeInvalidArgument, "unmarshal message: %w", protowire.ParseError(n))
		}
		m := protowire.ConsumeFieldValue(number, kind, message[n:])
		if m < 0 {
			return nil, nil, refuse(connect.CodeInvalidArgument, "unmarshal message: %w", protowire.ParseError(m))
		}
		if number == field && kind == protowire.BytesType {
			data, _ = protowire.ConsumeBytes(message[n:])
		} else {
			rest = append(rest, message[:n+m]...)
		}
		message = message[n+m:]
	}
	return rest, data, nil
}

// headRoom is kept in front of a file's bytes for the rest of the message, in bytes.
// What does not fit moves the bytes.
const headRoom = 512

// unaryGet is Get into the message that is sent.
func unaryGet(s service, ctx context.Context, message []byte) ([]byte, error) {
	q := &pb.GetRequest{}
	if err := decode(message, q); err != nil {
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
