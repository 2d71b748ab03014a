package fileapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/sim"
	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

// rig is a server on a loopback port, and what is behind it.
type rig struct {
	testing.TB
	fs     vfs.FS // below the export, as root
	s      *Server
	net    *sim.Network // nil: loopback
	addr   string
	client map[string]pb.FileServiceClient
	http   *http.Client // HTTP/1.1
	h2     *http.Client // HTTP/2 without TLS
}

// encodings are the ways to speak to the server.
var encodings = []string{"json", "json over HTTP/2", "protobuf", "protobuf over HTTP/2", "grpc", "grpc-web"}

// newRig serves fs, or a fresh one in memory, to callers on loopback as root.
func newRig(t testing.TB, fs vfs.FS, change func(*Options)) *rig {
	t.Helper()
	return newRigOn(t, nil, fs, change)
}

// timed runs f in a bubble of synctest, where only waiting takes time, over a network in
// memory. HTTP/2 is not for it: net/http shares its channels among all connections.
func timed(t *testing.T, change func(*Options), f func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(newRigOn(t, sim.NewNetwork(1), nil, change)) })
}

func newRigOn(t testing.TB, network *sim.Network, fs vfs.FS, change func(*Options)) *rig {
	t.Helper()
	before := runtime.NumGoroutine()
	if network != nil {
		// A bubble waits for its own, and does not end without them. Of others it does
		// not know, and its clock gives them no time.
		before = math.MaxInt
	}
	descriptors := countDescriptors()
	if fs == nil {
		fs = newMemory(t)
	}
	table, err := export.NewTable(export.Key{1}, export.Export{Path: "/", FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Table: table, Loopback: &vfs.Caller{}, Store: object.NewMemory(object.MemoryOptions{}),
		Report: func(err error) { t.Log(err) },
	}
	if change != nil {
		change(&o)
	}
	s, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	listen := func() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }
	if network != nil {
		listen = func() (net.Listener, error) { return network.Listen("127.0.0.1:0") }
	}
	l, err := listen()
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	r := &rig{TB: t, fs: fs, s: s, net: network, addr: l.Addr().String()}
	r.dial()
	t.Cleanup(func() {
		r.http.CloseIdleConnections()
		r.h2.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
		r.noLeaks(before, descriptors)
	})
	return r
}

func newMemory(t testing.TB) *memfs.FS {
	fs := memfs.New(memfs.Options{})
	t.Cleanup(func() {
		if n := fs.OpenFiles(); n != 0 {
			t.Errorf("%d files are still open", n)
		}
	})
	return fs
}

func (r *rig) dialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	if r.net != nil {
		return r.net.DialContext(ctx, network, addr)
	}
	var d net.Dialer
	return d.DialContext(ctx, network, addr)
}

// conn is a connection to the server.
func (r *rig) conn() net.Conn {
	r.Helper()
	c, err := r.dialContext(r.Context(), "tcp", r.addr)
	if err != nil {
		r.Fatal(err)
	}
	return c
}

func (r *rig) dial() {
	one, two := new(http.Protocols), new(http.Protocols)
	one.SetHTTP1(true)
	two.SetUnencryptedHTTP2(true)
	r.http = &http.Client{Transport: &http.Transport{Protocols: one, MaxIdleConnsPerHost: 64, DialContext: r.dialContext}}
	r.h2 = &http.Client{Transport: &http.Transport{Protocols: two, DialContext: r.dialContext}}
	url := "http://" + r.addr
	plain := connect.WithAcceptCompression("gzip", nil, nil)
	r.client = map[string]pb.FileServiceClient{
		"json":                 pb.NewFileServiceClient(r.http, url, connect.WithProtoJSON()),
		"json over HTTP/2":     pb.NewFileServiceClient(r.h2, url, connect.WithProtoJSON(), plain),
		"protobuf":             pb.NewFileServiceClient(r.http, url, plain),
		"protobuf over HTTP/2": pb.NewFileServiceClient(r.h2, url),
		"grpc":                 pb.NewFileServiceClient(r.h2, url, connect.WithGRPC(), plain),
		"grpc-web":             pb.NewFileServiceClient(r.http, url, connect.WithGRPCWeb(), plain),
	}
}

// noLeaks waits until what the test began has ended.
func (r *rig) noLeaks(goroutines, descriptors int) {
	s := r.s.Snapshot()
	if s.InProgress != 0 || s.Memory != 0 || s.Left != 0 {
		r.Errorf("at the end %d calls are in progress, which hold %d bytes; %d temporaries are left", s.InProgress, s.Memory, s.Left)
	}
	if n := r.s.buffers.Outstanding(); n != 0 {
		r.Errorf("%d buffers are lent out", n)
	}
	for range 5000 {
		if runtime.NumGoroutine() <= goroutines && countDescriptors() <= descriptors {
			return
		}
		time.Sleep(time.Millisecond) // for the kernel and net/http, which tell nobody
	}
	buf := make([]byte, 1<<20)
	r.Errorf("goroutines: %d, and %d before; descriptors: %d, and %d before\n%s", runtime.NumGoroutine(), goroutines,
		countDescriptors(), descriptors, buf[:runtime.Stack(buf, true)])
}

// countDescriptors counts the sockets; files are the file systems' to keep open. It is
// 0 where there is no /proc.
func countDescriptors() int {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	n := 0
	for _, e := range names {
		if to, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name())); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// upload sends data in parts of size part.
func upload(ctx context.Context, c pb.FileServiceClient, head *pb.UploadHeader, data []byte, part int, trailer *pb.UploadTrailer) (*pb.UploadResponse, error) {
	stream, err := c.Upload(ctx)
	if err != nil {
		return nil, err
	}
	err = stream.Send(&pb.UploadRequest{Part: &pb.UploadRequest_Header{Header: head}})
	for err == nil && len(data) > 0 {
		n := min(part, len(data))
		err = stream.Send(&pb.UploadRequest{Part: &pb.UploadRequest_Data{Data: data[:n]}})
		data = data[n:]
	}
	if err == nil && trailer != nil {
		err = stream.Send(&pb.UploadRequest{Part: &pb.UploadRequest_Trailer{Trailer: trailer}})
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	// io.EOF says that the server has answered already.
	return stream.CloseAndReceive()
}

// download returns the bytes, and whether the trailer says so.
func download(ctx context.Context, c pb.FileServiceClient, q *pb.DownloadRequest) ([]byte, *pb.DownloadTrailer, error) {
	stream, err := c.Download(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	var b bytes.Buffer
	var trailer *pb.DownloadTrailer
	for stream.Receive() {
		switch p := stream.Msg().GetPart().(type) {
		case *pb.DownloadResponse_Data:
			b.Write(p.Data)
		case *pb.DownloadResponse_Trailer:
			trailer = p.Trailer
		}
	}
	return b.Bytes(), trailer, errors.Join(stream.Err(), stream.Close())
}

// tree is all that there is, a line for each object: what a refused request must
// leave as it was.
func (r *rig) tree() string {
	r.Helper()
	root, _, err := r.fs.Root(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	var b strings.Builder
	r.walk(&b, "", root)
	return b.String()
}

func (r *rig) walk(b *strings.Builder, path string, h vfs.Handle) {
	ctx := context.Background()
	attr, err := r.fs.GetAttr(ctx, h, vfs.MaskV3)
	if err != nil {
		r.Fatal(err)
	}
	fmt.Fprintf(b, "%q %v %o %d:%d %d", path, attr.Type, attr.Mode, attr.UID, attr.GID, attr.Nlink)
	if attr.Type == vfs.TypeReg {
		data, err := r.read(h, attr.Size)
		if err != nil {
			r.Fatal(err)
		}
		if len(data) > 64 {
			data = []byte(sumOf("sha256", data))
		}
		fmt.Fprintf(b, " %d %x", attr.Size, data)
	}
	b.WriteString("\n")
	if attr.Type != vfs.TypeDir {
		return
	}
	var names []string
	for e, err := range r.fs.ReadDir(ctx, h, vfs.Pos{}, 0, 0) {
		if err != nil {
			r.Fatal(err)
		}
		names = append(names, string(e.Name))
	}
	for _, name := range names {
		child, _, _, err := r.fs.Lookup(ctx, h, name)
		if err != nil {
			r.Fatal(err)
		}
		r.walk(b, path+"/"+name, child)
	}
}

func (r *rig) read(h vfs.Handle, size uint64) ([]byte, error) {
	ctx := context.Background()
	f, _, err := r.fs.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		return nil, err
	}
	p := make([]byte, size)
	n, _, err := vfs.ReadFull(ctx, f, p, 0)
	return p[:n], errors.Join(err, f.Close(ctx))
}

// make makes an object below the export, past the server.
func (r *rig) make(path string, how vfs.CreateHow, data string) vfs.Handle {
	r.Helper()
	ctx := r.Context()
	root, _, err := r.fs.Root(ctx)
	if err != nil {
		r.Fatal(err)
	}
	dir, name := filepath.Split(path)
	at, err := vfs.Resolve(ctx, r.fs, root, dir, true)
	if err != nil {
		r.Fatal(err)
	}
	h, _, _, err := r.fs.Create(ctx, at.Handle, name, &how)
	if err != nil {
		r.Fatalf("%s: %v", path, err)
	}
	if data != "" {
		f, _, err := r.fs.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareWrite})
		if err != nil {
			r.Fatal(err)
		}
		var w vfs.Written
		_, err = vfs.WriteFull(ctx, f, []byte(data), 0, vfs.FileSync, &w)
		if err := errors.Join(err, f.Close(ctx)); err != nil {
			r.Fatal(err)
		}
	}
	return h
}

var (
	aFile = vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o640}}
	aDir  = vfs.CreateHow{Type: vfs.TypeDir, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o755}}
)

func aLink(target string) vfs.CreateHow { return vfs.CreateHow{Type: vfs.TypeSymlink, Target: target} }

// sumOf is the checksum of data by an algorithm.
func sumOf(algorithm string, data []byte) string {
	c, err := pb.NewChecksum(algorithm)
	if err != nil {
		panic(err)
	}
	_, _ = c.Write(data)
	return c.String()
}
