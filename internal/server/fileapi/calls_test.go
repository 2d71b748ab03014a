package fileapi

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

// random is n bytes that are the same on every run.
func random(n int) []byte {
	p := make([]byte, n)
	r := rand.NewChaCha8([32]byte{7})
	_, _ = r.Read(p) // it never fails
	return p
}

var (
	small = []byte("what the file holds")
	large = random(3*chunk + 17)
)

// step is a call, and what it is to answer: the code that the error has, and else
// something that the answer must hold in text form.
type step struct {
	name string
	do   func(ctx context.Context, c pb.FileServiceClient) (proto.Message, error)
	code connect.Code
	want string
}

func ask[Q, R proto.Message](call func(pb.FileServiceClient) func(context.Context, Q) (R, error), q Q) func(context.Context, pb.FileServiceClient) (proto.Message, error) {
	return func(ctx context.Context, c pb.FileServiceClient) (proto.Message, error) { return call(c)(ctx, q) }
}

func stat(q *pb.StatRequest) func(context.Context, pb.FileServiceClient) (proto.Message, error) {
	return ask(func(c pb.FileServiceClient) func(context.Context, *pb.StatRequest) (*pb.StatResponse, error) {
		return c.Stat
	}, q)
}

func exist(q *pb.ExistRequest) func(context.Context, pb.FileServiceClient) (proto.Message, error) {
	return ask(func(c pb.FileServiceClient) func(context.Context, *pb.ExistRequest) (*pb.ExistResponse, error) {
		return c.Exist
	}, q)
}

func list(q *pb.ListRequest) func(context.Context, pb.FileServiceClient) (proto.Message, error) {
	return ask(func(c pb.FileServiceClient) func(context.Context, *pb.ListRequest) (*pb.ListResponse, error) {
		return c.List
	}, q)
}

func remove(q *pb.DeleteRequest) func(context.Context, pb.FileServiceClient) (proto.Message, error) {
	return ask(func(c pb.FileServiceClient) func(context.Context, *pb.DeleteRequest) (*pb.DeleteResponse, error) {
		return c.Delete
	}, q)
}

func get(q *pb.GetRequest) func(context.Context, pb.FileServiceClient) (proto.Message, error) {
	return ask(func(c pb.FileServiceClient) func(context.Context, *pb.GetRequest) (*pb.GetResponse, error) {
		return c.Get
	}, q)
}

func put(q *pb.PutRequest) func(context.Context, pb.FileServiceClient) (proto.Message, error) {
	return ask(func(c pb.FileServiceClient) func(context.Context, *pb.PutRequest) (*pb.PutResponse, error) {
		return c.Put
	}, q)
}

func mkdir(q *pb.MakeDirectoryRequest) func(context.Context, pb.FileServiceClient) (proto.Message, error) {
	return ask(func(c pb.FileServiceClient) func(context.Context, *pb.MakeDirectoryRequest) (*pb.MakeDirectoryResponse, error) {
		return c.MakeDirectory
	}, q)
}

func echo(data []byte) func(context.Context, pb.FileServiceClient) (proto.Message, error) {
	return ask(func(c pb.FileServiceClient) func(context.Context, *pb.EchoRequest) (*pb.EchoResponse, error) {
		return c.Echo
	}, &pb.EchoRequest{Data: data})
}

func up(head *pb.UploadHeader, data []byte, trailer *pb.UploadTrailer) func(context.Context, pb.FileServiceClient) (proto.Message, error) {
	return func(ctx context.Context, c pb.FileServiceClient) (proto.Message, error) {
		return upload(ctx, c, proto.CloneOf(head), data, 100_000, trailer)
	}
}

// down is a trailer if the bytes are the right ones.
func down(q *pb.DownloadRequest, want []byte) func(context.Context, pb.FileServiceClient) (proto.Message, error) {
	return func(ctx context.Context, c pb.FileServiceClient) (proto.Message, error) {
		data, trailer, err := download(ctx, c, q)
		if err == nil && !bytes.Equal(data, want) {
			err = fmt.Errorf("%d bytes have come that are not the %d wanted", len(data), len(want))
		}
		return trailer, err
	}
}

func at(path string) *pb.StatRequest_Path { return &pb.StatRequest_Path{Path: path} }

// steps are every call, in an order in which each finds what it needs; at the end
// there is what there was at the beginning.
var steps = []step{
	{"echo", echo(small), 0, `data: "what the file holds"`},
	{"echo too much", echo(make([]byte, maxEcho+1)), connect.CodeResourceExhausted, ""},
	{"nothing there", stat(&pb.StatRequest{File: at("/d/f")}), connect.CodeNotFound, ""},
	{"no path", stat(&pb.StatRequest{}), connect.CodeInvalidArgument, ""},
	{"relative", stat(&pb.StatRequest{File: at("d")}), connect.CodeInvalidArgument, ""},
	{"dot dot", stat(&pb.StatRequest{File: at("/d/../d")}), connect.CodeInvalidArgument, ""},
	{"NUL", stat(&pb.StatRequest{File: at("/d\x00")}), connect.CodeInvalidArgument, ""},
	{"our own name", stat(&pb.StatRequest{File: at("/d/" + tempPrefix + "0-0")}), connect.CodeInvalidArgument, ""},
	{"does not exist", exist(&pb.ExistRequest{File: &pb.ExistRequest_Path{Path: "/d/f"}}), 0, ""},

	{"mkdir", mkdir(&pb.MakeDirectoryRequest{File: &pb.MakeDirectoryRequest_Path{Path: "/d"}}), 0, "FILE_TYPE_DIRECTORY"},
	{"mkdir twice", mkdir(&pb.MakeDirectoryRequest{File: &pb.MakeDirectoryRequest_Path{Path: "/d"}}), connect.CodeAlreadyExists, ""},
	{"mkdir of the root", mkdir(&pb.MakeDirectoryRequest{File: &pb.MakeDirectoryRequest_Path{Path: "/"}}), connect.CodeInvalidArgument, ""},
	{"mkdir, no such mode", mkdir(&pb.MakeDirectoryRequest{File: &pb.MakeDirectoryRequest_Path{Path: "/e"}, Mode: new(uint32(0o40755))}), connect.CodeInvalidArgument, ""},

	{"put", put(&pb.PutRequest{File: &pb.PutRequest_Path{Path: "/d/f"}, Data: small, Mode: new(uint32(0o600)), Sync: true}), 0, sumOf("sha256", small)},
	{"put as a directory", put(&pb.PutRequest{File: &pb.PutRequest_Path{Path: "/d"}, Data: small}), connect.CodeFailedPrecondition, ""},
	{"put nowhere", put(&pb.PutRequest{File: &pb.PutRequest_Path{Path: "/e/f"}, Data: small}), connect.CodeNotFound, ""},
	{"put into a file", put(&pb.PutRequest{File: &pb.PutRequest_Path{Path: "/d/f/f"}, Data: small}), connect.CodeFailedPrecondition, ""},
	{"put under a slash", put(&pb.PutRequest{File: &pb.PutRequest_Path{Path: "/d/"}, Data: small}), connect.CodeInvalidArgument, ""},
	{"put, wrong checksum", put(&pb.PutRequest{File: &pb.PutRequest_Path{Path: "/d/f"}, Data: large, Checksum: sumOf("sha256", small)}), connect.CodeDataLoss, ""},
	{"put, no checksum", put(&pb.PutRequest{File: &pb.PutRequest_Path{Path: "/d/f"}, Data: large, Checksum: "md5"}), connect.CodeInvalidArgument, ""},
	{"stat", stat(&pb.StatRequest{File: at("/d/f")}), 0, "size: 19"},
	{"mode", stat(&pb.StatRequest{File: at("/d/f")}), 0, "mode: 384"},
	{"exists", exist(&pb.ExistRequest{File: &pb.ExistRequest_Path{Path: "/d/f"}}), 0, "exists: true"},
	{"exists below a file", exist(&pb.ExistRequest{File: &pb.ExistRequest_Path{Path: "/d/f/g"}}), 0, ""},
	{"get", get(&pb.GetRequest{File: &pb.GetRequest_Path{Path: "//d/./f"}}), 0, "what the file holds"},
	{"get, crc32c", get(&pb.GetRequest{File: &pb.GetRequest_Path{Path: "/d/f"}, Checksum: "crc32c"}), 0, sumOf("crc32c", small)},
	{"get a range", get(&pb.GetRequest{File: &pb.GetRequest_Path{Path: "/d/f"}, Offset: 5, Length: new(uint64(3)), Checksum: "blake3"}), 0, sumOf("blake3", []byte("the"))},
	{"get nothing", get(&pb.GetRequest{File: &pb.GetRequest_Path{Path: "/d/f"}, Offset: 5, Length: new(uint64(0))}), 0, sumOf("sha256", nil)},
	{"get beyond", get(&pb.GetRequest{File: &pb.GetRequest_Path{Path: "/d/f"}, Offset: 20}), connect.CodeOutOfRange, ""},
	{"get a directory", get(&pb.GetRequest{File: &pb.GetRequest_Path{Path: "/d"}}), connect.CodeFailedPrecondition, ""},
	{"put a range", put(&pb.PutRequest{File: &pb.PutRequest_Path{Path: "/d/f"}, Offset: new(uint64(5)), Data: []byte("one"), Sync: true}), 0, sumOf("sha256", []byte("one"))},
	{"put a range, wrong checksum", put(&pb.PutRequest{File: &pb.PutRequest_Path{Path: "/d/f"}, Offset: new(uint64(5)), Data: []byte("two"), Checksum: sumOf("crc32c", nil)}), connect.CodeDataLoss, ""},
	{"put a range of nothing", put(&pb.PutRequest{File: &pb.PutRequest_Path{Path: "/d/g"}, Offset: new(uint64(5)), Data: small}), connect.CodeNotFound, ""},
	{"put a range too far", put(&pb.PutRequest{File: &pb.PutRequest_Path{Path: "/d/f"}, Offset: new(^uint64(0)), Data: small}), connect.CodeOutOfRange, ""},
	{"get the range", get(&pb.GetRequest{File: &pb.GetRequest_Path{Path: "/d/f"}}), 0, "what one file holds"},

	{"upload", up(&pb.UploadHeader{File: &pb.UploadHeader_Path{Path: "/d/f"}, Sync: true}, large, &pb.UploadTrailer{Size: uint64(len(large)), Checksum: sumOf("sha256", large)}), 0, sumOf("sha256", large)},
	{"the mode has stayed", stat(&pb.StatRequest{File: at("/d/f")}), 0, "mode: 384"},
	{"upload nothing", up(&pb.UploadHeader{File: &pb.UploadHeader_Path{Path: "/d/0"}, Checksum: "blake3"}, nil, &pb.UploadTrailer{}), 0, sumOf("blake3", nil)},
	{"upload, no trailer", up(&pb.UploadHeader{File: &pb.UploadHeader_Path{Path: "/d/f"}}, small, nil), connect.CodeInvalidArgument, ""},
	{"upload, wrong size", up(&pb.UploadHeader{File: &pb.UploadHeader_Path{Path: "/d/f"}}, small, &pb.UploadTrailer{Size: 18}), connect.CodeDataLoss, ""},
	{"upload, wrong checksum", up(&pb.UploadHeader{File: &pb.UploadHeader_Path{Path: "/d/f"}}, small, &pb.UploadTrailer{Size: 19, Checksum: sumOf("sha256", large)}), connect.CodeDataLoss, ""},
	{"upload, less than announced", up(&pb.UploadHeader{File: &pb.UploadHeader_Path{Path: "/d/f"}, Size: new(uint64(20))}, small, &pb.UploadTrailer{Size: 19}), connect.CodeDataLoss, ""},
	{"upload, more than announced", up(&pb.UploadHeader{File: &pb.UploadHeader_Path{Path: "/d/f"}, Size: new(uint64(18))}, small, &pb.UploadTrailer{Size: 19}), connect.CodeInvalidArgument, ""},
	{"upload, announced too large", up(&pb.UploadHeader{File: &pb.UploadHeader_Path{Path: "/d/f"}, Size: new(uint64(1 << 50))}, nil, nil), connect.CodeOutOfRange, ""},
	{"download", down(&pb.DownloadRequest{File: &pb.DownloadRequest_Path{Path: "/d/f"}}, large), 0, sumOf("sha256", large)},
	{"download a range", down(&pb.DownloadRequest{File: &pb.DownloadRequest_Path{Path: "/d/f"}, Offset: 5, Length: new(uint64(chunk + 1)), Checksum: "crc32c"}, large[5:chunk+6]), 0, sumOf("crc32c", large[5:chunk+6])},
	{"download an end", down(&pb.DownloadRequest{File: &pb.DownloadRequest_Path{Path: "/d/f"}, Offset: uint64(len(large)) - 1, Length: new(^uint64(0))}, large[len(large)-1:]), 0, "size: 1"},
	{"download beyond", down(&pb.DownloadRequest{File: &pb.DownloadRequest_Path{Path: "/d/f"}, Offset: 1 << 63}, nil), connect.CodeOutOfRange, ""},
	{"download nothing there", down(&pb.DownloadRequest{File: &pb.DownloadRequest_Path{Path: "/d/g"}}, nil), connect.CodeNotFound, ""},

	{"list", list(&pb.ListRequest{File: &pb.ListRequest_Path{Path: "/d"}, WithInfo: true}), 0, `name: "0"`},
	{"list a page", list(&pb.ListRequest{File: &pb.ListRequest_Path{Path: "/d"}, PageSize: 1}), 0, `next_page_token:`},
	{"list a file", list(&pb.ListRequest{File: &pb.ListRequest_Path{Path: "/d/f"}}), connect.CodeFailedPrecondition, ""},
	{"list from nowhere", list(&pb.ListRequest{File: &pb.ListRequest_Path{Path: "/d"}, PageToken: "x"}), connect.CodeInvalidArgument, ""},

	{"raw path", put(&pb.PutRequest{File: &pb.PutRequest_RawPath{RawPath: []byte("/d/\xff")}, Data: small}), 0, "size: 19"},
	{"list a raw name", list(&pb.ListRequest{File: &pb.ListRequest_RawPath{RawPath: []byte("/d")}}), 0, `raw_name: "\xff"`},
	{"delete a raw path", remove(&pb.DeleteRequest{File: &pb.DeleteRequest_RawPath{RawPath: []byte("/d/\xff")}}), 0, ""},

	{"content", put(&pb.PutRequest{File: &pb.PutRequest_Content{Content: sumOf("sha256", small)}, Data: small}), 0, sumOf("sha256", small)},
	{"content again", up(&pb.UploadHeader{File: &pb.UploadHeader_Content{Content: sumOf("sha256", small)}}, small, &pb.UploadTrailer{Size: 19}), 0, "existed: true"},
	{"content, again and wrong", up(&pb.UploadHeader{File: &pb.UploadHeader_Content{Content: sumOf("sha256", small)}}, small[1:], &pb.UploadTrailer{Size: 18}), connect.CodeDataLoss, ""},
	{"content, wrong", put(&pb.PutRequest{File: &pb.PutRequest_Content{Content: sumOf("sha256", large)}, Data: small}), connect.CodeDataLoss, ""},
	{"content, no trailer", up(&pb.UploadHeader{File: &pb.UploadHeader_Content{Content: sumOf("sha256", large)}}, large, nil), connect.CodeInvalidArgument, ""},
	{"content, no name", put(&pb.PutRequest{File: &pb.PutRequest_Content{Content: "../../etc/passwd"}, Data: small}), connect.CodeInvalidArgument, ""},
	{"content of another algorithm", put(&pb.PutRequest{File: &pb.PutRequest_Content{Content: sumOf("blake3", small)}, Data: small}), connect.CodeInvalidArgument, ""},
	{"a range of content", put(&pb.PutRequest{File: &pb.PutRequest_Content{Content: sumOf("sha256", small)}, Offset: new(uint64(1)), Data: small}), connect.CodeInvalidArgument, ""},
	{"stat content", stat(&pb.StatRequest{File: &pb.StatRequest_Content{Content: sumOf("sha256", small)}}), 0, "size: 19"},
	{"content exists", exist(&pb.ExistRequest{File: &pb.ExistRequest_Content{Content: sumOf("sha256", small)}}), 0, "exists: true"},
	{"content does not exist", exist(&pb.ExistRequest{File: &pb.ExistRequest_Content{Content: sumOf("sha256", large)}}), 0, ""},
	{"get content", get(&pb.GetRequest{File: &pb.GetRequest_Content{Content: sumOf("sha256", small)}}), 0, "what the file holds"},
	{"get content that is not there", get(&pb.GetRequest{File: &pb.GetRequest_Content{Content: sumOf("sha256", large)}}), connect.CodeNotFound, ""},
	{"get beyond content", get(&pb.GetRequest{File: &pb.GetRequest_Content{Content: sumOf("sha256", small)}, Offset: 20}), connect.CodeOutOfRange, ""},
	{"download content", down(&pb.DownloadRequest{File: &pb.DownloadRequest_Content{Content: sumOf("sha256", small)}, Offset: 5, Length: new(uint64(3))}, []byte("the")), 0, "size: 3"},

	{"delete a directory as a file", remove(&pb.DeleteRequest{File: &pb.DeleteRequest_Path{Path: "/d"}}), connect.CodeFailedPrecondition, ""},
	{"delete a full directory", remove(&pb.DeleteRequest{File: &pb.DeleteRequest_Path{Path: "/d"}, Directory: true}), connect.CodeFailedPrecondition, ""},
	{"delete the root", remove(&pb.DeleteRequest{File: &pb.DeleteRequest_Path{Path: "/"}, Directory: true}), connect.CodeInvalidArgument, ""},
	{"delete", remove(&pb.DeleteRequest{File: &pb.DeleteRequest_Path{Path: "/d/f"}}), 0, ""},
	{"delete again", remove(&pb.DeleteRequest{File: &pb.DeleteRequest_Path{Path: "/d/f"}}), connect.CodeNotFound, ""},
	{"delete the other", remove(&pb.DeleteRequest{File: &pb.DeleteRequest_Path{Path: "/d/0"}}), 0, ""},
	{"delete the directory", remove(&pb.DeleteRequest{File: &pb.DeleteRequest_Path{Path: "/d"}, Directory: true}), 0, ""},
}

// TestCalls makes every call in every encoding: all must answer the same, and leave
// the same behind.
func TestCalls(t *testing.T) {
	onEvery(t, func(t *testing.T, fs vfs.FS) {
		results := make(map[string][]string)
		for _, encoding := range encodings {
			t.Run(encoding, func(t *testing.T) {
				r := newRig(t, fs, nil)
				before := r.tree()
				for _, s := range steps {
					answer, err := s.do(t.Context(), r.client[encoding])
					results[encoding] = append(results[encoding], r.outcome(&s, answer, err))
				}
				if after := r.tree(); after != before {
					t.Errorf("at the end there is\n%s and at the beginning there was\n%s", after, before)
				}
			})
		}
		for i, s := range steps {
			for _, encoding := range encodings {
				if a, b := results[encodings[0]][i], results[encoding][i]; a != b {
					t.Errorf("%s: in %s\n%s\nin %s\n%s", s.name, encodings[0], a, encoding, b)
				}
			}
		}
	})
}

// outcome checks an answer, and returns it without what is never twice the same.
func (r *rig) outcome(s *step, answer proto.Message, err error) string {
	r.Helper()
	if err != nil {
		var details []proto.Message
		e := asConnect(err)
		if e == nil {
			r.Errorf("%s: %v", s.name, err)
			return ""
		}
		if e.Code() != s.code {
			r.Errorf("%s: %v, want %v", s.name, err, s.code)
		}
		for _, d := range e.Details() {
			m, err := d.Value()
			if err != nil {
				r.Errorf("%s: a detail: %v", s.name, err)
			}
			details = append(details, m)
		}
		return fmt.Sprint(e.Code(), " ", e.Message(), " ", details)
	}
	if s.code != 0 {
		r.Errorf("%s: no error, want %v", s.name, s.code)
	}
	forgetTimes(answer)
	text := compact(answer)
	if !strings.Contains(text, strings.ReplaceAll(s.want, ": ", ":")) {
		r.Errorf("%s: %s, want %s in it", s.name, text, s.want)
	}
	return text
}

// compact is a message as text, which prototext itself varies on purpose.
func compact(m proto.Message) string {
	text := prototext.MarshalOptions{}.Format(m)
	return strings.NewReplacer("  ", " ", ": ", ":").Replace(text)
}

// forgetTimes takes times and inode numbers out of an answer.
func forgetTimes(m proto.Message) {
	forget := func(i *pb.FileInfo) {
		if i != nil {
			i.Atime, i.Mtime, i.Ctime, i.FileId, i.Used = nil, nil, nil, 0, 0
		}
	}
	if i, ok := m.(interface{ GetInfo() *pb.FileInfo }); ok {
		forget(i.GetInfo())
	}
	if l, ok := m.(*pb.ListResponse); ok {
		if l.NextPageToken != "" {
			l.NextPageToken = "there is one"
		}
		for _, e := range l.GetEntries() {
			forget(e.GetInfo())
		}
	}
}
