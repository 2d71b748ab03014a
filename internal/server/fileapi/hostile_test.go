package fileapi

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

// attacks is how many hostile requests the test makes.
const attacks = 10_000

// attacker makes requests that must be refused, the same ones on every run.
type attacker struct {
	*rand.Rand
	n int
}

// path is one that no request may get anywhere with: every part of it is hostile, or
// what it stands below is.
func (a *attacker) path() string {
	evil := []string{
		"/../../etc/passwd", "/..", "/keep/..", "/keep/../../keep", "/out/passwd", "/up/up/up/etc/passwd", "/loop/x", "/a\x00b",
		"/" + strings.Repeat("a", 256), "/" + strings.Repeat("a/", 2200), "relative", "", "/keep/file/below", "/" + tempPrefix + "00-1",
		"/keep/" + tempPrefix, "/missing/x", "/keep/..//../x", "\\..\\..", "/keep/\x00/file", "../keep/file", "/down/../../../x",
		"/./../x", "//../x", "/%2e%2e/x", "/keep/file/", "/dangling/x",
	}
	return evil[a.IntN(len(evil))]
}

// number is one at an edge.
func (a *attacker) number() uint64 {
	edge := []uint64{1 << 63, 1<<63 - 1, ^uint64(0), 1 << 62, 1<<40 + 1, 1<<64 - 4096}
	return edge[a.IntN(len(edge))]
}

// messages are requests to a call, of which each would be refused if it came whole.
func (a *attacker) messages() (call string, m []proto.Message) {
	path, data := a.path(), small[:a.IntN(len(small))]
	token := []string{"x", "AAAA", strings.Repeat("A", 23), strings.Repeat("/", 23), "AQ" + strings.Repeat("_", 21)}[a.IntN(5)]
	one := func(q proto.Message) []proto.Message { return []proto.Message{q} }
	switch a.IntN(13) {
	case 0:
		return "Stat", one(&pb.StatRequest{File: &pb.StatRequest_RawPath{RawPath: []byte(path)}})
	case 1:
		return "Put", one(&pb.PutRequest{File: &pb.PutRequest_RawPath{RawPath: []byte(path)}, Data: data})
	case 2:
		return "Put", one(&pb.PutRequest{File: &pb.PutRequest_Path{Path: "/keep/file"}, Data: data, Offset: new(a.number())})
	case 3:
		return "Put", one(&pb.PutRequest{File: &pb.PutRequest_Path{Path: "/keep/file"}, Data: data, Checksum: "sha256:" + strings.Repeat("0", a.IntN(70))})
	case 4:
		return "Put", one(&pb.PutRequest{File: &pb.PutRequest_Path{Path: "/keep/file"}, Data: data, Mode: new(0o10000 | a.Uint32())})
	case 5:
		return "Put", one(&pb.PutRequest{File: &pb.PutRequest_Content{Content: "sha256:" + path}, Data: data})
	case 6:
		return "List", one(&pb.ListRequest{File: &pb.ListRequest_Path{Path: "/keep"}, PageToken: token, PageSize: a.Uint32()})
	case 7:
		return "Get", one(&pb.GetRequest{File: &pb.GetRequest_Path{Path: "/keep/file"}, Offset: a.number(), Length: new(a.Uint64())})
	case 8:
		return "Download", one(&pb.DownloadRequest{File: &pb.DownloadRequest_RawPath{RawPath: []byte(path)}, Offset: a.number()})
	case 9:
		return "Delete", one(&pb.DeleteRequest{File: &pb.DeleteRequest_RawPath{RawPath: []byte(path)}, Directory: a.IntN(2) == 0})
	case 10:
		return "MakeDirectory", one(&pb.MakeDirectoryRequest{File: &pb.MakeDirectoryRequest_RawPath{RawPath: []byte(path)}})
	default:
		return "Upload", a.upload(path, data)
	}
}

// upload is one that must fail: in its header, its order, its trailer, or its path.
func (a *attacker) upload(path string, data []byte) []proto.Message {
	head := &pb.UploadHeader{File: &pb.UploadHeader_Path{Path: "/keep/file"}}
	h := &pb.UploadRequest{Part: &pb.UploadRequest_Header{Header: head}}
	d := &pb.UploadRequest{Part: &pb.UploadRequest_Data{Data: data}}
	t := &pb.UploadRequest{Part: &pb.UploadRequest_Trailer{Trailer: &pb.UploadTrailer{Size: uint64(len(data))}}}
	switch a.IntN(9) {
	case 0:
		head.File = &pb.UploadHeader_RawPath{RawPath: []byte(path)}
	case 1:
		return []proto.Message{d, h, t}
	case 2:
		return []proto.Message{h, d, h, t}
	case 3:
		return []proto.Message{h, d, t, d}
	case 4:
		return []proto.Message{h, d}
	case 5:
		t.GetTrailer().Size += a.Uint64N(1<<63) + 1
	case 6:
		t.GetTrailer().Checksum = sumOf("sha256", []byte("something else"))
	case 7:
		head.Size = new(a.number())
	case 8:
		return []proto.Message{h, &pb.UploadRequest{}, t}
	}
	return []proto.Message{h, d, t}
}

// attack is the bytes of a request, and what they are said to be.
type attack struct {
	call, contentType string
	header            http.Header
	body              []byte
}

func (a *attacker) request() attack {
	a.n++
	call, messages := a.messages()
	r := attack{call: call, header: http.Header{}}
	stream := call == "Upload" || call == "Download"
	r.contentType = map[bool]string{false: "application/", true: "application/connect+"}[stream]
	isJSON := a.IntN(2) == 0
	r.contentType += map[bool]string{false: "proto", true: "json"}[isJSON]
	for _, m := range messages {
		b := encode(m, isJSON)
		if stream {
			b = prefixed(b)
		}
		r.body = append(r.body, b...)
	}
	switch a.IntN(8) {
	case 0: // a stream that ends too early
		r.body = r.body[:a.IntN(len(r.body)+1)]
	case 1: // bytes that were hit
		if call != "Put" && call != "Upload" && call != "Delete" && call != "MakeDirectory" {
			for range 1 + a.IntN(4) {
				r.body[a.IntN(len(r.body))] ^= byte(1 + a.IntN(255))
			}
		}
	case 2: // a message that claims to be very long
		if stream {
			binary.BigEndian.PutUint32(r.body[1:], a.Uint32()|1<<24)
		}
	case 3:
		r.header.Set([]string{"Content-Encoding", "Connect-Content-Encoding"}[a.IntN(2)], "gzip")
		r.body = append([]byte{1}, r.body...)
	case 4:
		r.contentType = []string{"", "text/plain", "application/json; charset=latin-1", "application/grpc+thrift", "multipart/form-data"}[a.IntN(5)]
	case 5:
		r.header.Set("Connect-Protocol-Version", "99")
	case 6:
		r.header.Set("Connect-Timeout-Ms", []string{"-1", "x", "99999999999", "0"}[a.IntN(4)])
	}
	return r
}

func encode(m proto.Message, isJSON bool) []byte {
	b, err := proto.Marshal(m)
	if isJSON {
		b, err = marshalJSON(m)
	}
	if err != nil {
		panic(err)
	}
	return b
}

// TestHostile makes requests that no honest client would: each gets an error, and
// together they change nothing.
func TestHostile(t *testing.T) {
	onEvery(t, func(t *testing.T, fs vfs.FS) {
		r := newRig(t, fs, func(o *Options) { o.Limits.Idle = 2 * time.Second; o.Report = func(error) {} })
		r.make("/keep", aDir, "")
		r.make("/keep/file", aFile, "what is to be kept")
		r.make("/out", aLink("/etc"), "")
		r.make("/up", aLink(".."), "")
		r.make("/loop", aLink("loop"), "")
		r.make("/dangling", aLink("/no/where"), "")
		before := r.tree()
		a := &attacker{Rand: rand.New(rand.NewPCG(1, 6))}
		n := attacks / 2 // on each file system
		if testing.Short() {
			n /= 10
		}
		for range n {
			q := a.request()
			if answer, refused := r.send(&q); !refused {
				t.Fatalf("request %d, %s as %s with %v: %q is answered with %q", a.n, q.call, q.contentType, q.header, q.body, answer)
			}
		}
		if after := r.tree(); after != before {
			t.Errorf("there is now\n%s\nand was\n%s", after, before)
		}
		if !strings.Contains(before, fmt.Sprintf("%x", "what is to be kept")) {
			t.Error("nothing was there to be kept")
		}
	})
}

// send returns the answer, and whether it is an error.
func (r *rig) send(q *attack) (string, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	body := io.Reader(bytes.NewReader(q.body))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+r.addr+"/"+pb.FileServiceName+"/"+q.call, body)
	if err != nil {
		r.Fatal(err)
	}
	req.Header = q.header
	req.Header.Set("Content-Type", q.contentType)
	res, err := r.http.Do(req)
	if err != nil {
		return err.Error(), ctx.Err() == nil
	}
	answer, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil {
		return err.Error(), ctx.Err() == nil
	}
	if res.StatusCode != http.StatusOK {
		return string(answer), true
	}
	// A stream says how it went in its last message, as JSON.
	return string(answer), bytes.Contains(answer, []byte(`{"error":{"code":"`))
}

// TestHostileConnections speaks to the port past any client's library.
func TestHostileConnections(t *testing.T) {
	r := newRig(t, nil, func(o *Options) { o.Limits.Idle = 300 * time.Millisecond })
	r.make("/file", aFile, "what is to be kept")
	before := r.tree()
	post := "POST /" + pb.FileServiceName + "/Put HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	body := `{"path":"/file","data":"AAAA"}`
	for name, raw := range map[string]string{
		"a header of a megabyte":       post + "X: " + strings.Repeat("x", 1<<20) + "\r\n\r\n",
		"two lengths":                  post + "Content-Length: 30\r\nContent-Length: 31\r\n\r\n" + body,
		"a length and chunks":          post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"a negative length":            post + "Content-Length: -1\r\n\r\n" + body,
		"less than announced":          post + "Content-Length: 31\r\n\r\n" + body,
		"a huge length":                post + "Content-Length: 999999999999\r\n\r\n" + body,
		"a broken chunk":               post + "Transfer-Encoding: chunked\r\n\r\n1e\r\n" + body + "\r\nzz\r\n",
		"a chunk cut short":            post + "Transfer-Encoding: chunked\r\n\r\n1e\r\n" + body + "\r\n",
		"a chunk longer than anything": post + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n" + body,
		"a name with a NUL":            "POST /" + pb.FileServiceName + "/Put\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"no host":                      "POST / HTTP/1.1\r\n\r\n",
		"HTTP/2 and nothing":           "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"HTTP/2 and noise":             "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + strings.Repeat("\xff", 4096),
		"GET of what changes":          "GET /" + pb.FileServiceName + "/Delete?encoding=json&message=%7B%22path%22%3A%22%2Ffile%22%7D HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"noise":                        strings.Repeat("\x00\xff", 5000),
	} {
		c, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, raw) // the server may have hung up by now
		_ = c.(*net.TCPConn).CloseWrite()
		answer, _ := io.ReadAll(c)
		if bytes.Contains(answer, []byte("200 OK")) {
			t.Errorf("%s: %q", name, answer)
		}
		_ = c.Close()
	}
	if after := r.tree(); after != before {
		t.Errorf("there is now\n%s\nand was\n%s", after, before)
	}
}

func marshalJSON(m proto.Message) ([]byte, error) {
	b, err := protojson.Marshal(m)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = json.Compact(&out, b)
	return out.Bytes(), err
}

// TestDeniedHoldsNothing: a client that is not admitted, and never sends the rest of its
// request, gets its answer and keeps no connection.
func TestDeniedHoldsNothing(t *testing.T) {
	for _, request := range []string{
		"PUT /f HTTP/1.1\r\nHost: elsewhere\r\nContent-Length: 100\r\n\r\nhalf",
		"PUT /f HTTP/1.1\r\nHost: elsewhere\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
		rawRequest("POST", "Put", "Authorization: Bearer none\r\n", make([]byte, 1000))[:400],
	} {
		timed(t, nil, func(r *rig) {
			c := r.conn()
			defer func() { _ = c.Close() }()
			began := time.Now()
			if _, err := io.WriteString(c, request); err != nil {
				r.Fatal(err)
			}
			if err := c.SetReadDeadline(began.Add(time.Hour)); err != nil {
				r.Fatal(err)
			}
			answer, err := io.ReadAll(c)
			if !strings.HasPrefix(string(answer), "HTTP/1.1 401 ") || err != nil || time.Since(began) > 2*deniedTime {
				t.Errorf("after %v: %v\n%.200s", time.Since(began), err, answer)
			}
		})
	}
}
