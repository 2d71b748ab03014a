package fileapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	pb "github.com/nfsbox/nfsbox/proto/fileapi"
)

// Calls of one message each way in protobuf, except List, are made here and not by
// package connect, which would copy the bytes of a file twice. The bytes on the wire are
// the same (https://connectrpc.com/docs/protocol, "Unary").

// The numbers in fileapi.proto of the fields that hold a file's bytes.
const (
	putData = 8
	getData = 2
)

// maxAnswer bounds an answer, in bytes: MaxMessage and the rest of the message. More is
// resource_exhausted. maxError bounds an answer that is an error; the rest is not read.
const (
	maxAnswer = MaxMessage + 1<<16
	maxError  = 64 << 10
)

// messageOf is a pointer to a T that is a message.
type messageOf[T any] interface {
	*T
	proto.Message
}

// call makes a call of small messages. JSON goes by package connect.
func call[Q, R any, PQ messageOf[Q], PR messageOf[R]](ctx context.Context, c *Client, name string, q PQ, byConnect func(context.Context, PQ) (PR, error)) (PR, error) {
	if c.json {
		return byConnect(ctx, q)
	}
	m, err := proto.Marshal(q)
	if err != nil {
		return nil, err
	}
	answer, err := c.post(ctx, name, m, nil)
	if err != nil {
		return nil, err
	}
	r := PR(new(R))
	return r, decode(answer, r)
}

// callPut is Put. It does not copy the bytes.
func (c *Client) callPut(ctx context.Context, q *pb.PutRequest) (*pb.PutResponse, error) {
	if c.json {
		return c.rpc.Put(ctx, q)
	}
	data := q.GetData()
	q.Data = nil
	head, err := proto.Marshal(q)
	if err != nil {
		return nil, err
	}
	head = protowire.AppendTag(head, putData, protowire.BytesType)
	head = protowire.AppendVarint(head, uint64(len(data)))
	answer, err := c.post(ctx, "Put", head, data)
	if err != nil {
		return nil, err
	}
	r := &pb.PutResponse{}
	return r, decode(answer, r)
}

// callGet is Get. The bytes that it returns are a part of the answer.
func (c *Client) callGet(ctx context.Context, q *pb.GetRequest) (*pb.GetResponse, error) {
	if c.json {
		return c.rpc.Get(ctx, q)
	}
	m, err := proto.Marshal(q)
	if err != nil {
		return nil, err
	}
	answer, err := c.post(ctx, "Get", m, nil)
	if err != nil {
		return nil, err
	}
	r := &pb.GetResponse{}
	rest, data, err := cut(answer, getData)
	if err == nil {
		err = decode(rest, r)
	}
	r.Data = data
	return r, err
}

func decode(message []byte, r proto.Message) error {
	if err := proto.Unmarshal(message, r); err != nil {
		return connect.NewError(connect.CodeInternal, fmt.Errorf("unmarshal message: %w", err))
	}
	return nil
}

// cut removes a field of bytes from a message, and returns the other fields and the bytes.
// If the field is repeated, the last one counts, as for any decoder. The bytes share the
// message's memory.
func cut(message []byte, field protowire.Number) (rest, data []byte, err error) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		m := n
		if n >= 0 {
			m = protowire.ConsumeFieldValue(number, kind, message[n:])
		}
		if m < 0 {
			return nil, nil, connect.NewError(connect.CodeInternal, fmt.Errorf("unmarshal message: %w", protowire.ParseError(m)))
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

// loan bounds the time for which a request may read its caller's bytes.
type loan struct {
	mu   sync.Mutex
	over bool // guarded by mu
}

func (l *loan) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
}

// message is a request's body: two pieces, on loan. Package net/http may still read them
// after the answer has come.
type message struct {
	loan *loan
	rest [2][]byte // what was not read
}

func (m *message) Read(p []byte) (n int, err error) {
	m.loan.mu.Lock()
	defer m.loan.mu.Unlock()
	if m.loan.over {
		return 0, http.ErrBodyReadAfterClose
	}
	for i := range m.rest {
		k := copy(p[n:], m.rest[i])
		m.rest[i] = m.rest[i][k:]
		n += k
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (*message) Close() error { return nil }

// post makes a call with a message in two pieces. They are not read any more after it has
// returned.
func (c *Client) post(ctx context.Context, name string, head, data []byte) ([]byte, error) {
	r := (&http.Request{
		Method: http.MethodPost, URL: c.urls[name], Host: c.urls[name].Host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/proto"}, "Connect-Protocol-Version": {"1"}, "User-Agent": {"nfsbox"}},
	}).WithContext(ctx)
	if c.token != "" {
		r.Header["Authorization"] = []string{c.token}
	}
	if until, ok := ctx.Deadline(); ok {
		r.Header["Connect-Timeout-Ms"] = []string{strconv.FormatInt(min(max(time.Until(until).Milliseconds(), 0), 9_999_999_999), 10)}
	}
	r.ContentLength = int64(len(head) + len(data))
	l := &loan{}
	defer l.end()
	r.GetBody = func() (io.ReadCloser, error) { return &message{loan: l, rest: [2][]byte{head, data}}, nil }
	// GetBody never fails.
	r.Body, _ = r.GetBody()
	answer, err := c.client.Do(r)
	if err != nil {
		return nil, cutOff(ctx, err)
	}
	b, err := receiveAnswer(answer)
	// If the answer was not read to its end, this closes the connection.
	_ = answer.Body.Close()
	if _, said := errors.AsType[*connect.Error](err); err != nil && !said {
		err = cutOff(ctx, err)
	}
	return b, err
}

// cutOff is the error of a call whose answer has not come.
func cutOff(ctx context.Context, err error) error {
	code := connect.CodeUnavailable
	switch {
	case errors.Is(err, context.Canceled), errors.Is(ctx.Err(), context.Canceled):
		code = connect.CodeCanceled
	case errors.Is(err, context.DeadlineExceeded), errors.Is(ctx.Err(), context.DeadlineExceeded):
		code = connect.CodeDeadlineExceeded
	}
	return connect.NewError(code, err)
}

// receiveAnswer reads the message of an answer, or the error that it is.
func receiveAnswer(r *http.Response) ([]byte, error) {
	if r.StatusCode != http.StatusOK {
		return nil, refused(r)
	}
	if kind := r.Header.Get("Content-Type"); kind != "application/proto" {
		return nil, connect.NewError(connect.CodeInternal, fmt.Errorf("the answer is %.40q: this is no server of the file API", kind))
	}
	if r.ContentLength > maxAnswer {
		return nil, errTooLong
	}
	if r.ContentLength >= 0 {
		b := make([]byte, r.ContentLength)
		_, err := io.ReadFull(r.Body, b)
		return b, err
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, maxAnswer+1))
	if err == nil && len(b) > maxAnswer {
		err = errTooLong
	}
	return b, err
}

var errTooLong = connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("the answer is longer than %d bytes", maxAnswer))

// refused is the error in an answer: the server's, or that of a proxy which does not know
// the protocol.
func refused(r *http.Response) error {
	var m struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Details []struct {
			Type  string `json:"type"`
			Value string `json:"value"`
		} `json:"details"`
	}
	var code connect.Code
	body, err := io.ReadAll(io.LimitReader(r.Body, maxError))
	if err != nil || json.Unmarshal(body, &m) != nil || code.UnmarshalText([]byte(m.Code)) != nil {
		return connect.NewError(codeOfStatus(r.StatusCode), errors.New(r.Status))
	}
	e := connect.NewWireError(code, errors.New(m.Message))
	for _, d := range m.Details {
		value, err := base64.RawStdEncoding.DecodeString(d.Value)
		if err != nil {
			continue // it says no less than none
		}
		if detail, err := connect.NewErrorDetail(&anypb.Any{TypeUrl: "type.googleapis.com/" + d.Type, Value: value}); err == nil {
			e.AddDetail(detail)
		}
	}
	return e
}

// codeOfStatus is the code for a status of HTTP's, as the protocol has it.
func codeOfStatus(status int) connect.Code {
	switch status {
	case http.StatusBadRequest:
		return connect.CodeInternal
	case http.StatusUnauthorized:
		return connect.CodeUnauthenticated
	case http.StatusForbidden:
		return connect.CodePermissionDenied
	case http.StatusNotFound:
		return connect.CodeUnimplemented
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return connect.CodeUnavailable
	}
	return connect.CodeUnknown
}
