package fileapi

import (
	"io"
	"net"
	"testing"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/server/object"
	pb "github.com/nfsbox/nfsbox/proto/fileapi"
)

// TestHalfRequests: as many clients as there are connections send half a request each, and keep
// no other one out. A call in progress is not cut off for it.
func TestHalfRequests(t *testing.T) {
	for name, half := range map[string]string{
		"nothing": "", "half a head": "PUT /f HTTP/1.1\r\nHost: local", "half of HTTP/2": "PRI * HTTP/2.0\r\n",
		"half a body, denied": "PUT /f HTTP/1.1\r\nHost: elsewhere\r\nContent-Length: 100\r\n\r\nhalf",
	} {
		t.Run(name, func(t *testing.T) {
			const conns = 8
			r := newRig(t, nil, func(o *Options) {
				o.Limits.Conns = conns
				o.Whose = func(c net.Conn) string { return c.RemoteAddr().String() }
			})
			r.make("/dir", aDir, "")
			held := r.slowly(1)
			stream, err := r.client["grpc"].Upload(t.Context()) // over HTTP/2
			if err == nil {
				err = stream.Send(&pb.UploadRequest{Part: &pb.UploadRequest_Header{Header: &pb.UploadHeader{File: &pb.UploadHeader_Path{Path: "/dir/g"}}}})
			}
			if err != nil {
				t.Fatal(err)
			}
			r.inProgress(2)
			for range 2 * conns {
				c := r.conn()
				held = append(held, c)
				if _, err := io.WriteString(c, half); err != nil {
					t.Fatal(err)
				}
			}
			for range 3 {
				if _, err := r.client["json"].Echo(t.Context(), &pb.EchoRequest{}); err != nil {
					t.Error(err)
				}
				r.http.CloseIdleConnections()
			}
			r.inProgress(2)
			if _, err := stream.CloseAndReceive(); connect.CodeOf(err) != connect.CodeInvalidArgument {
				t.Errorf("an upload without a trailer: %v", err)
			}
			for _, c := range held {
				_ = c.Close()
			}
			r.inProgress(0)
		})
	}
}

// from is a connection from an address.
type from struct {
	net.Conn
	addr string
}

func (f from) RemoteAddr() net.Addr {
	a, err := net.ResolveTCPAddr("tcp", f.addr)
	if err != nil {
		panic(err)
	}
	return a
}

// TestWhose: a client whom no rule of an export admits is a stranger, unless there is content,
// which no rule is about.
func TestWhose(t *testing.T) {
	table, err := export.NewTable(export.Key{1},
		export.Export{Path: "/", FS: newMemory(t), Clients: []export.Rule{{Match: "192.0.2.0/24"}, {Match: "198.51.100.1", Secure: true}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, store := range []object.Store{nil, object.NewMemory(object.MemoryOptions{})} {
		s, err := New(t.Context(), Options{Table: table, Store: store})
		if err != nil {
			t.Fatal(err)
		}
		for addr, want := range map[string]string{"192.0.2.7:1234": "192.0.2.7", "198.51.100.1:900": "198.51.100.1", "198.51.100.1:1024": "", "203.0.113.1:1": ""} {
			if store != nil {
				want, _, _ = net.SplitHostPort(addr)
			}
			if got := s.whose(from{addr: addr}); got != want {
				t.Errorf("%s, with content %v: %q, want %q", addr, store != nil, got, want)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
