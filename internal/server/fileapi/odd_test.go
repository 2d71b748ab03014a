package fileapi

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "github.com/nfsbox/nfsbox/proto/fileapi"
)

// TestUnary makes requests that a library would not.
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

// putData is the number in fileapi.proto of the field that holds a file's bytes.
const putData = 8

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

// TestOddMessages puts by messages that no library would make: each is what any decoder of
// protobuf makes of it, or refused.
func TestOddMessages(t *testing.T) {
	r := newRig(t, nil, func(o *Options) { o.Store = nil })
	for kind, want := range map[string]struct {
		status int
		held   string // by the file then; "": there is none
	}{
		"data before its path": {200, "1234"}, "data twice": {200, "56"}, "data and then none": {200, ""}, "two files, and a group": {200, "1234"},
		"data as a number": {200, ""}, "an unknown field": {200, "1234"}, "a length beyond the message": {400, ""}, "a length of ten bytes": {400, ""},
		"cut short": {400, ""}, "a group without an end": {400, ""}, "an end without a group": {400, ""}, "groups in groups": {400, ""},
		"no UTF-8": {400, ""}, "no number": {400, ""}, "a number too large": {400, ""}, "a wire type that is none": {400, ""},
	} {
		a := r.expect(want.status, "POST", "/"+pb.FileServiceName+"/Put", string(hostilePut(kind)), "Content-Type", "application/proto")
		if got := r.do("GET", "/put", ""); (got.StatusCode == 200) != (want.status == 200) || want.status == 200 && got.body != want.held {
			t.Errorf("%s: %s, and the file has %q", kind, a.Status, got.body)
		}
		r.do("DELETE", "/put", "")
	}
	if tree := r.tree(); strings.Contains(tree, tempPrefix) {
		t.Errorf("a temporary is left: %s", tree)
	}
}
