package fileapi

import (
	"testing"

	"google.golang.org/protobuf/proto"

	pb "github.com/nfsbox/nfsbox/proto/fileapi"
)

// BenchmarkCalls is what a call costs, client and server together, with files in
// memory of the size that GoFsBench moves.
func BenchmarkCalls(b *testing.B) {
	for _, encoding := range []string{"protobuf", "json", "protobuf over HTTP/2", "grpc"} {
		for _, algorithm := range []string{pb.SHA256, pb.CRC32C} {
			b.Run(encoding+"/"+algorithm, func(b *testing.B) {
				r := newRig(b, nil, nil)
				data := random(50 << 10)
				c := r.client[encoding]
				for name, call := range map[string]func() (proto.Message, error){
					"echo": func() (proto.Message, error) { return c.Echo(b.Context(), &pb.EchoRequest{Data: small}) },
					"put": func() (proto.Message, error) {
						return c.Put(b.Context(), &pb.PutRequest{File: &pb.PutRequest_Path{Path: "/f"}, Data: data, Checksum: algorithm})
					},
					"get": func() (proto.Message, error) {
						return c.Get(b.Context(), &pb.GetRequest{File: &pb.GetRequest_Path{Path: "/f"}, Checksum: algorithm})
					},
				} {
					b.Run(name, func(b *testing.B) {
						if _, err := c.Put(b.Context(), &pb.PutRequest{File: &pb.PutRequest_Path{Path: "/f"}, Data: data}); err != nil {
							b.Fatal(err)
						}
						b.ReportAllocs()
						b.RunParallel(func(each *testing.PB) {
							for each.Next() {
								if _, err := call(); err != nil {
									b.Error(err)
								}
							}
						})
					})
				}
			})
		}
	}
}
