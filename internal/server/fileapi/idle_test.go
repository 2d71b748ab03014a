package fileapi

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/sim"
	pb "github.com/nfsbox/nfsbox/proto/fileapi"
)

// TestIdleShort cuts off a client that announces little, and sends less.
func TestIdleShort(t *testing.T) {
	timed(t, func(o *Options) { o.Limits.Idle = 100 * time.Millisecond }, func(r *rig) {
		for _, call := range []string{"Put", "Upload"} {
			for _, kind := range []string{"application/json", "application/proto", "application/connect+proto", "application/connect+json", "application/grpc-web+proto"} {
				c := r.raw()
				if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
					r.Fatal(err)
				}
				if _, err := fmt.Fprintf(c, "POST /%s/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nContent-Length: 100\r\n\r\n{", pb.FileServiceName, call, kind); err != nil {
					r.Fatal(err)
				}
				if b, err := io.ReadAll(c); err != nil || len(b) == 0 {
					r.Errorf("%s as %s: %q, %v", call, kind, b, err)
				}
			}
		}
	})
}

// TestPauseBetweenAnswers has a client that takes an answer late, but in time, and calls
// again on the same connection: its pause is not held against the next call.
func TestPauseBetweenAnswers(t *testing.T) {
	timed(t, nil, func(r *rig) {
		r.make("/f", aFile, string(make([]byte, 1000)))
		get := rawRequest("POST", "Get", "", encode(&pb.GetRequest{File: &pb.GetRequest_Path{Path: "/f"}}, false))
		c := r.conn()
		defer func() { _ = c.Close() }()
		from, answers := bufio.NewReaderSize(c, 64<<10), 0
		ask := func() {
			if _, err := io.WriteString(c, get); err != nil {
				r.Fatal(err)
			}
			synctest.Wait()
		}
		take := func() {
			answer, err := http.ReadResponse(from, nil)
			if err != nil {
				r.Fatalf("answer %d: %v", answers, err)
			}
			body, err := io.ReadAll(answer.Body)
			if answers++; err != nil || answer.StatusCode != http.StatusOK {
				r.Errorf("answer %d: status %d, %q, %v", answers, answer.StatusCode, body, err)
			}
		}
		ask()
		if _, err := from.Peek(1); err != nil {
			r.Fatal(err)
		}
		// So many answers are more than the network holds, and one less are not: the
		// last one waits for the client behind the call.
		more := sim.StreamBuffer/from.Buffered() + 1
		take()
		for range more {
			ask()
		}
		time.Sleep(r.s.o.Limits.Idle * 3 / 2)
		for range more {
			take()
		}
		ask()
		take()
	})
}
