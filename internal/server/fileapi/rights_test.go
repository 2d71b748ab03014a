package fileapi

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"

	remote "github.com/nfsbox/nfsbox/fileapi"
	"github.com/nfsbox/nfsbox/internal/testkit/need"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/export/exporttest"
	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestRights runs the exports' matrix through the API: what a caller may do by a token
// is what it may do by NFS.
func TestRights(t *testing.T) {
	t.Run("memory", func(t *testing.T) { rights(t, false, 17, func(t *testing.T) vfs.FS { return newMemory(t) }) })
	t.Run("disk", func(t *testing.T) {
		need.Root(t, "to give files away takes root")
		rights(t, true, 97, newDisk)
	})
}

func rights(t *testing.T, override bool, every int, fs func(*testing.T) vfs.FS) {
	exporttest.Rights(t, exporttest.Config{
		Override: override, Asks: true,
		Every: every,
		New: func(t *testing.T, rule export.Rule) exporttest.Place {
			below := fs(t)
			var table *export.Table
			r := newRig(t, below, func(o *Options) {
				var err error
				if table, err = export.NewTable(export.Key{3}, export.Export{Path: "/", FS: below, Clients: []export.Rule{rule}}); err != nil {
					t.Fatal(err)
				}
				o.Table, o.Loopback = table, nil
			})
			users := &users{rig: r, table: table, of: make(map[string]*remoteFS)}
			t.Cleanup(users.close)
			return exporttest.Place{Below: below, As: users.as}
		},
	})
}

// TestExecuteOnly: what may be executed, and not read, no way of asking hands out. NFS has to.
func TestExecuteOnly(t *testing.T) {
	for name, fs := range map[string]func() vfs.FS{"memory": func() vfs.FS { return newMemory(t) }, "disk": func() vfs.FS { return newDisk(t) }} {
		t.Run(name, func(t *testing.T) {
			if name == "disk" {
				need.Root(t, "to call as another user takes root")
			}
			r := newRig(t, fs(), func(o *Options) { o.Loopback = &vfs.Caller{UID: 54321, GID: 54321} })
			for path, data := range map[string]string{"/run": "secret\n", "/empty": ""} {
				r.make(path, vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o711}}, data)
				for _, method := range []string{http.MethodGet, http.MethodHead} {
					q, err := http.NewRequestWithContext(t.Context(), method, "http://"+r.addr+path, nil)
					if err != nil {
						t.Fatal(err)
					}
					answer, err := r.http.Do(q)
					if err != nil {
						t.Fatal(err)
					}
					if _ = answer.Body.Close(); answer.StatusCode != http.StatusForbidden {
						t.Errorf("%s of %s: %s", method, path, answer.Status)
					}
				}
				c := r.client["protobuf"]
				if got, err := c.Get(t.Context(), &pb.GetRequest{File: &pb.GetRequest_Path{Path: path}}); connect.CodeOf(err) != connect.CodePermissionDenied {
					t.Errorf("a Get of %s: %v, %v", path, got, err)
				}
				if got, _, err := download(t.Context(), c, &pb.DownloadRequest{File: &pb.DownloadRequest_Path{Path: path}}); connect.CodeOf(err) != connect.CodePermissionDenied {
					t.Errorf("a Download of %s: %q, %v", path, got, err)
				}
				if told, end, err := search(t.Context(), c, among(path, "")); err != nil || end.GetCounts().GetFiles() != 0 || len(told) != 1 || told[0] != path+": permission_denied ACCES" {
					t.Errorf("a search of %s: %q, %v, %v", path, told, end, err)
				}
			}
		})
	}
}

// users are the callers of the matrix, each with a token.
type users struct {
	rig   *rig
	table *export.Table
	lines strings.Builder
	of    map[string]*remoteFS
}

func (u *users) as(c *vfs.Caller) vfs.FS {
	ids := fmt.Sprintf("%d:%d", c.UID, c.GID)
	for _, g := range c.Groups {
		ids += fmt.Sprintf(",%d", g)
	}
	if f := u.of[ids]; f != nil {
		return f
	}
	token := fmt.Sprintf("%032d", len(u.of))
	fmt.Fprintf(&u.lines, "user%d %s token:%s\n", len(u.of), ids, token)
	u.rig.s.SetCallers(callersOf(u.rig.TB, u.lines.String()))
	api, err := remote.New("http://"+u.rig.addr, remote.Options{Token: token})
	if err != nil {
		u.rig.Fatal(err)
	}
	caller := *c
	caller.Client = "127.0.0.1"
	f := &remoteFS{FS: u.table.As(&caller), c: api, paths: make(map[vfs.Handle]string)}
	u.of[ids] = f
	return f
}

func (u *users) close() {
	for _, f := range u.of {
		f.c.Close()
	}
}

// remoteFS does by the API what the API can, and the rest as the same caller's view.
type remoteFS struct {
	vfs.FS
	c *remote.Client

	mu    sync.Mutex
	paths map[vfs.Handle]string // guarded by mu
}

func (f *remoteFS) path(h vfs.Handle) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.paths[h]
}

// Lookup finds by the view, so that there is a handle also of what may not be looked
// up by the API, but gives the API's verdict.
func (f *remoteFS) Lookup(ctx context.Context, dir vfs.Handle, name string) (vfs.Handle, vfs.Attr, vfs.Attr, error) {
	h, a, d, err := f.FS.Lookup(ctx, dir, name)
	path := f.path(dir) + "/" + name
	if err == nil {
		f.mu.Lock()
		f.paths[h] = path
		f.mu.Unlock()
	}
	_, err = f.c.Lstat(ctx, path)
	return h, a, d, err
}

func (f *remoteFS) Create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (vfs.Handle, vfs.Attr, vfs.WCC, error) {
	path := f.path(dir) + "/" + name
	if how.Type == vfs.TypeDir {
		return vfs.Handle{}, vfs.Attr{}, vfs.WCC{}, f.c.MakeDirectory(ctx, path, 0o755)
	}
	_, err := f.c.Put(ctx, path, []byte("new"), remote.UploadOptions{})
	return vfs.Handle{}, vfs.Attr{}, vfs.WCC{}, err
}

func (f *remoteFS) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (vfs.WCC, error) {
	if isDir {
		return vfs.WCC{}, f.c.DeleteDirectory(ctx, f.path(dir)+"/"+name)
	}
	return vfs.WCC{}, f.c.Delete(ctx, f.path(dir)+"/"+name)
}

func (f *remoteFS) ReadDir(ctx context.Context, dir vfs.Handle, _ vfs.Pos, _ vfs.Mask, _ uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		for e, err := range f.c.List(ctx, f.path(dir), true) {
			if !yield(&vfs.Entry{Name: []byte(e.Name)}, err) {
				return
			}
		}
	}
}

func (f *remoteFS) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	if at.Name != "" {
		_, _, _, err := f.Create(ctx, at.Dir, at.Name, how.Create)
		return &remoteFile{}, vfs.Opened{}, err
	}
	r := &remoteFile{c: f.c, path: f.path(at.H)}
	var err error
	if how.Access&vfs.ShareWrite != 0 {
		_, err = r.WriteAt(ctx, nil, 0, vfs.Unstable, nil)
	}
	if err == nil && how.Access&vfs.ShareRead != 0 {
		_, _, err = r.ReadAt(ctx, nil, 0, nil)
	}
	return r, vfs.Opened{}, err
}

type remoteFile struct {
	vfs.File
	c    *remote.Client
	path string
}

func (r *remoteFile) ReadAt(ctx context.Context, _ []byte, off uint64, _ *vfs.Attr) (int, bool, error) {
	data, _, err := r.c.Get(ctx, r.path, remote.Range{Off: off})
	if other := r.search(ctx, err); other != nil {
		err = other
	}
	return len(data), true, err
}

// search is an error if a search of the file, or of the directory that it is in, has another verdict than a Get: it
// finds nothing that cannot be read, and misses nothing that can.
func (r *remoteFile) search(ctx context.Context, byGet error) error {
	dir := r.path[:strings.LastIndexByte(r.path, '/')+1]
	for what, q := range map[string]struct {
		path  string
		rules []remote.SearchRule
	}{"the file": {path: r.path}, "its directory": {dir, []remote.SearchRule{{Include: true, Pattern: "/" + r.path[len(dir):]}}}} {
		var failure *remote.Error
		done, err := r.c.Search(ctx, q.path, remote.SearchOptions{Patterns: []string{""}, Recursive: true, Rules: q.rules}, func(f remote.Found) error {
			if f.Err != nil && f.Path == r.path { // directories beside it may have failures of their own
				failure = f.Err
			}
			return nil
		})
		if err != nil || (done.Files == 1) != (byGet == nil) || (failure == nil) != (byGet == nil) || failure != nil && connect.CodeOf(byGet) != failure.Code {
			verdicts := fmt.Sprint(failure, ", ", err, "; a Get: ", byGet) // as text: none may pass for the verdict that is wanted
			return fmt.Errorf("a search of %s: %+v, %s", what, done, verdicts)
		}
	}
	return nil
}

func (r *remoteFile) WriteAt(ctx context.Context, p []byte, off uint64, _ vfs.Stability, _ *vfs.Written) (int, error) {
	_, err := r.c.PutRange(ctx, r.path, p, off, remote.UploadOptions{NoSync: true})
	return len(p), err
}

func (*remoteFile) Close(context.Context) error { return nil }
