package daemon

import (
	"context"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// clientOf is a raw client of the server at u, whose sockets are of the user uid.
func clientOf(t *testing.T, u string, uid int) *oncrpc.Client {
	t.Helper()
	parsed, err := url.Parse(u)
	if err != nil {
		t.Fatal(err)
	}
	type dialed struct {
		nc  net.Conn
		err error
	}
	c := oncrpc.NewClient(oncrpc.ClientOptions{Dial: func(ctx context.Context) (net.Conn, error) {
		out := make(chan dialed)
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			err := unix.Setfsuid(uid)
			var nc net.Conn
			if err == nil {
				var d net.Dialer
				nc, err = d.DialContext(ctx, "tcp", parsed.Host)
			}
			out <- dialed{nc, err}
		}()
		x := <-out
		return x.nc, x.err
	}})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// says is a credential that claims to be a user.
func says(t *testing.T, uid, gid uint32) oncrpc.Auth {
	t.Helper()
	a := oncrpc.AuthSys{UID: uid, GID: gid, GIDs: []uint32{0, gid}}
	auth, err := a.Auth()
	if err != nil {
		t.Fatal(err)
	}
	return auth
}

// mountAs mounts "/" as the user that a credential names.
func mountAs(t *testing.T, c *oncrpc.Client, as oncrpc.Auth) []byte {
	t.Helper()
	var res mount3.Mountres3
	reply, err := c.Call(t.Context(), mount3.MOUNTPROC3_MNT, as, &mount3.Mountargs{Path: []byte("/")}, &res)
	if err != nil || res.FhsStatus != mount3.MNT3_OK {
		t.Fatalf("MNT: %v, %v", res.FhsStatus, err)
	}
	defer reply.Release()
	return append([]byte(nil), res.Mountinfo.Fhandle...)
}

// create makes a set-uid program, and is the owner that it gets on the disk.
func create(t *testing.T, c *oncrpc.Client, as oncrpc.Auth, tree, name string) (owner uint32) {
	t.Helper()
	args := nfs3.CREATE3args{Where: nfs3.Diropargs3{Dir: nfs3.NfsFh3{Data: mountAs(t, c, as)}, Name: []byte(name)}}
	args.How.ObjAttributes.Mode = nfs3.SetMode3{SetIt: true, Mode: 0o4755}
	var res nfs3.CREATE3res
	reply, err := c.Call(t.Context(), nfs3.NFSPROC3_CREATE, as, &args, &res)
	if err != nil || res.Status != nfs3.NFS3_OK {
		t.Fatalf("CREATE: %v, %v", res.Status, err)
	}
	reply.Release()
	info, err := os.Stat(filepath.Join(tree, name))
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Uid
}

// TestUsersOfThisHost takes every user of this host for itself, on loopback and
// by default: it is not root because it says so, and not another user either. Root
// may speak for everybody, and a program that trust-local believes may, too.
func TestUsersOfThisHost(t *testing.T) {
	need.Root(t, "to be other users")
	tree := t.TempDir()
	if err := os.Chmod(tree, 0o777); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(tree, "secret")
	if err := os.WriteFile(secret, []byte("of 1000"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(secret, 1000, 1000); err != nil {
		t.Fatal(err)
	}
	u, log, _ := run(t, confOf(tree, t.TempDir()))
	stranger, owner, root := clientOf(t, u, 65533), clientOf(t, u, 1000), clientOf(t, u, 0)
	if uid := create(t, stranger, says(t, 0, 0), tree, "a"); uid != 65533 {
		t.Errorf("who says that it is root makes a set-uid program of %d", uid)
	}
	if uid := create(t, root, says(t, 0, 0), tree, "b"); uid != 0 {
		t.Errorf("root's file belongs to %d", uid)
	}
	if uid := create(t, root, says(t, 1000, 1000), tree, "c"); uid != 1000 {
		t.Errorf("the file that root makes for 1000 belongs to %d", uid)
	}
	for _, x := range []struct {
		what string
		c    *oncrpc.Client
		want nfs3.Nfsstat3
	}{{"another user", stranger, nfs3.NFS3ERR_ACCES}, {"its owner", owner, nfs3.NFS3_OK}, {"root", root, nfs3.NFS3_OK}} {
		as := says(t, 1000, 1000)
		var found nfs3.LOOKUP3res
		where := nfs3.LOOKUP3args{What: nfs3.Diropargs3{Dir: nfs3.NfsFh3{Data: mountAs(t, x.c, as)}, Name: []byte("secret")}}
		reply, err := x.c.Call(t.Context(), nfs3.NFSPROC3_LOOKUP, as, &where, &found)
		if err != nil || found.Status != nfs3.NFS3_OK {
			t.Fatalf("LOOKUP: %v, %v", found.Status, err)
		}
		h := nfs3.NfsFh3{Data: append([]byte(nil), found.Resok.Object.Data...)}
		reply.Release()
		res := nfs3.READ3res{Resok: nfs3.READ3resok{Data: make([]byte, 100)}}
		reply, err = x.c.Call(t.Context(), nfs3.NFSPROC3_READ, as, &nfs3.READ3args{File: h, Count: 100}, &res)
		if err != nil || res.Status != x.want {
			t.Errorf("%s reads as 1000: %v, %v; want %v", x.what, res.Status, err, x.want)
		}
		reply.Release()
	}
	if strings.Contains(log.String(), "squash is none") {
		t.Errorf("a warning, although all users are known:\n%s", log)
	}

	conf, yes := confOf(tree, t.TempDir()), true
	conf.Exports[0].TrustLocal = &yes
	u, log, _ = run(t, conf)
	if uid := create(t, clientOf(t, u, 65533), says(t, 0, 0), tree, "d"); uid != 0 {
		t.Errorf("whom trust-local believes makes a file of %d", uid)
	}
	if !strings.Contains(log.String(), "squash is none: every user of this host") {
		t.Errorf("no warning of trust-local:\n%s", log)
	}
}
