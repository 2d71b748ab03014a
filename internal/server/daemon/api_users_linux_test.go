package daemon

import (
	"context"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

// dialAs dials by a socket of the user uid.
func dialAs(uid int) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (nc net.Conn, err error) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			if err = unix.Setfsuid(uid); err != nil {
				return
			}
			var d net.Dialer
			nc, err = d.DialContext(ctx, network, address)
		}()
		<-done
		return nc, err
	}
}

// TestAPIOfOneUser: a server that a user has started by hand answers that user and
// root, over HTTP/1.1 and 2, and other users of this host only if they are trusted, or
// it was said as whom every program calls.
func TestAPIOfOneUser(t *testing.T) {
	need.Root(t, "to be other users")
	tree := t.TempDir()
	if err := os.Chmod(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	yes := true
	for _, x := range []struct {
		what  string
		only  bool
		trust *bool
		other int // what another user is answered
	}{{"by hand", true, nil, http.StatusUnauthorized}, {"trusted", true, &yes, http.StatusOK}, {"it is said", false, nil, http.StatusOK}} {
		c := confOf(tree, t.TempDir())
		c.API.Listen, c.API.Loopback = []string{"127.0.0.1:0"}, &config.User{UID: 4711, GID: 4711, Only: x.only}
		c.Exports[0].TrustLocal = x.trust
		_, log, _ := run(t, c)
		for uid, want := range map[int]int{0: http.StatusOK, 4712: x.other} {
			for _, two := range []bool{false, true} {
				p := new(http.Protocols)
				p.SetHTTP1(!two)
				p.SetUnencryptedHTTP2(two)
				tr := &http.Transport{DialContext: dialAs(uid), Protocols: p}
				q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, apiURL(t, log)+"/nfsbox.fileapi.v1.FileService/List", strings.NewReader(`{"path":"/"}`))
				if err != nil {
					t.Fatal(err)
				}
				q.Header.Set("Content-Type", "application/json")
				res, err := tr.RoundTrip(q)
				if err != nil {
					t.Fatal(err)
				}
				if res.StatusCode != want {
					t.Errorf("%s: user %d over HTTP/%d: status %d, want %d", x.what, uid, res.ProtoMajor, res.StatusCode, want)
				}
				if err := res.Body.Close(); err != nil {
					t.Error(err)
				}
				tr.CloseIdleConnections()
			}
		}
	}
}
