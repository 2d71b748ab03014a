package nfsclient

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// blindMountd gives one root, whatever path is asked for, and lists these exports.
func (h *host) blindMountd(exports ...string) oncrpc.Service {
	s := h.mountd(nil)
	name := func(f func(path string) xdr.Appender) oncrpc.Handler {
		return func(_ context.Context, c *oncrpc.Call) error {
			var args mount3.Mountargs
			if err := args.DecodeXDR(&c.Args); err != nil {
				return err
			}
			return c.Reply(f(string(args.Path)))
		}
	}
	s.Handlers[mount3.MOUNTPROC3_MNT.Number] = name(func(p string) xdr.Appender {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.log = append(h.log, "MNT "+p)
		return &mount3.Mountres3{Mountinfo: mount3.Mountres3Ok{Fhandle: []byte("/")}}
	})
	s.Handlers[mount3.MOUNTPROC3_EXPORT.Number] = func(_ context.Context, c *oncrpc.Call) error {
		var list mount3.Exports
		for _, e := range exports {
			list = append(list, mount3.Exportnode{ExDir: []byte(e)})
		}
		return c.Reply(&list)
	}
	return s
}

// treeNFS has directories, whose handles are their paths.
func treeNFS(dirs ...string) oncrpc.Service {
	isDir := nfs3.Fattr3{Type: nfs3.NF3DIR}
	return serve(&nfs3.NFS_V3, map[*xdr.Proc]func(*oncrpc.Call) xdr.Appender{
		nfs3.NFSPROC3_GETATTR: func(*oncrpc.Call) xdr.Appender {
			return &nfs3.GETATTR3res{Resok: nfs3.GETATTR3resok{ObjAttributes: isDir}}
		},
		nfs3.NFSPROC3_LOOKUP: func(c *oncrpc.Call) xdr.Appender {
			var args nfs3.LOOKUP3args
			if args.DecodeXDR(&c.Args) != nil {
				return nil
			}
			path := strings.TrimSuffix(string(args.What.Dir.Data), "/") + "/" + string(args.What.Name)
			if !slices.Contains(dirs, path) {
				return &nfs3.LOOKUP3res{Status: nfs3.NFS3ERR_NOENT}
			}
			return &nfs3.LOOKUP3res{Resok: nfs3.LOOKUP3resok{Object: nfs3.NfsFh3{Data: []byte(path)},
				ObjAttributes: nfs3.PostOpAttr{AttributesFollow: true, Attributes: isDir}}}
		},
		nfs3.NFSPROC3_FSINFO: func(*oncrpc.Call) xdr.Appender { return &nfs3.FSINFO3res{Resok: nfs3.FSINFO3resok{Wtmax: 4096}} },
	})
}

// TestMountLooksDown has servers that do not look at the path: where it leads is looked
// up in what they give, as far as it is known where their export ends.
func TestMountLooksDown(t *testing.T) {
	for name, tc := range map[string]struct {
		dirs, exports []string
		o             Options
		path, want    string // "": refused
	}{
		"a path in it":         {[]string{"/mount", "/mount/tree"}, nil, Options{}, "/mount/tree", "/mount/tree"},
		"a name of its own":    {[]string{"/tree"}, nil, Options{}, "/mount/tree", ""},
		"which it lists":       {[]string{"/tree"}, []string{"/mount"}, Options{}, "/mount/tree", "/tree"},
		"itself, listed":       {[]string{"/tree"}, []string{"/mount"}, Options{}, "/mount", "/"},
		"listed as the root":   {[]string{"/tree"}, []string{"/"}, Options{}, "/tree", "/tree"},
		"which the user says":  {[]string{"/tree"}, nil, Options{Export: "/mount"}, "/mount/tree", "/tree"},
		"itself, said":         {nil, nil, Options{Export: "/mount/"}, "/mount", "/"},
		"said, and not there":  {nil, nil, Options{Export: "/mount"}, "/mount/a/b", ""},
		"said to be elsewhere": {nil, nil, Options{Export: "/other"}, "/mount/a", ""},
		"the root":             {nil, nil, Options{}, "/", "/"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, "10.0.0.1")
			h.at("7000", treeNFS(tc.dirs...), h.blindMountd(tc.exports...))
			o := h.options(tc.o)
			o.Port, o.Path = 7000, tc.path
			c, err := Mount(t.Context(), o)
			if tc.want == "" {
				if err == nil {
					t.Errorf("mounted %q, %v", c.Root(), c.Close())
				} else if !strings.Contains(err.Error(), "export") && !errors.Is(err, vfs.ErrNoEnt) {
					t.Error(err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			root := c.Root()
			if got := string(root.Bytes()); got != tc.want || c.Target() != "" {
				t.Errorf("mounted %q, target %q", got, c.Target())
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDiagnoseFileSync does not ask a server for a COMMIT that has made the bytes stable
// with its WRITE.
func TestDiagnoseFileSync(t *testing.T) {
	for committed, want := range map[nfs3.StableHow]string{nfs3.FILE_SYNC: "stable at once", nfs3.UNSTABLE: ""} {
		h := newHost(t, "10.0.0.1")
		s := listed()
		var kept []byte
		answer := func(p *xdr.Proc, f func(c *oncrpc.Call) xdr.Appender) {
			s.Handlers[p.Number] = func(_ context.Context, c *oncrpc.Call) error { return c.Reply(f(c)) }
		}
		answer(nfs3.NFSPROC3_CREATE, func(*oncrpc.Call) xdr.Appender {
			return &nfs3.CREATE3res{Resok: nfs3.CREATE3resok{Obj: nfs3.PostOpFh3{HandleFollows: true, Handle: nfs3.NfsFh3{Data: []byte("f")}},
				ObjAttributes: nfs3.PostOpAttr{AttributesFollow: true, Attributes: nfs3.Fattr3{Type: nfs3.NF3REG}}}}
		})
		answer(nfs3.NFSPROC3_WRITE, func(c *oncrpc.Call) xdr.Appender {
			var args nfs3.WRITE3args
			if args.DecodeXDR(&c.Args) != nil {
				return nil
			}
			kept = append(kept[:args.Offset:args.Offset], args.Data...)
			return &nfs3.WRITE3res{Resok: nfs3.WRITE3resok{Count: uint32(len(args.Data)), Committed: committed}}
		})
		answer(nfs3.NFSPROC3_READ, func(c *oncrpc.Call) xdr.Appender {
			var args nfs3.READ3args
			if args.DecodeXDR(&c.Args) != nil {
				return nil
			}
			part := kept[args.Offset:min(int(args.Offset)+int(args.Count), len(kept))]
			return &nfs3.READ3res{Resok: nfs3.READ3resok{Count: uint32(len(part)), Data: part}}
		})
		answer(nfs3.NFSPROC3_REMOVE, func(*oncrpc.Call) xdr.Appender { return &nfs3.REMOVE3res{} })
		h.at("7000", s, h.mountd(nil, "/export/a/b")) // it has no COMMIT
		var last Step
		err := Diagnose(t.Context(), h.options(Options{Port: 7000}), DiagnoseOptions{Write: true}, func(s Step) { last = s })
		if last.Name != "write" || (err == nil) != (want != "") || !strings.Contains(last.Detail, want) {
			t.Errorf("%v: %+v, %v", committed, last, err)
		}
	}
}
