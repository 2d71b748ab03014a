package fileapi

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestTargets uploads to names that something else has than a file of the caller's.
func TestTargets(t *testing.T) {
	onEvery(t, func(t *testing.T, fs vfs.FS) {
		if _, memory := fs.(*memfs.FS); !memory {
			need.Root(t, "whatever somebody else makes on a disk is his own, and the kernel takes set-uid bits off")
		}
		r := newRig(t, fs, nil)
		dir := r.make("/dir", aDir, "")
		hard := r.make("/dir/hard", aFile, "old")
		if _, _, err := fs.Link(t.Context(), hard, dir, "other"); err != nil {
			t.Fatal(err)
		}
		r.make("/dir/target", aFile, "old")
		r.make("/dir/link", aLink("target"), "")
		r.make("/dir/fifo", vfs.CreateHow{Type: vfs.TypeFIFO, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600}}, "")
		r.make("/dir/suid", vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o4755}}, "")
		for _, c := range []struct {
			name string
			mode *uint32
			want string
		}{
			{"hard", nil, "640 0:0 1 3"},
			{"link", nil, "644 0:0 1 3"},
			{"fifo", nil, "644 0:0 1 3"},
			{"suid", nil, "755 0:0 1 3"}, // what ran as its owner does not do so with other content
			{"suid", new(uint32(0o4711)), "4711 0:0 1 3"},
		} {
			_, err := r.client["protobuf"].Put(t.Context(), &pb.PutRequest{File: &pb.PutRequest_Path{Path: "/dir/" + c.name}, Data: []byte("new"), Mode: c.mode})
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			tree := r.tree()
			if n := strings.Count(tree, fmt.Sprintf(" %x\n", "old")); n != 2 { // "other" and "target"
				t.Errorf("%s: the old content is there %d times: %s", c.name, n, tree)
			}
			_, line, _ := strings.Cut(tree, fmt.Sprintf("%q ", "/dir/"+c.name))
			if line, _, _ = strings.Cut(line, "\n"); !strings.HasSuffix(line, c.want+fmt.Sprintf(" %x", "new")) {
				t.Errorf("%s: there is %q, want %q", c.name, line, c.want)
			}
		}
	})
}

// TestSticky leaves others' files in a directory like /tmp alone.
func TestSticky(t *testing.T) {
	r := newRig(t, newMemory(t), func(o *Options) { o.Loopback = &vfs.Caller{UID: 1000, GID: 1000} })
	r.make("/tmp", vfs.CreateHow{Type: vfs.TypeDir, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o1777}}, "")
	r.make("/tmp/file", aFile, "root's")
	before := r.tree()
	for _, mode := range []*uint32{nil, new(uint32(0o666))} {
		_, err := r.client["protobuf"].Put(t.Context(), &pb.PutRequest{File: &pb.PutRequest_Path{Path: "/tmp/file"}, Data: []byte("x"), Mode: mode})
		if connect.CodeOf(err) != connect.CodePermissionDenied {
			t.Errorf("over another's file: %v", err)
		}
		if after := r.tree(); after != before {
			t.Errorf("there is now\n%s\nand was\n%s", after, before)
		}
	}
	if _, err := r.client["protobuf"].Put(t.Context(), &pb.PutRequest{File: &pb.PutRequest_Path{Path: "/tmp/mine"}, Data: []byte("x")}); err != nil {
		t.Errorf("a new file: %v", err)
	}
}

// TestOneName has many uploads to one name at once: one of them is there in the end.
func TestOneName(t *testing.T) {
	onEvery(t, func(t *testing.T, fs vfs.FS) {
		r := newRig(t, fs, nil)
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				data := bytes.Repeat([]byte{'a' + byte(i)}, 100_000)
				encoding := encodings[i%len(encodings)]
				var err error
				if i%2 == 0 {
					_, err = r.client[encoding].Put(t.Context(), &pb.PutRequest{File: &pb.PutRequest_Path{Path: "/f"}, Data: data, Sync: i%4 == 0})
				} else {
					head := &pb.UploadHeader{File: &pb.UploadHeader_Path{Path: "/f"}}
					_, err = upload(t.Context(), r.client[encoding], head, data, 9_000, &pb.UploadTrailer{Size: uint64(len(data))})
				}
				if err != nil {
					t.Errorf("%d, in %s: %v", i, encoding, err)
				}
			})
		}
		all.Wait()
		answer, err := r.client["protobuf"].Get(t.Context(), &pb.GetRequest{File: &pb.GetRequest_Path{Path: "/f"}})
		if err != nil {
			t.Fatal(err)
		}
		if data := answer.GetData(); len(data) != 100_000 || bytes.Count(data, data[:1]) != len(data) {
			t.Errorf("there are %d bytes of more than one upload", len(data))
		}
		if tree := r.tree(); strings.Count(tree, "\n") != 2 {
			t.Errorf("there is more than the file:\n%s", tree)
		}
	})
}

// TestDirectoryGone removes the directory of an upload that is under way.
func TestDirectoryGone(t *testing.T) {
	onEvery(t, func(t *testing.T, fs vfs.FS) {
		r := newRig(t, fs, nil)
		r.make("/dir", aDir, "")
		view := r.s.view(r.s.loopback, netipLoopback)
		dir, _, err := view.Mount(t.Context(), "/dir")
		if err != nil {
			t.Fatal(err)
		}
		tmp, err := r.s.temps.create(t.Context(), view, dir, 0o600, true)
		if err != nil {
			t.Fatal(err)
		}
		_, err = view.Remove(t.Context(), dir, tmp.name, false)
		root, _, rootErr := view.Root(t.Context())
		_, rmdir := view.Remove(t.Context(), root, "dir", true)
		if err := errors.Join(err, rootErr, rmdir); err != nil {
			t.Fatal(err)
		}
		if _, err := tmp.rename(t.Context(), "file"); err == nil {
			t.Error("it has got a name in no directory")
		}
		if err := tmp.discard(t.Context()); err != nil || r.s.temps.left.Load() != 0 {
			t.Errorf("what has gone with its directory is left behind: %v", err)
		}
	})
}
