package daemon

import (
	"net"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
)

// TestInheritAPI tells sockets of the service manager's apart by their ports, and
// where NFS has the same port at another address, by that.
func TestInheritAPI(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	at := l.Addr().String()
	_, port, err := net.SplitHostPort(at)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		what   string
		listen []string
		api    []string
		taken  bool
	}{
		{"its address", nil, []string{at}, true},
		{"its port", []string{"127.0.0.1:2049"}, []string{":" + port}, true},
		{"NFS' address", []string{at}, []string{"127.0.0.2:" + port}, false},
		{"another port", nil, []string{"127.0.0.1:1"}, false},
		{"no API", nil, nil, false},
	} {
		d := &daemon{c: &config.Config{Listen: x.listen, API: config.API{Listen: x.api}}, listeners: []listener{{l: l}}}
		d.inheritAPI()
		if taken := len(d.api.listeners) == 1 && len(d.listeners) == 0; taken != x.taken {
			t.Errorf("%s: %v, want %v", x.what, taken, x.taken)
		}
	}
}
