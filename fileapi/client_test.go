package fileapi_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/fileapi"
	server "github.com/nfsbox/nfsbox/internal/server/fileapi"
	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

// serve serves an empty file system in memory to everybody on loopback, and returns
// the URL.
func serve(t testing.TB) string {
	table, err := export.NewTable(export.Key{1}, export.Export{Path: "/", FS: memfs.New(memfs.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(t.Context(), server.Options{Table: table, Loopback: &vfs.Caller{}, Store: object.NewMemory(object.MemoryOptions{})})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), <-done); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

func dial(t testing.TB, url string, o fileapi.Options) *fileapi.Client {
	c, err := fileapi.New(url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestClient moves files of all sizes in every encoding, by path and by content.
func TestClient(t *testing.T) {
	url := serve(t)
	for name, o := range map[string]fileapi.Options{
		"protobuf": {}, "JSON": {JSON: true}, "HTTP/2": {HTTP2: true}, "JSON, HTTP/2": {JSON: true, HTTP2: true},
	} {
		t.Run(name, func(t *testing.T) {
			c, ctx := dial(t, url, o), t.Context()
			if err := c.MakeDirectory(ctx, "/d", 0o750); err != nil {
				t.Fatal(err)
			}
			random := rand.NewChaCha8([32]byte{byte(len(name))})
			for _, size := range []int{0, 1, 50 << 10, 128<<10 - 1, 128 << 10, 128<<10 + 1, 1 << 20, 3<<20 + 7} {
				data := make([]byte, size)
				_, _ = random.Read(data) // it never fails
				move(t, c, "/d/f", data)
				move(t, c, "/d/\xff", data)
				content, err := c.UploadContent(ctx, bytes.NewReader(data))
				if err != nil || content.Existed && size > 0 {
					t.Fatalf("%d bytes: %+v, %v", size, content, err)
				}
				move(t, c, content.Checksum, data)
				if again, err := c.UploadContent(ctx, bytes.NewReader(data)); err != nil || !again.Existed {
					t.Errorf("%d bytes, again: %+v, %v", size, again, err)
				}
			}
			var names []string
			for e, err := range c.List(ctx, "/d", true) {
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, e.Name)
				if e.Info.GetSize() != 3<<20+7 {
					t.Errorf("%q has %d bytes", e.Name, e.Info.GetSize())
				}
				if err := c.Delete(ctx, "/d/"+e.Name); err != nil {
					t.Error(err)
				}
			}
			if slices.Sort(names); !slices.Equal(names, []string{"f", "\xff"}) {
				t.Errorf("listed are %q", names)
			}
			if err := c.DeleteDirectory(ctx, "/d"); err != nil {
				t.Error(err)
			}
			if ok, err := c.Exist(ctx, "/d"); ok || err != nil {
				t.Errorf("the directory is still there: %t, %v", ok, err)
			}
		})
	}
}

// move uploads data and downloads it, whole and in part.
func move(t *testing.T, c *fileapi.Client, name string, data []byte) {
	t.Helper()
	ctx := t.Context()
	checksum := ""
	if name[0] == '/' {
		checksum = pb.BLAKE3
	}
	stored, err := c.Upload(ctx, name, iotest.HalfReader(bytes.NewReader(data)), fileapi.UploadOptions{Checksum: checksum})
	if err != nil || stored.Info.GetSize() != uint64(len(data)) {
		t.Fatalf("%d bytes: %+v, %v", len(data), stored, err)
	}
	var whole bytes.Buffer
	got, err := c.Download(ctx, name, &whole, fileapi.Range{Checksum: checksum})
	if err != nil || !bytes.Equal(whole.Bytes(), data) || got.Checksum != stored.Checksum {
		t.Errorf("%d bytes: %d have come, %+v, %v", len(data), whole.Len(), got, err)
	}
	half := uint64(len(data) / 2)
	if part, _, err := c.Get(ctx, name, fileapi.Range{Off: half, Len: 100}); err != nil || !bytes.Equal(part, data[half:min(half+100, uint64(len(data)))]) {
		t.Errorf("%d bytes: a range is %d bytes, %v", len(data), len(part), err)
	}
}

// TestErrors finds the server's errors under the names that they have here.
func TestErrors(t *testing.T) {
	c, ctx := dial(t, serve(t), fileapi.Options{}), t.Context()
	if _, err := c.Put(ctx, "/f", []byte("before"), fileapi.UploadOptions{}); err != nil {
		t.Fatal(err)
	}
	_, _, notExist := c.Get(ctx, "/g", fileapi.Range{})
	exist := errors.Join(c.MakeDirectory(ctx, "/f", 0o755))
	_, isDir := c.Download(ctx, "/", io.Discard, fileapi.Range{})
	_, relative := c.Stat(ctx, "f")
	_, tooLong := c.Put(ctx, "/f", make([]byte, fileapi.MaxMessage+1), fileapi.UploadOptions{})
	broken := errors.New("broken")
	_, reader := c.Upload(ctx, "/f", io.MultiReader(bytes.NewReader(make([]byte, 300<<10)), iotest.ErrReader(broken)), fileapi.UploadOptions{})
	_, short := c.Upload(ctx, "/f", io.MultiReader(strings.NewReader("x"), iotest.ErrReader(io.ErrUnexpectedEOF)), fileapi.UploadOptions{})
	_, cut := c.Upload(ctx, "/f", io.MultiReader(bytes.NewReader(make([]byte, 300<<10)), iotest.ErrReader(io.ErrUnexpectedEOF)), fileapi.UploadOptions{})
	_, writer := c.Download(ctx, "/f", failingWriter{broken}, fileapi.Range{})
	_, other := c.Upload(ctx, "/f", bytes.NewReader(make([]byte, 300<<10)), fileapi.UploadOptions{Checksum: "crc32c:00000000"})
	_, closed := dial(t, "http://127.0.0.1:1", fileapi.Options{}).Put(ctx, "/f", nil, fileapi.UploadOptions{})
	for _, c := range []struct {
		err  error
		is   error
		code connect.Code
	}{
		{notExist, fs.ErrNotExist, connect.CodeNotFound}, {exist, fs.ErrExist, connect.CodeAlreadyExists},
		{isDir, vfs.ErrIsDir, connect.CodeFailedPrecondition}, {relative, nil, connect.CodeUnknown}, {tooLong, nil, connect.CodeUnknown},
		{short, io.ErrUnexpectedEOF, connect.CodeUnknown}, {cut, io.ErrUnexpectedEOF, connect.CodeUnknown},
		{reader, broken, connect.CodeUnknown}, {writer, broken, connect.CodeUnknown}, {other, fileapi.ErrCorrupted, connect.CodeDataLoss},
		{closed, vfs.ErrUnknownOutcome, connect.CodeUnavailable},
	} {
		e, ok := errors.AsType[*fileapi.Error](c.err)
		if !ok || e.Code != c.code || c.is != nil && !errors.Is(c.err, c.is) {
			t.Errorf("%v (%+v): want %v, %v", c.err, e, c.code, c.is)
		}
	}
	if data, _, err := c.Get(ctx, "/f", fileapi.Range{}); err != nil || string(data) != "before" {
		t.Errorf("the file is now %.20q, %v", data, err)
	}
	for _, url := range []string{"", "127.0.0.1:9999", "ftp://host", "http://", "http://user@host", "http://host/?x", "http://h\x00"} {
		if _, err := fileapi.New(url, fileapi.Options{}); err == nil {
			t.Errorf("%q is taken for a server", url)
		}
	}
}

type failingWriter struct{ error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.error }

// liar is a server that changes what it is given.
type liar struct {
	pb.UnimplementedFileServiceHandler
	trailer *pb.DownloadTrailer
}

func (liar) Put(context.Context, *pb.PutRequest) (*pb.PutResponse, error) {
	return &pb.PutResponse{Checksum: "crc32c:00000000"}, nil
}

func (liar) Get(context.Context, *pb.GetRequest) (*pb.GetResponse, error) {
	return &pb.GetResponse{Data: []byte("x"), Checksum: "sha256:" + strings.Repeat("0", 64)}, nil
}

func (l liar) Download(_ context.Context, _ *pb.DownloadRequest, s *connect.ServerStream[pb.DownloadResponse]) error {
	err := s.Send(&pb.DownloadResponse{Part: &pb.DownloadResponse_Data{Data: []byte("x")}})
	if err == nil && l.trailer != nil {
		err = s.Send(&pb.DownloadResponse{Part: &pb.DownloadResponse_Trailer{Trailer: l.trailer}})
	}
	return err
}

func (liar) List(context.Context, *pb.ListRequest) (*pb.ListResponse, error) {
	return &pb.ListResponse{Entries: []*pb.Entry{{Name: "again"}}, NextPageToken: "again"}, nil
}

// TestLiar believes nothing.
func TestLiar(t *testing.T) {
	for name, trailer := range map[string]*pb.DownloadTrailer{
		"no trailer": nil, "wrong size": {Size: 2}, "wrong checksum": {Size: 1, Checksum: "sha256:00"}, "no checksum": {Size: 1},
	} {
		t.Run(name, func(t *testing.T) {
			mux := http.NewServeMux()
			mux.Handle(pb.NewFileServiceHandler(liar{trailer: trailer}))
			s := httptest.NewServer(mux)
			defer s.Close()
			c, ctx := dial(t, s.URL, fileapi.Options{}), t.Context()
			want := fileapi.ErrCorrupted
			if trailer == nil {
				want = io.ErrUnexpectedEOF
			}
			if _, err := c.Download(ctx, "/f", io.Discard, fileapi.Range{}); !errors.Is(err, want) {
				t.Errorf("download: %v", err)
			}
			if _, _, err := c.Get(ctx, "/f", fileapi.Range{}); !errors.Is(err, fileapi.ErrCorrupted) {
				t.Errorf("get: %v", err)
			}
			if _, err := c.Put(ctx, "/f", []byte("y"), fileapi.UploadOptions{}); !errors.Is(err, fileapi.ErrCorrupted) {
				t.Errorf("put: %v", err)
			}
			n := 0
			for _, err := range c.List(ctx, "/", false) {
				if n++; err != nil || n > 10 {
					break
				}
			}
			if n != 2 {
				t.Errorf("a listing that never ends has %d entries", n)
			}
		})
	}
}
