package daemon

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
)

// TestSlowAPIServed has a call in the server's log whose client sends slowly.
func TestSlowAPIServed(t *testing.T) {
	c := apiConfig(t.TempDir(), t.TempDir())
	c.Slow = config.Duration(config.SlowFloor)
	_, log, stop := run(t, c)
	conn, err := net.Dial("tcp", strings.TrimPrefix(apiURL(t, log), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(conn)
	answer := func(status int) {
		t.Helper()
		if res, err := http.ReadResponse(answers, nil); err != nil || res.StatusCode != status {
			t.Fatalf("%+v, %v; want %d", res, err, status)
		}
	}
	const head = "POST /nfsbox.fileapi.v1.FileService/Echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
		"Expect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n"
	if _, err := io.WriteString(conn, head); err != nil {
		t.Fatal(err)
	}
	answer(http.StatusContinue) // now the server's time runs
	<-time.After(2 * config.SlowFloor)
	if _, err := io.WriteString(conn, "{}"); err != nil {
		t.Fatal(err)
	}
	answer(http.StatusOK)
	if err := errors.Join(conn.Close(), stop()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), `msg="slow call" procedure=Echo`) {
		t.Errorf("nothing is said of it:\n%s", log)
	}
}
