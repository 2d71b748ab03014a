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
	if calls := r.s.Snapshot().Calls["Get"]; calls.Time.Count != 7 || calls.Errors != 6 {
		t.Errorf("counted are %d calls, %d of them errors; want 7 and 6", calls.Time.Count, calls.Errors)
	}
	if n := r.s.buffers.Outstanding(); n != 0 {
		t.Errorf("%d buffers are still lent", n)
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
	f.Fuzz(func(t *testing.T, b []byte) {
		want, got := &pb.PutRequest{}, &pb.PutRequest{}
		refused := proto.Unmarshal(b, want)
		rest, data, err := cut(b, putData)
		if err == nil {
			err = proto.Unmarshal(rest, got)
		}
		if (err == nil) != (refused == nil) {
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
