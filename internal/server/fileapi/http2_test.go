package fileapi

import (
	"context"
	"encoding/binary"
	"net"
	"net/http"
	"testing"
	"time"

	pb "github.com/nfsbox/nfsbox/proto/fileapi"
)

// deaf sends one request over HTTP/2, gives it all the room that HTTP/2 has, and reads nothing of
// the socket.
func (r *rig) deaf(method, path, kind string, body []byte) net.Conn {
	r.Helper()
	const most = 1<<31 - 1
	window := binary.BigEndian.AppendUint32([]byte{0, 4}, most) // SETTINGS_INITIAL_WINDOW_SIZE
	b := append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frameOf(4, 0, 0, window)...)
	b = append(b, frameOf(8, 0, 0, binary.BigEndian.AppendUint32(nil, most-65535))...) // of the connection
	var header []byte
	for _, f := range [][2]string{{":method", method}, {":scheme", "http"}, {":path", path}, {":authority", "localhost"}, {"content-type", kind}} {
		// A literal that is not indexed (RFC 7541, section 6.2.2). Lengths below 127 are one byte.
		header = append(append(header, 0, byte(len(f[0]))), f[0]...)
		header = append(append(header, byte(len(f[1]))), f[1]...)
	}
	if len(body) == 0 {
		b = append(b, frameOf(1, 4|1, 1, header)...) // END_HEADERS, END_STREAM
	} else {
		b = append(append(b, frameOf(1, 4, 1, header)...), frameOf(0, 1, 1, body)...)
	}
	c := r.conn()
	r.Cleanup(func() { _ = c.Close() })
	if _, err := c.Write(b); err != nil {
		r.Fatal(err)
	}
	return c
}

// frameOf is a frame of HTTP/2 (RFC 9113, section 4.1).
func frameOf(kind, flags byte, stream uint32, payload []byte) []byte {
	f := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	return append(binary.BigEndian.AppendUint32(append(f, flags), stream), payload...)
}

// deafRequests are those with answers that do not end.
var deafRequests = map[string]func(*rig) net.Conn{
	"Search": func(r *rig) net.Conn {
		return r.deaf(http.MethodPost, pb.FileServiceSearchProcedure, "application/connect+json", []byte(prefixed(`{"path":"/endless","patterns":["line"]}`)))
	},
	"Download": func(r *rig) net.Conn {
		return r.deaf(http.MethodPost, pb.FileServiceDownloadProcedure, "application/connect+json", []byte(prefixed(`{"path":"/endless"}`)))
	},
	"GET": func(r *rig) net.Conn { return r.deaf(http.MethodGet, "/endless", "", nil) },
}

// until waits for what others do in their own time.
func (r *rig) until(what string, done func() bool) {
	r.Helper()
	for range 20_000 {
		if done() {
			return
		}
		time.Sleep(time.Millisecond) // for the kernel and net/http, which tell nobody
	}
	r.Errorf("after 20 s: %s", what)
}

// TestDeafIdle: a client of HTTP/2 that does not read its socket holds nothing for longer than the
// idle timeout.
func TestDeafIdle(t *testing.T) {
	for name, ask := range deafRequests {
		t.Run(name, func(t *testing.T) {
			w := &watch{bytes: full}
			r := newWatched(t, nil, w, func(o *Options) { o.Limits.Idle = 100 * time.Millisecond })
			sparse(r, "/endless", 1<<40)
			ask(r)
			r.until("no call has begun", func() bool { return w.read.Load() > 0 })
			r.until("the call goes on", func() bool { s := r.s.Snapshot(); return s.InProgress == 0 && s.Searches == 0 && w.open.Load() == 0 })
		})
	}
}

// TestDeafDrain: nor does it hold up the end of the server.
func TestDeafDrain(t *testing.T) {
	w := &watch{bytes: full}
	began := time.Now()
	r := newWatched(t, nil, w, func(o *Options) {
		o.Limits.Idle = time.Hour
		o.Now = func() time.Time { return began.Add(20 * time.Since(began)) } // drainIdle is over soon
	})
	sparse(r, "/endless", 1<<40)
	for _, ask := range deafRequests {
		ask(r)
	}
	r.until("the calls have not begun", func() bool { return w.open.Load() == int64(len(deafRequests)) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := r.s.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
}
