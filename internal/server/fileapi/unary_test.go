package fileapi

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "github.com/nfsbox/nfsbox/proto/fileapi"
)

// TestUnary makes requests that a library would not, and sees which of them package
// connect is not asked for.
func TestUnary(t *testing.T) {
	r := newRig(t, nil, nil)
	r.make("/f", aFile, "content")
	get, err := proto.Marshal(&pb.GetRequest{File: &pb.GetRequest_Path{Path: "/f"}, Checksum: pb.CRC32C})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, header, value string
		body                []byte
		status              int
		want                string // in the answer
	}{
		{"as it should be", "Connect-Timeout-Ms", "10000", get, http.StatusOK, "content"},
		{"a timeout that is over", "Connect-Timeout-Ms", "0", get, http.StatusGatewayTimeout, "deadline_exceeded"},
		{"a timeout that is none", "Connect-Timeout-Ms", "soon", get, http.StatusBadRequest, "invalid_argument"},
		{"a timeout too long", "Connect-Timeout-Ms", "12345678901", get, http.StatusBadRequest, "invalid_argument"},
		{"a negative timeout", "Connect-Timeout-Ms", "-1", get, http.StatusBadRequest, "invalid_argument"},
		{"another version", "Connect-Protocol-Version", "2", get, http.StatusBadRequest, "invalid_argument"},
		{"compressed", "Content-Encoding", "gzip", get, http.StatusNotImplemented, "unimplemented"},
		{"no message", "", "", []byte("\xff"), http.StatusBadRequest, "invalid_argument"},
		{"an empty one", "", "", nil, http.StatusBadRequest, "invalid_argument"},
		{"another kind", "Content-Type", "application/proto; charset=utf-8", get, http.StatusUnsupportedMediaType, ""},
	} {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+r.addr+"/"+pb.FileServiceName+"/Get", bytes.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/proto")
		if c.header != "" {
			q.Header.Set(c.header, c.value)
		}
		answer, err := r.http.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != c.status || !strings.Contains(string(body), c.want) {
			t.Errorf("%s: %s, %q, %v; want %d and %q", c.name, answer.Status, body, err, c.status, c.want)
		}
		_ = answer.Body.Close()
	}
	r.gone()
	if calls := r.s.Snapshot().Calls["Get"]; calls.Time.Count != 10 || calls.Errors != 9 {
		t.Errorf("counted are %d calls, %d of them errors; want 10 and 9", calls.Time.Count, calls.Errors)
	}
}

// FuzzCut holds cut against the decoder of package proto.
func FuzzCut(f *testing.F) {
	whole, err := proto.Marshal(&pb.PutRequest{File: &pb.PutRequest_Path{Path: "/f"}, Data: []byte("abc"), Checksum: "crc32c:364b3fb7"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(append(bytes.Clone(whole), whole...))
	f.Add(protowire.AppendVarint(protowire.AppendTag(nil, putData, protowire.BytesType), 1<<40))
	f.Add(protowire.AppendVarint(protowire.AppendTag(nil, putData, protowire.VarintType), 7))
	f.Add(hostilePut("two files, and a group"))
	f.Fuzz(func(t *testing.T, b []byte) {
		want, got := &pb.PutRequest{}, &pb.PutRequest{}
		refused := proto.Unmarshal(b, want)
		data, err := cut(b, putData, func(rest []byte) error {
			return proto.UnmarshalOptions{Merge: true}.Unmarshal(rest, got)
		})
		if fmt.Sprint(err) != fmt.Sprint(refused) {
			t.Fatalf("%v, and package proto says %v", err, refused)
		}
		if err != nil {
			return
		}
		if got.Data = want.Data; !bytes.Equal(data, want.GetData()) || !proto.Equal(got, want) {
			t.Fatalf("%v, and package proto says %v", got, want)
		}
	})
}

// hostilePut is a message that no library would make.
func hostilePut(kind string) []byte {
	field := func(b []byte, n protowire.Number, v string) []byte {
		return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), v)
	}
	path := field(nil, 1, "/put")
	switch kind {
	case "data before its path":
		return append(field(nil, putData, "1234"), path...)
	case "data twice":
		return field(append(field(nil, putData, "1234"), path...), putData, "56")
	case "data and then none":
		return field(field(path, putData, "1234"), putData, "")
	case "two files, and a group":
		b := protowire.AppendTag(field(field(nil, 3, "sha256:00"), putData, "1234"), 99, protowire.StartGroupType)
		b = protowire.AppendTag(field(b, putData, "in the group"), 99, protowire.EndGroupType)
		return append(b, path...)
	case "data as a number":
		return protowire.AppendVarint(protowire.AppendTag(path, putData, protowire.VarintType), 7)
	case "an unknown field":
		return field(field(path, 1000, "unknown"), putData, "1234")
	case "a length beyond the message":
		return protowire.AppendVarint(protowire.AppendTag(path, putData, protowire.BytesType), 1<<62)
	case "a length of ten bytes":
		return append(protowire.AppendTag(path, putData, protowire.BytesType), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"...)
	case "cut short":
		return field(path, putData, "1234")[:len(path)+4]
	case "a group without an end":
		return protowire.AppendTag(field(path, putData, "1234"), 99, protowire.StartGroupType)
	case "an end without a group":
		return protowire.AppendTag(field(path, putData, "1234"), 99, protowire.EndGroupType)
	case "groups in groups":
		return append(path, bytes.Repeat(protowire.AppendTag(nil, 99, protowire.StartGroupType), 20_000)...)
	case "no UTF-8":
		return field(field(field(nil, 1, "/\xff"), putData, "1234"), putData, "5")
	case "no number":
		return append(field(path, putData, "1234"), 0)
	case "a number too large":
		return append(field(path, putData, "1234"), "\xf8\xff\xff\xff\x7f\x01"...)
	case "a wire type that is none":
		return append(field(path, putData, "1234"), 1<<3|7)
	}
	panic(kind)
}

// TestSameAsConnect makes requests twice: with their length, which are answered here, and
// in chunks, which are package connect's. Not a byte of the answers may differ.
func TestSameAsConnect(t *testing.T) {
	r := newRig(t, nil, func(o *Options) { o.Store = nil })
	r.make("/f", aFile, "content")
	message := func(m proto.Message) []byte { return encode(m, false) }
	get := message(&pb.GetRequest{File: &pb.GetRequest_Path{Path: "/f"}})
	type request struct {
		call, header, value string
		body                []byte
	}
	requests := []request{
		{"Get", "", "", get}, {"Get", "Connect-Protocol-Version", "1", get},
		{"Get", "Accept-Encoding", "gzip", get}, {"Get", "Connect-Accept-Encoding", "gzip", get},
		{"Get", "Content-Encoding", "identity", get},
		{"Get", "", "", message(&pb.GetRequest{File: &pb.GetRequest_Path{Path: "/f"}, Offset: 8})},
		{"Get", "", "", message(&pb.GetRequest{File: &pb.GetRequest_Path{Path: "/missing"}})},
		{"Get", "", "", message(&pb.GetRequest{File: &pb.GetRequest_Content{Content: sumOf("sha256", nil)}})},
		{"Put", "", "", message(&pb.PutRequest{File: &pb.PutRequest_Path{Path: "/f"}, Data: small, Checksum: sumOf("crc32c", nil)})},
		{"Put", "", "", message(&pb.PutRequest{File: &pb.PutRequest_Path{Path: "/f"}, Data: make([]byte, MaxData+1)})},
		{"Put", "", "", make([]byte, maxMessage)}, {"Put", "", "", make([]byte, maxMessage+1)},
		{"Delete", "", "", message(&pb.DeleteRequest{File: &pb.DeleteRequest_Path{Path: "/f/below"}})},
		{"List", "", "", message(&pb.ListRequest{File: &pb.ListRequest_Path{Path: "/"}, PageToken: "x"})},
		{"MakeDirectory", "", "", message(&pb.MakeDirectoryRequest{File: &pb.MakeDirectoryRequest_Path{Path: "/f"}})},
		{"Echo", "", "", message(&pb.EchoRequest{Data: make([]byte, maxEcho)})}, {"Echo", "", "", message(&pb.EchoRequest{Data: make([]byte, maxEcho+1)})},
		{"Exist", "", "", nil}, {"Stat", "", "", []byte("\xff")}, {"Nothing", "", "", nil},
	}
	for _, v := range []string{"", "0", "-1", "+5000", " 5000", "5000 ", "soon", "12345678901", "9999999999", "99999.0"} {
		requests = append(requests, request{"Get", "Connect-Timeout-Ms", v, get})
	}
	for _, kind := range []string{
		"data before its path", "data twice", "data and then none", "two files, and a group", "data as a number", "an unknown field",
		"a length beyond the message", "a length of ten bytes", "cut short", "a group without an end", "an end without a group",
		"groups in groups", "no UTF-8", "no number", "a number too large", "a wire type that is none",
	} {
		requests = append(requests, request{"Put", "", "", hostilePut(kind)})
	}
	for _, q := range requests {
		here := r.post(q.call, q.header, q.value, q.body, true)
		if connects := r.post(q.call, q.header, q.value, q.body, false); here != connects {
			t.Errorf("%s, %s %q, %.40q:\n%s\nand from package connect\n%s", q.call, q.header, q.value, q.body, here, connects)
		}
	}
	if tree := r.tree(); strings.Contains(tree, tempPrefix) {
		t.Errorf("a temporary is left: %s", tree)
	}
}

// post returns an answer whole, but for what is never twice the same.
func (r *rig) post(call, header, value string, body []byte, sized bool) string {
	r.Helper()
	q, err := http.NewRequestWithContext(r.Context(), http.MethodPost, "http://"+r.addr+"/"+pb.FileServiceName+"/"+call, bytes.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	if !sized {
		q.Body, q.ContentLength = io.NopCloser(bytes.NewReader(body)), -1
	}
	q.Header.Set("Content-Type", "application/proto")
	q.Header.Set("Accept-Encoding", "identity")
	if header != "" {
		q.Header[header] = []string{value}
	}
	answer, err := r.http.Do(q)
	if err != nil {
		r.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		r.Fatal(err)
	}
	answer.Header.Del("Date")
	if answer.Header.Get("Accept-Encoding") == "" {
		answer.Header.Del("Accept-Encoding") // to have it empty says as much as not to have it
	}
	if m := map[string]proto.Message{"Get": &pb.GetResponse{}, "Put": &pb.PutResponse{}, "Echo": &pb.EchoResponse{}}[call]; m != nil && answer.StatusCode == http.StatusOK {
		if err := proto.Unmarshal(b, m); err != nil {
			r.Fatal(err)
		}
		forgetTimes(m)
		answer.Header.Del("Content-Length")
		b = []byte(compact(m))
	}
	return fmt.Sprintf("%s %q %q", answer.Status, answer.Header, b)
}
