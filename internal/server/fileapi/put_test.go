package fileapi

import (
	"context"
	"encoding/binary"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestSmallPut stores small files of new names and of names that are there. Where the
// file system has vfs.Putter, only the latter need a temporary.
func TestSmallPut(t *testing.T) {
	onEvery(t, func(t *testing.T, fs vfs.FS) {
		var made atomic.Uint64 // random numbers: one is the run's, and each temporary has one
		r := newRig(t, fs, func(o *Options) {
			o.Rand = func(p []byte) { binary.BigEndian.PutUint64(p, made.Add(1)) }
		})
		root, _, err := fs.Root(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		direct := false
		if p, ok := vfs.As[vfs.Putter](fs); ok {
			_, _, err := p.Put(t.Context(), root, "probe", 0o600, nil)
			direct = err == nil
		}
		r.make("/dir", aDir, "")
		program, file := connect.Code(0), `"/moded" file 4711`
		if _, memory := fs.(*memfs.FS); !memory && os.Geteuid() > 0 {
			program, file = connect.CodePermissionDenied, "" // users make no programs of a user's server
		}
		for i, c := range []struct {
			path, data string
			mode       *uint32
			checksum   string
			code       connect.Code
			want       string // of the tree, if it is stored
			temps      uint64 // that it takes in any case
		}{
			{"/new", "content", nil, "crc32c", 0, `"/new" file 644`, 0},
			{"/new", "other", nil, "", 0, `"/new" file 644`, 1},
			{"/moded", "content", new(uint32(0o4711)), "", program, file, 1},
			{"/moded", "content", new(uint32(0o600)), "", 0, `"/moded" file 600`, 1},
			{"/moded", "content", nil, "", 0, `"/moded" file 600`, 1},
			{"/empty", "", nil, "", 0, `"/empty" file 644`, 0},
			{"/wrong", "content", nil, sumOf("sha256", nil), connect.CodeDataLoss, "", 0},
			{"/new", "content", nil, sumOf("sha256", nil), connect.CodeDataLoss, "", 1},
			{"/dir", "content", new(uint32(0o600)), "", connect.CodeFailedPrecondition, "", 1},
			{"/none/f", "content", nil, "", connect.CodeNotFound, "", 0},
		} {
			before, temps := r.tree(), made.Load()
			_, err := r.client["protobuf"].Put(t.Context(), &pb.PutRequest{
				File: &pb.PutRequest_Path{Path: c.path}, Data: []byte(c.data), Mode: c.mode, Checksum: c.checksum,
			})
			if (err == nil) != (c.code == 0) || err != nil && connect.CodeOf(err) != c.code {
				t.Fatalf("%d: %v, want %v", i, err, c.code)
			}
			after := r.tree()
			if err == nil && !strings.Contains(after, c.want) || err != nil && after != before {
				t.Errorf("%d: there is now\n%s\nand was\n%s", i, after, before)
			}
			if n := made.Load() - temps; direct && n > c.temps {
				t.Errorf("%d: it has taken %d temporaries, want at most %d", i, n, c.temps)
			}
		}
	})
}

// curtFS is a vfs.Putter that says nothing of what it has made, and whose attributes
// are not to be had from then on.
type curtFS struct {
	vfs.FS
	made *bool
}

func (f curtFS) As(c *vfs.Caller) vfs.FS { return curtFS{f.FS.As(c), f.made} }

func (f curtFS) Put(ctx context.Context, dir vfs.Handle, name string, mode uint32, _ []byte) (vfs.Handle, vfs.Attr, error) {
	h, _, _, err := f.Create(ctx, dir, name, &vfs.CreateHow{Type: vfs.TypeFIFO, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: mode}})
	*f.made = err == nil
	return h, vfs.Attr{}, err
}

func (f curtFS) GetAttr(ctx context.Context, h vfs.Handle, want vfs.Mask) (vfs.Attr, error) {
	if *f.made {
		return vfs.Attr{}, vfs.ErrBusy
	}
	return f.FS.GetAttr(ctx, h, want)
}

// TestPutWithoutAttributes: what is stored is no error, even if nothing more can be
// said of it.
func TestPutWithoutAttributes(t *testing.T) {
	f := curtFS{memfs.New(memfs.Options{Mode: 0o777}), new(bool)}
	r := newRig(t, f, nil)
	_, err := r.client["protobuf"].Put(t.Context(), &pb.PutRequest{File: &pb.PutRequest_Path{Path: "/f"}, Data: []byte("content")})
	if err != nil || !*f.made {
		t.Errorf("%v; it is stored: %t", err, *f.made)
	}
}
