package fileapi

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

// raw is a connection past any client's library.
func (r *rig) raw() net.Conn {
	r.Helper()
	c := r.conn()
	r.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		r.Fatal(err)
	}
	return c
}

// request is one over HTTP/1.1, with its length if no header says otherwise.
func rawRequest(method, call, headers string, body []byte) string {
	length := fmt.Sprintf("Content-Length: %d\r\n", len(body))
	if strings.Contains(headers, "Content-Length") || strings.Contains(headers, "Transfer-Encoding") {
		length = ""
	}
	return fmt.Sprintf("%s /%s/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/proto\r\n%s%s\r\n%s",
		method, pb.FileServiceName, call, headers, length, body)
}

// TestRawRequests sends requests as a proxy or an attacker may, several on a connection,
// and reads the answers, each as long as it says. 0 is the connection's end.
func TestRawRequests(t *testing.T) {
	r := newRig(t, nil, nil)
	r.make("/f", aFile, "content")
	before := r.tree()
	get := encode(&pb.GetRequest{File: &pb.GetRequest_Path{Path: "/f"}}, false)
	evil := encode(&pb.DeleteRequest{File: &pb.DeleteRequest_Path{Path: "/f"}}, false)
	put := encode(&pb.PutRequest{File: &pb.PutRequest_Path{Path: "/f"}, Data: large[:100_000], Checksum: sumOf("crc32c", nil)}, false)
	smuggled := rawRequest("POST", "Delete", "", evil)
	ok := rawRequest("POST", "Get", "", get)
	chunk := func(b []byte, trailer string) []byte {
		return fmt.Appendf(nil, "%x\r\n%s\r\n0\r\n%s\r\n", len(b), b, trailer)
	}
	chunked := "Transfer-Encoding: chunked\r\n"
	for _, c := range []struct {
		name, send string
		want       []int
	}{
		{"one after the other", ok + ok + ok, []int{200, 200, 200}},
		{"after an error with its body", rawRequest("POST", "Put", "", put) + ok, []int{500, 200}},
		{"after an error without a look at the body", rawRequest("POST", "Put", "Connect-Timeout-Ms: x\r\n", put) + ok, []int{400, 200}},
		{"after an error, and a body too long to be read for nothing", rawRequest("POST", "Put", "Connect-Timeout-Ms: x\r\n", slices.Repeat(put, 5)) + smuggled, []int{400, 0}},
		{"after another version", rawRequest("POST", "Put", "Connect-Protocol-Version: 2\r\n", put) + ok, []int{400, 200}},
		{"after a message that is none", rawRequest("POST", "Put", "", []byte("\xff\xff")) + ok, []int{400, 200}},
		{"HEAD", rawRequest("HEAD", "Get", "", nil) + ok, []int{405, 200}},
		{"GET of what changes", rawRequest("GET", "Delete", "", evil) + ok, []int{405, 200}},
		{"chunks", rawRequest("POST", "Get", chunked, chunk(get, "")) + ok, []int{200, 200}},
		{"chunks and a trailer", rawRequest("POST", "Get", "Trailer: Content-Length\r\n"+chunked, chunk(get, "X-Trailer: 1\r\n")) + ok, []int{400, 0}},
		{"chunks and an unannounced trailer", rawRequest("POST", "Get", chunked, chunk(get, "Content-Length: 1\r\n")) + ok, []int{200, 200}},
		{"two lengths", rawRequest("POST", "Get", fmt.Sprintf("Content-Length: %d\r\nContent-Length: %d\r\n", len(get), len(get)+1), get) + smuggled, []int{400, 0}},
		{"one length, twice", rawRequest("POST", "Get", strings.Repeat(fmt.Sprintf("Content-Length: %d\r\n", len(get)), 2), get) + ok, []int{200, 200}},
		{"a list of lengths", rawRequest("POST", "Get", fmt.Sprintf("Content-Length: %d, %d\r\n", len(get), len(get)), get) + smuggled, []int{400, 0}},
		{"a signed length", rawRequest("POST", "Get", fmt.Sprintf("Content-Length: +%d\r\n", len(get)), get) + smuggled, []int{400, 0}},
		{"a negative length", rawRequest("POST", "Get", "Content-Length: -1\r\n", get) + smuggled, []int{400, 0}},
		{"a length in hexadecimal digits", rawRequest("POST", "Get", fmt.Sprintf("Content-Length: 0x%x\r\n", len(get)), get) + smuggled, []int{400, 0}},
		{"a length of 2^64", rawRequest("POST", "Get", "Content-Length: 18446744073709551616\r\n", get) + smuggled, []int{400, 0}},
		{"neither length nor chunks", rawRequest("POST", "Echo", "Content-Length: 0\r\n", nil) + ok, []int{200, 200}},
		{"two kinds of chunks", rawRequest("POST", "Get", chunked+"Transfer-Encoding: identity\r\n", chunk(get, "")) + smuggled, []int{501, 0}},
		{"an unknown encoding", rawRequest("POST", "Get", "Transfer-Encoding: xchunked\r\n", chunk(get, "")) + smuggled, []int{501, 0}},
		{"a space before the colon", rawRequest("POST", "Get", fmt.Sprintf("Content-Length : %d\r\n", len(get)), get) + smuggled, []int{400, 0}},
		{"HTTP/1.0", strings.Replace(ok, "HTTP/1.1", "HTTP/1.0", 1) + smuggled, []int{200, 0}},
		{"HTTP/1.0 that stays", strings.Replace(rawRequest("POST", "Get", "Connection: keep-alive\r\n", get), "HTTP/1.1", "HTTP/1.0", 1) + ok, []int{200, 200}},
		{"HTTP/1.0 in chunks", strings.Replace(rawRequest("POST", "Get", chunked, chunk(get, "")), "HTTP/1.1", "HTTP/1.0", 1) + smuggled, []int{400, 0}},
		{"to be told to go on", rawRequest("POST", "Get", "Expect: 100-continue\r\n", get) + ok, []int{100, 200, 200}},
		{"not to be told to go on", rawRequest("POST", "Get", "Expect: 100-continue\r\nConnect-Timeout-Ms: x\r\n", get), []int{400, 0}},
		{"to expect something else", rawRequest("POST", "Get", "Expect: 200-ok\r\n", get), []int{417, 0}},
		{"two tokens", rawRequest("POST", "Get", "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n", get) + smuggled, []int{401, 0}},
		{"from a web page", rawRequest("POST", "Get", "Origin: http://localhost\r\n", get) + smuggled, []int{401, 0}},
		{"under another name", strings.Replace(ok, "Host: localhost", "Host: rebound.example", 1) + smuggled, []int{401, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := r.raw()
			if _, err := io.WriteString(conn, c.send); err != nil {
				t.Fatal(err)
			}
			if got := answers(conn, len(c.want)); !slices.Equal(got, c.want) {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
	if after := r.tree(); after != before {
		t.Errorf("there is now\n%s\nand was\n%s", after, before)
	}
}

// answers reads n answers, and returns what they are.
func answers(c net.Conn, n int) (got []int) {
	b := bufio.NewReader(c)
	for range n {
		a, err := http.ReadResponse(b, nil)
		if err != nil {
			return append(got, 0)
		}
		if a.StatusCode != http.StatusContinue && a.StatusCode != http.StatusMethodNotAllowed {
			if _, err := io.Copy(io.Discard, a.Body); err != nil { // it is not as long as it says
				return append(got, -1)
			}
		}
		_ = a.Body.Close()
		got = append(got, a.StatusCode)
	}
	return got
}

// TestCutOffPuts closes connections in the middle of a Put: nothing is left of it.
func TestCutOffPuts(t *testing.T) {
	onEvery(t, func(t *testing.T, fs vfs.FS) {
		r := newRig(t, fs, nil)
		r.make("/f", aFile, "before")
		before := r.tree()
		body := rawRequest("POST", "Put", "", encode(&pb.PutRequest{File: &pb.PutRequest_Path{Path: "/f"}, Data: random(MaxData)}, false))
		rnd := rand.New(rand.NewPCG(3, 6))
		for range 2 * kills {
			c := r.raw()
			// Whether the server has begun to read it matters to neither side.
			_, _ = io.WriteString(c, body[:rnd.IntN(len(body)-1)])
			if rnd.IntN(2) == 0 {
				_ = c.(*net.TCPConn).SetLinger(0) // a reset and not an end
			}
			_ = c.Close()
		}
		r.gone()
		if after := r.tree(); after != before {
			t.Errorf("there is now\n%.300s\nand was\n%s", after, before)
		}
	})
}

// TestSlowPuts has many clients that announce a megabyte and send next to nothing, some
// of which go on for a while, and one that is as fast as ever.
func TestSlowPuts(t *testing.T) {
	n := 2000
	if testing.Short() {
		n = 200
	}
	r := newRig(t, nil, nil)
	body := rawRequest("POST", "Put", "", encode(&pb.PutRequest{File: &pb.PutRequest_Path{Path: "/slow"}, Data: random(MaxData)}, false))
	for i := range n {
		send := 1000
		if i%50 == 0 {
			send += onTrust
		}
		if _, err := io.WriteString(r.raw(), body[:send]); err != nil {
			t.Fatal(err)
		}
	}
	r.inProgress(n)
	if held := r.s.Snapshot().Memory; held > int64(n)*(onTrust+onTrust*4/50+portion) {
		t.Errorf("%d slow clients hold %d bytes", n, held)
	}
	for i := range 200 {
		if _, err := r.client["protobuf"].Put(t.Context(), &pb.PutRequest{File: &pb.PutRequest_Path{Path: "/fast"}, Data: large[:50<<10]}); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
}

// TestIdlePuts cuts off a client that does not send what it has announced, and one that
// does not take what it has asked for.
func TestIdlePuts(t *testing.T) {
	timed(t, func(o *Options) { o.Limits.Idle = 100 * time.Millisecond }, testIdlePuts)
}

func testIdlePuts(r *rig) {
	r.make("/f", aFile, string(random(MaxData)))
	before := r.tree()
	put := rawRequest("POST", "Put", "", encode(&pb.PutRequest{File: &pb.PutRequest_Path{Path: "/f"}, Data: random(MaxData)}, false))
	for _, sent := range []int{0, 1, onTrust, 5 * onTrust, MaxData} {
		c := r.raw()
		if _, err := io.WriteString(c, put[:strings.Index(put, "\r\n\r\n")+4+sent]); err != nil {
			r.Fatal(err)
		}
		if got := answers(c, 2); !slices.Equal(got, []int{http.StatusGatewayTimeout, 0}) {
			r.Errorf("who sends %d bytes gets %d", sent, got)
		}
	}
	get := rawRequest("POST", "Get", "", encode(&pb.GetRequest{File: &pb.GetRequest_Path{Path: "/f"}}, false))
	c := r.raw()
	const many = 60 // of which no two sockets hold all
	if _, err := io.WriteString(c, strings.Repeat(get, many)); err != nil {
		r.Fatal(err)
	}
	for i := 0; r.s.Snapshot().Slow < 6; i++ {
		if i == 20_000 {
			r.Fatal("who takes nothing is not cut off")
		}
		time.Sleep(time.Millisecond) // for the server's clock
	}
	r.wait()
	if got := answers(c, many); got[len(got)-1] > 0 {
		r.Errorf("all %d answers have come", len(got))
	}
	if after := r.tree(); after != before {
		r.Error("the tree has changed")
	}
	_ = c.Close()
	r.gone()
}

// TestMemoryOfMessages has messages that hold no file, but what nobody knows: all that is
// made of them counts.
func TestMemoryOfMessages(t *testing.T) {
	unknown := protowire.AppendBytes(protowire.AppendTag(nil, 1000, protowire.BytesType), make([]byte, 1<<20))
	for _, call := range []string{"Put", "Stat", "Echo"} {
		for _, enough := range []bool{true, false} {
			r := newRig(t, nil, func(o *Options) {
				if o.Limits.MemoryPerClient = 2 << 20; enough {
					o.Limits.MemoryPerClient = 4 << 20
				}
			})
			c := r.raw()
			if _, err := io.WriteString(c, rawRequest("POST", call, "", unknown)); err != nil {
				t.Fatal(err)
			}
			got := answers(c, 1)
			if refused := got[0] == http.StatusTooManyRequests; refused == enough {
				t.Errorf("%s: %d bytes are enough for a megabyte: %d", call, r.s.o.Limits.MemoryPerClient, got)
			}
		}
	}
}

// TestMemoryOfPages lists a directory, of which each page counts.
func TestMemoryOfPages(t *testing.T) {
	r := newRig(t, nil, func(o *Options) { o.Limits.MemoryPerClient = 256 << 10 })
	for i := range maxPage {
		r.make(fmt.Sprintf("/%0200d", i), aFile, "")
	}
	for _, encoding := range encodings {
		q := &pb.ListRequest{File: &pb.ListRequest_Path{Path: "/"}}
		if _, err := r.client[encoding].List(t.Context(), q); connect.CodeOf(err) != connect.CodeResourceExhausted {
			t.Errorf("%s: a page of %d names, whose length is 200, fits %d bytes: %v", encoding, maxPage, r.s.o.Limits.MemoryPerClient, err)
		}
		q.PageSize = maxPage / 10
		if m, err := r.client[encoding].List(t.Context(), q); err != nil || len(m.GetEntries()) != maxPage/10 {
			t.Errorf("%s: a smaller page: %v", encoding, err)
		}
	}
}

// gigabyte is the size of the uploads that are killed.
const gigabyte = 1 << 30

// TestKilledGigabyte kills uploads of a gigabyte at random moments, more often early ones
// than late: what was there stays, and nothing else becomes visible.
func TestKilledGigabyte(t *testing.T) {
	if testing.Short() {
		t.Skip("moves gigabytes")
	}
	r := newRig(t, newDisk(t), nil)
	r.make("/dir", aDir, "")
	r.make("/dir/file", aFile, "what was there before")
	before := r.tree()
	rnd, moved := rand.New(rand.NewPCG(4, 6)), 0
	part := encodePart(&pb.UploadRequest{Part: &pb.UploadRequest_Data{Data: make([]byte, MaxData)}})
	head := encodePart(&pb.UploadRequest{Part: &pb.UploadRequest_Header{Header: &pb.UploadHeader{
		File: &pb.UploadHeader_Path{Path: "/dir/file"}, Checksum: pb.CRC32C, Size: new(uint64(gigabyte)), Sync: true,
	}}})
	for range 6 {
		u := rnd.Float64()
		m := int(u * u * u * u * u * u * (gigabyte >> 20))
		c := r.raw()
		_, err := fmt.Fprintf(c, "POST /%s/Upload HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/connect+proto\r\nContent-Length: %d\r\n\r\n%s",
			pb.FileServiceName, 2*gigabyte, head)
		for i := 0; i < m && err == nil; i++ {
			_, err = c.Write(part)
			err = errors.Join(err, c.SetDeadline(time.Now().Add(time.Minute))) // of the next part
		}
		if err == nil {
			_, err = c.Write(part[:rnd.IntN(len(part)-1)])
		}
		if err := errors.Join(err, c.Close()); err != nil {
			t.Fatal(err)
		}
		moved += m
		r.gone()
		if after := r.tree(); after != before {
			t.Fatalf("after %d MiB there is\n%.300s\nand was\n%s", m, after, before)
		}
	}
	t.Logf("%d MiB were moved", moved)
}

// encodePart is one message of a stream.
func encodePart(m proto.Message) []byte {
	b := encode(m, false)
	return bytes.Join([][]byte{{0, byte(len(b) >> 24), byte(len(b) >> 16), byte(len(b) >> 8), byte(len(b))}, b}, nil)
}
