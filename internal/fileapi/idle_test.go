package fileapi

import (
	"fmt"
	"io"
	"testing"
	"time"

	pb "github.com/nfsbox/nfsbox/proto/fileapi"
)

// TestIdleShort cuts off who announces little, and sends less.
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
