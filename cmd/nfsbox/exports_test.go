package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/xdr"
)

// list is a list of exports, whatever their paths.
type list []string

// AppendXDR implements xdr.Appender.
func (l list) AppendXDR(b []byte) ([]byte, error) {
	for _, path := range l {
		b = xdr.AppendBool(xdr.AppendOpaque(xdr.AppendBool(b, true), []byte(path)), false)
	}
	return xdr.AppendBool(b, false), nil
}

// exporting serves MOUNT with this list, which mounts nothing, until the test ends. It returns host and port.
func exporting(t *testing.T, paths ...string) string {
	t.Helper()
	s := oncrpc.Service{Program: &mount3.MOUNT_V3, Handlers: make([]oncrpc.Handler, len(mount3.MOUNT_V3.Procs))}
	s.Handlers[mount3.MOUNTPROC3_EXPORT.Number] = func(_ context.Context, c *oncrpc.Call) error { return c.Reply(list(paths)) }
	s.Handlers[mount3.MOUNTPROC3_MNT.Number] = func(_ context.Context, c *oncrpc.Call) error {
		return c.Reply(&mount3.Mountres3{FhsStatus: mount3.MNT3ERR_NOENT})
	}
	nfs := oncrpc.Service{Program: &nfs3.NFS_V3, Handlers: make([]oncrpc.Handler, len(nfs3.NFS_V3.Procs))}
	srv, err := oncrpc.NewServer([]oncrpc.Service{s, nfs}, oncrpc.ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	t.Cleanup(func() {
		err := srv.Close()
		if e := <-done; err != nil || !errors.Is(e, oncrpc.ErrServerClosed) {
			t.Errorf("%v, %v", err, e)
		}
	})
	return l.Addr().String()
}

// TestOddExportsAreToldOf: exports that nobody can mount are a failure, and hide no other one: from exports, from
// ls, and from completion.
func TestOddExportsAreToldOf(t *testing.T) {
	at := exporting(t, "", "/srv/a", "/"+strings.Repeat("x", mount3.MNTPATHLEN), "/srv/b")
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"exports", at}, exitIncomplete, "/srv/a (everyone)\n/srv/b (everyone)\n"},
		{[]string{"ls", "nfs://" + at + "/srv"}, exitIncomplete, "a\nb\n"},
		{[]string{"complete", "nfs://" + at + "/srv/"}, exitOK, fmt.Sprintf("nfs://%s/srv/a/\nnfs://%s/srv/b/\n", at, at)},
	} {
		var stdout, stderr bytes.Buffer
		status := run(&env{ctx: t.Context(), stdout: &stdout, stderr: &stderr, rand: func([]byte) {}}, c.args)
		told := strings.Contains(stderr.String(), "1 without a path, 1 with one of more than 1024 bytes")
		if status != c.status || stdout.String() != c.want || told != (status != exitOK) {
			t.Errorf("%s: status %d\n%swant\n%s%s", c.args, status, &stdout, c.want, &stderr)
		}
	}
}
