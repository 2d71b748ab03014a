//go:build linux

package outsider

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// web is the file API of a server, over a directory with something to lose.
type web struct {
	*server
	at, dir string
}

// web serves a directory by HTTP.
func (b *box) web(flags ...string) *web {
	b.Helper()
	dir := b.path("srv")
	b.no(os.MkdirAll(filepath.Join(dir, "sub"), 0o755))
	b.write(filepath.Join(dir, "keep"), "what is to be kept")
	b.write(filepath.Join(dir, "sub", "page.html"), "<script>alert(1)</script>")
	b.write(filepath.Join(filepath.Dir(dir), "secret"), "outside the export")
	own := fmt.Sprintf("--api-loopback=%d:%d", os.Getuid(), os.Getgid())
	w := &web{server: b.serve(dir, append([]string{"--api=127.0.0.1:0", own}, flags...)...), dir: dir}
	w.found()
	return w
}

// found finds out where the server has its file API.
func (w *web) found() {
	w.b.Helper()
	w.at = w.web("api")
}

// last is a request after which the server closes the connection. If it waits for a few
// more bytes of the one before, it finds them here, and then no request.
const last = "GET /none?" + "................................................................" +
	" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

// reply is what came of a request.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// raw is replies, but for their statuses alone.
func (w *web) raw(text string, half bool) (statuses []int) {
	w.b.Helper()
	for _, r := range w.replies(text, half) {
		statuses = append(statuses, r.status)
	}
	return statuses
}

// replies sends bytes on a connection of its own, and last, or with half nothing more. It returns
// the answers but for last's.
func (w *web) replies(text string, half bool) (all []reply) {
	w.b.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(w.at, "http://"))
	if err != nil {
		w.b.Error(err)
		return nil
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(patience)) // it is open
	if !half {
		text += last
	}
	_, _ = io.WriteString(c, text) // the server may have hung up by now
	if half {
		_ = c.(*net.TCPConn).CloseWrite()
	}
	r := bufio.NewReader(c)
	for {
		answer, err := http.ReadResponse(r, nil)
		if err != nil {
			if os.IsTimeout(err) {
				w.b.Errorf("%.200q: no answer, and the connection is open", text)
			}
			return all
		}
		if answer.StatusCode == http.StatusNotFound && answer.Close && !half {
			return all
		}
		body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
		all = append(all, reply{answer.StatusCode, answer.Header, body})
		if bytes.Contains(body, []byte("outside the export")) || bytes.Contains(body, []byte("root:x:0")) {
			w.b.Errorf("%.200q leads out of the export", text)
		}
		if err != nil {
			return all
		}
	}
}

// unharmed fails unless what was there is there, and nothing else.
func (w *web) unharmed() {
	w.b.Helper()
	var names []string
	w.b.no(filepath.WalkDir(w.dir, func(path string, _ os.DirEntry, err error) error {
		names = append(names, strings.TrimPrefix(path, w.dir))
		return err
	}))
	if got := strings.Join(names, " "); got != " /keep /sub /sub/page.html" {
		w.b.Errorf("there are %q", got)
	}
	if text, err := os.ReadFile(filepath.Join(w.dir, "keep")); err != nil || string(text) != "what is to be kept" {
		w.b.Errorf("the file has %q, %v", text, err)
	}
}

// TestHostileHTTP sends requests that no honest client would. "Evil" stands where a second
// request hides in a first one: it must not be answered as one. After "half" the client sends
// no more.
func TestHostileHTTP(t *testing.T) {
	b := newBox(t)
	w := b.web("--api-idle-timeout=3s")
	const host = " HTTP/1.1\r\nHost: localhost\r\n"
	const evil = "DELETE /keep" + host + "\r\n"
	for _, c := range []struct {
		name, send string
		want       string // statuses
	}{
		{"a length and chunks", "PUT /none/x" + host + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + evil, "409"},
		{"chunks and a length", "PUT /none/x" + host + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + evil, "409"},
		{"two lengths", "PUT /x" + host + "Content-Length: 5\r\nContent-Length: 50\r\n\r\n12345" + evil, "400"},
		{"a list of lengths", "PUT /x" + host + "Content-Length: 5, 50\r\n\r\n12345" + evil, "400"},
		{"a signed length", "PUT /x" + host + "Content-Length: +5\r\n\r\n12345" + evil, "400"},
		{"a length of 2^64", "PUT /x" + host + "Content-Length: 18446744073709551616\r\n\r\n" + evil, "400"},
		{"a length beyond any file", "PUT /x" + host + "Content-Length: 9223372036854775807\r\n\r\n" + evil, "413"},
		{"a body without a length", "PUT /x" + host + "\r\n12345" + evil, "411"},
		{"chunks in HTTP/1.0", "PUT /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n0\r\n\r\n" + evil, "400|401|411"},
		{"two encodings", "PUT /x" + host + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + evil, "501"},
		{"an unknown encoding", "PUT /x" + host + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + evil, "501"},
		{"a space before the colon", "PUT /x" + host + "Content-Length : 5\r\n\r\n12345" + evil, "400"},
		{"a folded line", "GET /keep" + host + "X: a\r\n b\r\nContent-Length: 0\r\n\r\n", "200|400"},
		{"a bare line feed in a chunk", "PUT /x" + host + "Transfer-Encoding: chunked\r\n\r\n5;a\nb\r\n12345\r\n0\r\n\r\n" + evil, "400"},
		{"half: a body shorter than it says", "PUT /x" + host + "Content-Length: 5\r\n\r\n123", "400"},
		{"half: chunks cut short", "PUT /x" + host + "Transfer-Encoding: chunked\r\n\r\n5\r\n123", "400"},
		{"half: chunks without an end", "PUT /x" + host + "Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n", "400"},
		{"half: a chunk longer than anything", "PUT /x" + host + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n12345\r\n", "400"},
		{"two hosts", "GET /keep" + host + "Host: evil.example\r\n\r\n", "400"},
		{"no host", "GET /keep HTTP/1.1\r\n\r\n", "400"},
		{"another host", "GET /keep HTTP/1.1\r\nHost: evil.example\r\n\r\n", "401"},
		{"up", "GET /../secret" + host + "\r\n", "400"}, {"up from below", "GET /sub/../../secret" + host + "\r\n", "400"},
		{"up, encoded", "GET /%2e%2e/secret" + host + "\r\n", "400"}, {"up, encoded twice", "GET /%252e%252e/secret" + host + "\r\n", "404"},
		{"an encoded slash", "GET /sub%2fpage.html" + host + "\r\n", "400"}, {"up by encoded slashes", "GET /..%2fsecret" + host + "\r\n", "400"},
		{"up by backslashes", "GET /..\\secret" + host + "\r\n", "404"}, {"up by encoded backslashes", "GET /..%5csecret" + host + "\r\n", "404"},
		{"up in too many bytes", "GET /%c0%ae%c0%ae/secret" + host + "\r\n", "404"}, {"a NUL", "GET /keep%00.txt" + host + "\r\n", "400"},
		{"a bare NUL", "GET /keep\x00" + host + "\r\n", "400"}, {"a path of its own host", "GET http://localhost/../secret" + host + "\r\n", "400"},
		{"a path of another host", "GET //evil.example/keep" + host + "\r\n", "404"}, {"the whole file system", "GET //etc/passwd" + host + "\r\n", "404"},
		{"a broken escape", "GET /%zz" + host + "\r\n", "400"}, {"a path of 10,000 bytes", "GET /" + strings.Repeat("a", 10_000) + host + "\r\n", "400"},
		{"a deep path", "GET /" + strings.Repeat("a/", 2000) + host + "\r\n", "404|400"}, {"a temporary's name", "PUT /.nfsbox-upload-x" + host + "Content-Length: 1\r\n\r\nx", "400"},
		{"a proxy's method", "CONNECT localhost:22" + host + "\r\n", "405"}, {"TRACE", "TRACE /keep" + host + "\r\n", "405"}, {"no method", "EVIL /keep" + host + "\r\n", "405"},
		{"a target that is an authority", "GET localhost:80" + host + "\r\n", "400"}, {"a target of another scheme", "GET mailto:keep" + host + "\r\n", "400"},
		{"all of it", "OPTIONS *" + host + "\r\n", "204"}, {"all of it, and a body", "OPTIONS *" + host + "Content-Length: 99999999999\r\n\r\nx", "204"}, {"a web page's", "DELETE /keep" + host + "Origin: http://evil.example\r\n\r\n", "401"},
		{"a header of a mebibyte", "GET /keep" + host + "X: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", "431|"},
		{"a hundred thousand headers", "GET /keep" + host + strings.Repeat("X: x\r\n", 100_000) + "\r\n", "431|"},
		{"a line of a mebibyte", "GET /" + strings.Repeat("x", 1<<20) + host + "\r\n", "431|"},
		{"many ranges", "GET /keep" + host + "Range: bytes=" + strings.Repeat("0-0,", 3000) + "0-0\r\n\r\n", "200"},
		{"ranges that overlap", "GET /keep" + host + "Range: bytes=0-,0-,0-\r\n\r\n", "200"},
		{"an absurd range", "GET /keep" + host + "Range: bytes=99999999999999999999-\r\n\r\n", "416"}, {"a range from behind", "GET /keep" + host + "Range: bytes=-0\r\n\r\n", "200"},
		{"not HTTP", strings.Repeat("\x00\xff", 5000), "400"}, {"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "400"},
	} {
		got := strings.Trim(fmt.Sprint(w.raw(c.send, strings.HasPrefix(c.name, "half: "))), "[]")
		ok := false
		for want := range strings.SplitSeq(c.want, "|") {
			ok = ok || got == want
		}
		if !ok {
			t.Errorf("%s: %q, want %s", c.name, got, c.want)
		}
	}
	w.unharmed()
}

// TestSlowHTTP: clients that send their bytes one at a time hold little, and do not last.
func TestSlowHTTP(t *testing.T) {
	b := newBox(t)
	w := b.web("--api-idle-timeout=2s")
	before := w.resident()
	var slow []net.Conn
	for range 200 {
		c, err := net.Dial("tcp", strings.TrimPrefix(w.at, "http://"))
		b.no(err)
		defer func() { _ = c.Close() }()
		_, err = io.WriteString(c, "PUT /slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\nx")
		b.no(err)
		slow = append(slow, c)
	}
	// Beside them others are served.
	res, err := http.Get(w.at + "/keep")
	b.no(err)
	b.no(res.Body.Close())
	if grown := w.resident() - before; grown > 96<<20 {
		t.Errorf("200 slow uploads hold %d MiB", grown>>20)
	}
	for _, c := range slow {
		b.no(c.SetReadDeadline(time.Now().Add(patience)))
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		b.no(err)
		if answer.StatusCode != http.StatusRequestTimeout {
			t.Errorf("a slow upload gets %s", answer.Status)
		}
	}
	b.until("the temporaries are gone", func() bool {
		left, err := filepath.Glob(filepath.Join(w.dir, ".nfsbox-upload-*"))
		return err == nil && len(left) == 0
	})
	w.unharmed()
}

// TestCurl is what the manual has people type.
func TestCurl(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("NOT TESTED: ", err)
	}
	b := newBox(t)
	b.write(b.path("callers"), fmt.Sprintf("me %d:%d token:%s\n", os.Getuid(), os.Getgid(), strings.Repeat("0123", 8)))
	b.no(os.Chmod(b.path("callers"), 0o600))
	w := b.web("--api-callers=" + b.path("callers"))
	large := string(pattern(3<<20, 5))
	b.write(b.path("large.bin"), large)
	run := func(want string, args ...string) {
		t.Helper()
		cmd := exec.Command(curl, append([]string{"-sS", "--max-time", "100", "-w", "%{stderr}%{http_code}"}, args...)...)
		cmd.Stdin = strings.NewReader(large)
		r := b.finish(cmd)
		if r.stderr != want {
			t.Errorf("curl %q: %s, want %s; %.200s", args, r.stderr, want, r.stdout)
		}
	}
	run("201", "-T", b.path("large.bin"), w.at+"/sub/")
	run("204", "-T", b.path("large.bin"), w.at+"/sub/large.bin")
	run("204", "-T", "-", w.at+"/sub/large.bin")
	run("411", "-X", "PUT", w.at+"/sub/large.bin") // a slip, which would empty the file
	b.write(b.path("empty"), "")
	run("201", "-T", b.path("empty"), w.at+"/sub/")
	run("204", "-X", "DELETE", w.at+"/sub/empty")
	run("412", "-T", b.path("large.bin"), "-H", "If-None-Match: *", w.at+"/sub/large.bin")
	run("409", "-T", b.path("large.bin"), w.at+"/none/large.bin")
	run("200", "-u", "x:"+strings.Repeat("0123", 8), "-o", b.path("back"), w.at+"/sub/large.bin")
	b.has(b.path("back"), large)
	run("401", "-u", "x:wrong", w.at+"/sub/large.bin")
	b.write(b.path("part"), large[:1<<20])
	run("206", "-C", "-", "-o", b.path("part"), w.at+"/sub/large.bin")
	b.has(b.path("part"), large)
	run("204", "-X", "DELETE", w.at+"/sub/large.bin")
	run("404", "-I", w.at+"/sub/large.bin")
	run("200", w.at+"/sub/")
	w.unharmed()
}

// has fails unless a file has this text.
func (b *box) has(name, want string) {
	b.Helper()
	got, err := os.ReadFile(name)
	if err != nil || string(got) != want {
		b.Errorf("%s: %d bytes and %v, want %d others", name, len(got), err, len(want))
	}
}
