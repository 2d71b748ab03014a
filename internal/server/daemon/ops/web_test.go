package ops

import (
	"context"
	"net"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/testkit/leak"
	"github.com/nfsbox/nfsbox/internal/testkit/logbuf"
)

// TestMain looks for goroutines of ours when all tests have cleaned up.
func TestMain(m *testing.M) { leak.Main(m) }

// TestManyScrapers keeps connections that ask nothing from taking descriptors
// without end.
func TestManyScrapers(t *testing.T) {
	c, log := config.Default(), &logbuf.Buffer{}
	c.Metrics = "127.0.0.1:0"
	logs := NewLogs(&c.Log, log, time.Now)
	var w Web
	err := w.Open(t.Context(), WebOptions{
		Config: &c, Now: time.Now, Log: logs.Logger(), Logs: logs, Client: func(net.Conn) string { return "one" },
		Listen: func(_ context.Context, _, address string) (net.Listener, error) { return net.Listen("tcp", address) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	url := regexp.MustCompile(`msg=metrics url=http://(\S+)`).FindStringSubmatch(log.String())
	if url == nil {
		t.Fatal(log)
	}
	for i := range maxHTTP + 1 {
		conn, err := net.Dial("tcp", url[1])
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}()
		if i < maxHTTP {
			continue
		}
		if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
			t.Errorf("one more than %d is let in: %v", maxHTTP, err)
		}
	}
}
