package v3suite

import (
	"context"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/sim"
	"github.com/nfsbox/nfsbox/internal/testkit/sim/rpcfault"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/xdr"
)

// results are what every procedure but NULL answers, in their order.
var results = []func() nfs3.Result{
	func() nfs3.Result { return new(nfs3.GETATTR3res) },
	func() nfs3.Result { return new(nfs3.SETATTR3res) },
	func() nfs3.Result { return new(nfs3.LOOKUP3res) },
	func() nfs3.Result { return new(nfs3.ACCESS3res) },
	func() nfs3.Result { return new(nfs3.READLINK3res) },
	func() nfs3.Result { return new(nfs3.READ3res) },
	func() nfs3.Result { return new(nfs3.WRITE3res) },
	func() nfs3.Result { return new(nfs3.CREATE3res) },
	func() nfs3.Result { return new(nfs3.MKDIR3res) },
	func() nfs3.Result { return new(nfs3.SYMLINK3res) },
	func() nfs3.Result { return new(nfs3.MKNOD3res) },
	func() nfs3.Result { return new(nfs3.REMOVE3res) },
	func() nfs3.Result { return new(nfs3.RMDIR3res) },
	func() nfs3.Result { return new(nfs3.RENAME3res) },
	func() nfs3.Result { return new(nfs3.LINK3res) },
	func() nfs3.Result { return new(nfs3.READDIR3res) },
	func() nfs3.Result { return new(nfs3.READDIRPLUS3res) },
	func() nfs3.Result { return new(nfs3.FSSTAT3res) },
	func() nfs3.Result { return new(nfs3.FSINFO3res) },
	func() nfs3.Result { return new(nfs3.PATHCONF3res) },
	func() nfs3.Result { return new(nfs3.COMMIT3res) },
}

// unseen are the fields in which a lie of one is no lie that a client could find
// out, by the end of their paths.
var unseen = map[string]string{
	"Used":                    "file systems allocate as they like, and late",
	"Atime.Seconds":           "it moves by itself, behind any result but that of GETATTR",
	"Atime.Nseconds":          "the same",
	"Tbytes":                  "nobody else knows",
	"Fbytes":                  "the same",
	"Abytes":                  "the same",
	"Tfiles":                  "the same",
	"Ffiles":                  "the same",
	"Afiles":                  "the same",
	"Invarsec":                "the same",
	"Rtmax":                   "a wish of the server's",
	"Rtpref":                  "the same",
	"Rtmult":                  "the same",
	"Wtmax":                   "the same",
	"Wtpref":                  "the same",
	"Wtmult":                  "the same",
	"Dtpref":                  "the same",
	"Maxfilesize":             "one more or less of billions",
	"TimeDelta.Seconds":       "a wish of the server's",
	"TimeDelta.Nseconds":      "the same",
	"Before.AttributesFollow": "a server may leave it out",
	"Obj.HandleFollows":       "the same; a client then looks the name up",
}

// TestMutants lets a server lie in one field of one procedure's results at a
// time. The suite has to find out, each time.
func TestMutants(t *testing.T) {
	t.Parallel()
	fs := memfs.New(memfs.Options{Mode: 0o777, MaxLinks: 40})
	addr := serve(t, fs)
	for i, fresh := range results {
		p := &nfs3.NFS_V3.Procs[i+1]
		for _, path := range leaves(reflect.TypeOf(fresh()).Elem()) {
			t.Run(procName(p)+"/"+path, func(t *testing.T) {
				if found := provoke(t, addr, p, lie(fresh, path)); found == "" {
					t.Error("the suite does not find it")
				}
			})
		}
	}
}

// TestHonest finds nothing where nothing is wrong, by the same way.
func TestHonest(t *testing.T) {
	addr := serve(t, memfs.New(memfs.Options{Mode: 0o777}))
	if found := provoke(t, addr, &nfs3.NFS_V3.Procs[1], func(*rpcfault.Message, *sim.Rand) {}); found != "" {
		t.Error(found)
	}
}

// serve serves fs until the test ends.
func serve(t *testing.T, fs *memfs.FS) string {
	t.Helper()
	table, err := export.NewTable(export.Key{1}, export.Export{Path: "/", FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := nfsserver.New(nfsserver.Options{Exports: table})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		_ = srv.Serve(l) // it ends with Close
		close(done)
	}()
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		<-done
	})
	return l.Addr().String()
}

// provoke runs the suite behind a proxy that edits the replies of p, those tests
// first that are about p, and returns the first fault that is found.
func provoke(t *testing.T, addr string, p *xdr.Proc, edit rpcfault.Edit) string {
	t.Helper()
	proxy := rpcfault.New(rpcfault.Options{
		Upstream: func(ctx context.Context) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", addr)
		},
		Rules: []rpcfault.Rule{{Procs: []*xdr.Proc{p}, Fault: rpcfault.Fault{Kind: rpcfault.EditReply, Edit: edit}}},
	})
	defer func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	}()
	dial := func(ctx context.Context) (net.Conn, error) { return proxy.Dial(ctx, "", "") }
	s, failed := newSuite(t, Target{Dial: dial, Export: "/", Identities: true})
	defer func() { _ = s.nfs.Close() }() // before the proxy; newSuite's is the second
	if len(failed) > 0 {
		return failed[0]
	}
	all := groups()
	own := strings.ToLower(procName(p))
	slices.SortStableFunc(all, func(a, b group) int { return strings.Compare(rank(a, own), rank(b, own)) })
	for _, g := range all {
		for _, test := range g.tests {
			if s.target.lacks(test.needs) != "" {
				continue
			}
			if found := s.run(t, g.name+"/"+test.name, &test); len(found) > 0 {
				return g.name + "/" + test.name + ": " + found[0]
			}
		}
	}
	return ""
}

// rank sorts the group of a procedure before the others.
func rank(g group, own string) string {
	if g.name == own {
		return ""
	}
	return "x"
}

// TestUnseen finds a field for every exception.
func TestUnseen(t *testing.T) {
	for end, why := range unseen {
		if !slices.ContainsFunc(results, func(fresh func() nfs3.Result) bool {
			resok, _ := reflect.TypeOf(fresh()).Elem().FieldByName("Resok")
			return slices.ContainsFunc(walk(resok.Type, "Resok"), func(path string) bool { return strings.HasSuffix(path, "."+end) })
		}) {
			t.Errorf("no result has a field %s (%s)", end, why)
		}
	}
}

// leaves are the paths of the fields of a result that succeeded, but for those
// that cannot be seen.
func leaves(t reflect.Type) []string {
	resok, _ := t.FieldByName("Resok")
	return slices.DeleteFunc(walk(resok.Type, "Resok"), func(path string) bool {
		for end := range unseen {
			if strings.HasSuffix(path, "."+end) {
				return true
			}
		}
		return false
	})
}

func walk(t reflect.Type, path string) []string {
	switch {
	case t.Kind() == reflect.Struct:
		var all []string
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() {
				all = append(all, walk(f.Type, path+"."+f.Name)...)
			}
		}
		return all
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return walk(t.Elem(), path+".[]")
	}
	return []string{path}
}

// lie changes one field of every result that succeeded.
func lie(fresh func() nfs3.Result, path string) rpcfault.Edit {
	return func(m *rpcfault.Message, _ *sim.Rand) {
		res := fresh()
		d := xdr.NewDecoder(m.Record[m.Body:])
		if err := res.DecodeXDR(&d); err != nil || *res.Stat() != nfs3.NFS3_OK {
			return
		}
		twist(reflect.ValueOf(res).Elem(), strings.Split(path, "."))
		b, err := res.(xdr.Appender).AppendXDR(slices.Clone(m.Record[:m.Body]))
		if err != nil {
			panic(fmt.Sprintf("%s: %v", path, err))
		}
		m.Record = b
	}
}

// twist changes the field at path by one; in a list, that of every element.
func twist(v reflect.Value, path []string) {
	if len(path) > 0 && path[0] == "[]" {
		for i := range v.Len() {
			twist(v.Index(i), path[1:])
		}
		return
	}
	if len(path) > 0 {
		twist(v.FieldByName(path[0]), path[1:])
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int32:
		v.SetInt(v.Int() ^ 1)
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(v.Uint() ^ 1)
	case reflect.Array:
		v.Index(7).SetUint(v.Index(7).Uint() ^ 1)
	case reflect.Slice:
		if b := slices.Clone(v.Bytes()); len(b) > 0 {
			b[len(b)-1] ^= 1
			v.SetBytes(b)
		}
	default:
		panic("a field of kind " + v.Kind().String())
	}
}
