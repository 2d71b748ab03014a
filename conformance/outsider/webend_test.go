//go:build linux

package outsider

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestWebEnd: clients of the file API that have stopped, in the middle of a body or of an answer,
// do not keep the server from ending, though calls have an hour to finish.
func TestWebEnd(t *testing.T) {
	for name, request := range map[string]string{
		"body":   "PUT /g HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf",
		"answer": "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"denied": "PUT /g HTTP/1.1\r\nHost: elsewhere\r\nContent-Length: 100\r\n\r\nhalf",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			w := b.web("--drain-timeout=1h")
			large, err := os.Create(filepath.Join(w.dir, "large"))
			b.no(err)
			b.no(large.Truncate(1 << 30))
			b.no(large.Close())
			c, err := net.Dial("tcp", strings.TrimPrefix(w.at, "http://"))
			b.no(err)
			defer func() { _ = c.Close() }()
			_, err = io.WriteString(c, request)
			b.no(err)
			if name != "body" {
				_, err = io.ReadFull(c, make([]byte, 12))
				b.no(err)
			} else {
				b.until("the upload has begun", func() bool {
					left, err := filepath.Glob(filepath.Join(w.dir, ".nfsbox-upload-*"))
					return err == nil && len(left) == 1
				})
			}
			w.stop() // within patience, not within an hour
			if left, err := filepath.Glob(filepath.Join(w.dir, ".nfsbox-upload-*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %q, %v", left, err)
			}
		})
	}
}

// TestWebSetID: a user's file has the mode that was asked for, set-user-ID included.
func TestWebSetID(t *testing.T) {
	root(t, "the server acts as another user")
	b := newBox(t)
	dir := b.path("srv")
	b.no(os.Mkdir(dir, 0o777))
	b.no(os.Chmod(dir, 0o777)) //nolint:gosec // any user shall write to it
	w := &web{server: b.serve(dir, "--api=127.0.0.1:0", "--api-loopback=1000:1000"), dir: dir}
	w.found()
	for _, mode := range []os.FileMode{0o755, 0o755 | os.ModeSetuid, 0o755 | os.ModeSetuid | os.ModeSetgid} {
		octal := fmt.Sprintf("%o", syscallMode(mode))
		q, err := http.NewRequest(http.MethodPut, w.at+"/f"+octal, strings.NewReader("contents"))
		b.no(err)
		q.Header.Set("Nfsbox-Mode", octal)
		answer, err := (&http.Client{Timeout: time.Minute}).Do(q)
		b.no(err)
		b.no(answer.Body.Close())
		info, err := os.Stat(filepath.Join(dir, "f"+octal))
		b.no(err)
		if answer.StatusCode != http.StatusCreated || info.Mode() != mode || info.Sys().(*syscall.Stat_t).Uid != 1000 {
			t.Errorf("mode %s: %s, and the file has %v", octal, answer.Status, info.Mode())
		}
	}
}

// syscallMode is a mode with its bits as the kernel has them.
func syscallMode(m os.FileMode) (mode uint32) {
	mode = uint32(m.Perm())
	if m&os.ModeSetuid != 0 {
		mode |= syscall.S_ISUID
	}
	if m&os.ModeSetgid != 0 {
		mode |= syscall.S_ISGID
	}
	return mode
}
