//go:build linux

package outsider

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	// hostileRequests is how many are sent, by hostileClients at once.
	hostileRequests, hostileClients = 10_000, 8
	// hostileMemory bounds how much more memory the server has at any time than before, in
	// bytes: 8 heads of 20 KiB, 64 slow bodies of 64 KiB, and what Go's collector has not looked at yet.
	hostileMemory = 64 << 20
	// slowRequests is how many are not sent to their end, while the others come.
	slowRequests = 64
)

// TestHostileHTTPByChance sends what a seeded generator makes. Each request gets the status
// that it should, or the connection is closed. Nothing is changed by it, or leads out; requests of
// others are answered meanwhile as ever. The server's memory stays within hostileMemory, and
// it gives descriptors and goroutines back.
func TestHostileHTTPByChance(t *testing.T) {
	b := newBox(t)
	w := b.web("--api-idle-timeout=2s", "--metrics=127.0.0.1:0")
	metrics := w.web("metrics") + "/metrics"
	w.honest(0) // what is made at the first request is there
	memory, files, goroutines := w.resident(), w.descriptors(), b.goroutines(metrics)
	var hostile, slow, honest sync.WaitGroup
	var over atomic.Bool
	var served atomic.Int64
	for i := range 2 {
		honest.Go(func() {
			for !over.Load() {
				w.honest(i)
				served.Add(1)
			}
		})
	}
	start := time.Now()
	for i := range hostileClients {
		rnd := rand.New(rand.NewPCG(7, uint64(i)))
		for range slowRequests / hostileClients {
			h := slowRequest(rnd)
			slow.Go(func() { w.gets(h) })
		}
		hostile.Go(func() {
			for range hostileRequests / hostileClients {
				w.gets(hostileRequest(rnd))
			}
		})
	}
	hostile.Wait()
	took := time.Since(start)
	slow.Wait()
	over.Store(true)
	honest.Wait()
	w.unharmed()
	peak := w.peak()
	t.Logf("%d hostile requests in %v, and %d rounds of others; resident %d KiB before, %d at most, %d after; %d goroutines, %d descriptors before",
		hostileRequests, took, served.Load(), memory>>10, peak>>10, w.resident()>>10, goroutines, files)
	if peak-memory > hostileMemory {
		t.Errorf("the server has grown by %d MiB", (peak-memory)>>20)
	}
	b.until("descriptors and goroutines come back", func() bool {
		return w.descriptors() <= files && b.goroutines(metrics) <= goroutines
	})
}

// peak is the most memory that the server has had, in bytes.
func (s *server) peak() int64 {
	s.b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	s.b.no(err)
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	if found == nil {
		s.b.Fatalf("no VmHWM in %s", text)
	}
	kib, err := strconv.ParseInt(string(found[1]), 10, 64)
	s.b.no(err)
	return kib << 10
}

// goroutines is how many a server's metrics tell of.
func (b *box) goroutines(metrics string) int {
	b.Helper()
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}).Get(metrics)
	b.no(err)
	text, err := io.ReadAll(answer.Body)
	b.no(err)
	b.no(answer.Body.Close())
	found := regexp.MustCompile(`(?m)^go_goroutines (\d+)$`).FindSubmatch(text)
	if found == nil {
		b.Fatalf("no go_goroutines in %.1000s", text)
	}
	n, err := strconv.Atoi(string(found[1]))
	b.no(err)
	return n
}

// honest puts a file of its own, gets it, and removes it, over one connection.
func (w *web) honest(i int) {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: patience}
	text := strings.Repeat(fmt.Sprintf("honest %d ", i), 10_000)
	for _, c := range []struct {
		method, sent string
		status       int
		got          string
	}{{"PUT", text, 201, ""}, {"GET", "", 200, text}, {"DELETE", "", 204, ""}, {"GET", "", 404, ""}} {
		q, err := http.NewRequest(c.method, fmt.Sprintf("%s/honest-%d", w.at, i), strings.NewReader(c.sent))
		if err != nil {
			w.b.Error(err)
			return
		}
		answer, err := client.Do(q)
		if err != nil {
			w.b.Errorf("an honest %s: %v", c.method, err)
			return
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close() // all is read
		if err != nil || answer.StatusCode != c.status || c.status == 200 && string(body) != c.got {
			w.b.Errorf("an honest %s: %s and %d bytes, %v", c.method, answer.Status, len(body), err)
		}
	}
}

// hostile is a request that no honest client makes.
type hostile struct {
	kind, send string
	want       string // the statuses that may come, divided by |; "-" is a closed connection
	body       string // of a 200 or 206, if that is known
	half       bool   // the client sends no more then
}

// gets sends a request, and looks at what comes.
func (w *web) gets(h hostile) {
	var got []string
	for _, r := range w.replies(h.send, h.half) {
		got = append(got, strconv.Itoa(r.status))
		if h.body != "" && (r.status == http.StatusOK || r.status == http.StatusPartialContent) && !bytes.Contains(r.body, []byte(h.body)) {
			w.b.Errorf("%s: %.300q is answered with %.100q", h.kind, h.send, r.body)
		}
	}
	if len(got) == 0 {
		got = []string{"-"}
	}
	if h.want == "" {
		h.want = "-|200|204|206|304|400|401|404|405|409|411|412|413|415|416|417|431|501|505"
		if h.half { // a client that sends no more may have gone: its request is cancelled
			h.want += "|408"
		}
	} else if len(got) > 1 {
		w.b.Errorf("%s: %.300q is answered with %q", h.kind, h.send, got)
	}
	for _, status := range got {
		if !strings.Contains("|"+h.want+"|", "|"+status+"|") {
			w.b.Errorf("%s: %.300q is answered with %s, want %s", h.kind, h.send, status, h.want)
		}
	}
}

// hostileRequest is one of any kind.
func hostileRequest(rnd *rand.Rand) hostile {
	kinds := [...]func(chance) hostile{chance.smuggles, chance.chunks, chance.leads, chance.ranges, chance.bloats, chance.names, chance.targets, chance.cuts, chance.mixes}
	return kinds[rnd.IntN(len(kinds))](chance{rnd})
}

// chance makes requests.
type chance struct{ *rand.Rand }

func (c chance) pick(from ...string) string { return from[c.IntN(len(from))] }

const (
	http11  = " HTTP/1.1\r\n"
	hosted  = http11 + "Host: localhost\r\n"
	removes = "DELETE /keep" + hosted + "\r\n" // hides in other requests, and must not be answered
)

// smuggles hides a request where two readers may see different ends of the first.
func (c chance) smuggles() hostile {
	n := c.IntN(60)
	length := fmt.Sprintf("%s: %d\r\n", c.pick("Content-Length", "content-length", "CONTENT-LENGTH"), n)
	chunked := c.pick("Transfer-Encoding", "transfer-encoding") + ": " + c.pick("chunked", "Chunked", "chunked ", "\tchunked") + "\r\n"
	x := c.pick("", "X-Odd: 1\r\n")
	switch c.IntN(9) {
	case 0:
		return hostile{kind: "a length and chunks", send: "PUT /none/x" + hosted + length + x + chunked + "\r\n0\r\n\r\n" + removes, want: "400|409"}
	case 1:
		return hostile{kind: "chunks and a length", send: "PUT /none/x" + hosted + chunked + x + length + "\r\n0\r\n\r\n" + removes, want: "400|409"}
	case 2:
		return hostile{kind: "two lengths", send: "PUT /x" + hosted + length + x + fmt.Sprintf("Content-Length: %d\r\n", n+1+c.IntN(50)) + "\r\n" + removes + removes, want: "400"}
	case 3:
		odd := c.pick("+%d", "-%d", "0x%d", "%d, 7", "%d 7", "%de1", "%d.0", "\"%d\"", "18446744073709551616%d", ";%d")
		return hostile{kind: "an odd length", send: "PUT /x" + hosted + "Content-Length: " + fmt.Sprintf(odd, 1+n) + "\r\n" + x + "\r\n" + removes, want: "400"}
	case 4:
		encoding := c.pick("xchunked", "chunked, identity", "identity", "gzip, chunked", "chunked\r\nTransfer-Encoding: chunked", "chunked,chunked", "")
		return hostile{kind: "another encoding", send: "PUT /x" + hosted + length + x + "Transfer-Encoding: " + encoding + "\r\n\r\n0\r\n\r\n" + removes, want: "400|501"}
	case 5:
		return hostile{kind: "a folded line", send: "PUT /none/x" + hosted + "X: a\r\n" + c.pick(" ", "\t") + "Content-Length: 1\r\n" + length + "\r\n" + removes, want: "400|409"}
	case 6:
		return hostile{kind: "a bare line feed", send: "PUT /none/x" + hosted + "X: a\n" + chunked + length + "\r\n0\r\n\r\n" + removes, want: "400|409"}
	case 7:
		return hostile{kind: "a bare carriage return", send: "PUT /x" + hosted + "X: a\r" + c.pick("", "b", "\r") + "Content-Length: 0\r\n" + length + "\r\n" + removes, want: "400"}
	}
	name := c.pick("Content-Length ", " Content-Length", "Content\x00-Length", "Content-Length\x0b", "", "Content Length", "Content-L\xc3\xa4nge")
	return hostile{kind: "an odd field", send: "PUT /x" + hosted + "X: 1\r\nY: 2\r\n" + name + ": 7\r\n\r\n1234567" + removes, want: "400|411"}
}

// chunks are wrong in their framing.
func (c chance) chunks() hostile {
	size := c.pick("-5", "+5", "0x5", "5;a\nb", "g", "", "5 5", "fffffffffffffffff", "5\x00", "5;"+strings.Repeat("a", 5000))
	end := c.pick("\r\n0\r\n\r\n", "12\r\n0\r\n\r\n", "0\r\n\r\n")
	if c.IntN(2) == 0 {
		size, end = "5", c.pick("6\r\n0\r\n\r\n", "0\r\n\r\n", "\r\n0\r\nX\r\n\r\n", "\r\n-0\r\n\r\n", "\r\n0x0\r\n\r\n")
	}
	return hostile{kind: "odd chunks", send: "PUT /x" + hosted + "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + size + "\r\n12345" + end, want: "400|413"}
}

// leads has a path that might lead out of what is served.
func (c chance) leads() hostile {
	var path strings.Builder
	path.WriteString(c.pick("/", "/", "/", "/sub/", "//", "", "/keep/"))
	for range 1 + c.IntN(6) {
		path.WriteString(c.pick("..", "..", "%2e%2e", ".%2E", "%252e%252e", "...", ".", "\\..", "%5c..", "%c0%ae%c0%ae", "%00", "..%00", "\x01", "..;", "%2e%2e%2f..", "%ff"))
		path.WriteString(c.pick("/", "/", "//", "%2f", "%2F", "\\", "/./"))
	}
	path.WriteString(c.pick("secret", "etc/passwd", "srv/keep", "%2e%2e"))
	method := c.pick("GET", "GET", "PUT", "DELETE")
	return hostile{kind: "a path", send: method + " " + path.String() + hosted + "If-Match: \"none\"\r\nContent-Length: 0\r\n\r\n", want: "400|404|409|412"}
}

// ranges asks for odd parts of a file that has the bytes "what is to be kept".
func (c chance) ranges() hostile {
	n, m := c.IntN(9), 9+c.IntN(9)
	const all = "what is to be kept"
	r := [...]struct{ ask, want, body string }{
		{fmt.Sprintf("bytes=%d-%d", n, m), "206", all[n : m+1]},
		{fmt.Sprintf("bytes=%d-", n), "206", all[n:]},
		{fmt.Sprintf("bytes=-%d", m), "206", all[len(all)-m:]},
		{fmt.Sprintf("bytes=-%d", 18+c.IntN(1<<40)), "206", all},
		{fmt.Sprintf("bytes=%d-%d", n, c.Int64N(1<<62)+18), "206", all[n:]},
		{fmt.Sprintf("bytes=%d-%d,%d-%d", n, n, m, m), "206", all[m : m+1]},
		{fmt.Sprintf("bytes=%d-", 18+c.IntN(1<<40)), "416", ""},
		{fmt.Sprintf("bytes=%d-%d", m, n), "416", ""},
		{fmt.Sprintf("bytes=-%d%019d", 1+n, 0), "416", ""},
		{fmt.Sprintf("bytes=%d%019d-", 1+n, 0), "416", ""},
		{"bytes=" + c.pick("--1", "1--", "a-b", "0-x", "0x1-", "1", " - "), "416", ""},
		{"bytes=" + c.pick("+1-2", "-"), "200|206|416", ""}, // RFC 9110, section 14.2: as the server likes
		{"bytes=-" + strings.Repeat("0", 1+n), "200", all},
		{"bytes=" + strings.Repeat("0-,", 1+n) + "0-", "200", all},
		{"bytes=" + strings.Repeat(fmt.Sprintf("%d-%d,", n, n), 1000+c.IntN(2000)) + "0-0", "200", all},
		{c.pick("lines", "Bytes", "bytes ", "") + "=0-1", "200", all},
	}[c.IntN(16)]
	return hostile{kind: "a range", send: "GET /keep" + hosted + "Range: " + r.ask + "\r\n\r\n", want: r.want, body: r.body}
}

// bloats has a head of a mebibyte, or of some tens of KiB.
func (c chance) bloats() hostile {
	n := 32 << 10
	if c.IntN(8) == 0 {
		n = 1 << 20
	}
	fill := func(s string) string { return strings.Repeat(s, n/len(s)) }
	text := [...]string{
		"GET /keep" + hosted + "X: " + fill("x") + "\r\n\r\n",
		"GET /keep" + hosted + fill("X: x\r\n") + "\r\n",
		"GET /keep" + hosted + fill("x") + ": x\r\n\r\n",
		"GET /keep" + hosted + "X: x" + fill("\r\n x") + "\r\n\r\n",
		"GET /keep" + hosted + "Range: bytes=" + fill("0-0,") + "\r\n\r\n",
		"GET /" + fill("x") + hosted + "\r\n",
		"GET /keep?" + fill("x=y&") + hosted + "\r\n",
		fill("GET"),
	}[c.IntN(8)]
	return hostile{kind: "a large head", send: text, want: "431|400|-"}
}

// names has methods and versions that there are not, and odd hosts.
func (c chance) names() hostile {
	switch c.IntN(6) {
	case 0:
		method := c.pick("POST", "PATCH", "TRACE", "PROPFIND", "MKCOL", "COPY", "MOVE", "LOCK", "get", "Get", "PURGE", "DEBUG", "X-"+strconv.Itoa(c.IntN(1000)), "!#$%&'*+.^_`|~")
		return hostile{kind: "a method", send: method + " /keep" + hosted + "\r\n", want: "405"}
	case 1:
		return hostile{kind: "no method", send: c.pick("G(T", "G\x00T", "G@T", "\xff", "GET\t", "G\"T", "G:T") + " /keep" + hosted + "\r\n", want: "400"}
	case 2:
		version := c.pick("HTTP/1", "http/1.1", "HTTP/1.1.1", "HTTP/01.1", "HTTP/1.10", "HTTP/x.1", "HTCPCP/1.0", "")
		return hostile{kind: "no version", send: "GET /keep " + version + "\r\nHost: localhost\r\n\r\n", want: "400"}
	case 3:
		return hostile{kind: "a version", send: "GET /keep HTTP/" + c.pick("2.0", "3.0", "9.9", "0.9") + "\r\nHost: localhost\r\n\r\n", want: "505"}
	case 4:
		host := c.pick("", "Host: localhost\r\nHost: localhost\r\n", "Host: local host\r\n", "Host: local/host\r\n", "Host: \x00\r\n", "Host: a,b\tc\r\n", "Host: <>\r\n")
		return hostile{kind: "no host", send: "GET /keep" + http11 + host + "\r\n", want: "400"}
	}
	method := c.pick("GET", "DELETE", "OPTIONS")
	return hostile{kind: "a stranger's page", send: method + " /keep" + http11 + c.pick("Host: evil.example\r\n", "Host: localhost\r\nOrigin: http://evil.example\r\nSec-Fetch-Site: cross-site\r\n", "Host: localhost.evil.example\r\n", "Host: 192.0.2.1\r\n") + "\r\n", want: "401|403"}
}

// targets has each form of RFC 9112, section 3.2, where it may not be.
func (c chance) targets() hostile {
	t := [...]struct{ line, want string }{
		{"GET http://localhost/keep", "200"}, {"GET http://127.0.0.1:1/keep", "200"},
		{"DELETE http://evil.example/keep", "401"}, {"GET http://localhost@evil.example/keep", "401"}, {"GET http://localhost/../secret", "400"},
		{"GET http://localhost/%2e%2e/secret", "400"}, {"GET http://localhost:x/keep", "400"}, {"GET http://[::1/keep", "400"},
		{"GET localhost:80", "400"}, {"DELETE localhost:80", "400"}, {"GET mailto:keep", "400"}, {"GET file:keep", "400"}, {"GET javascript:keep", "400"},
		{"GET *", "400"}, {"PUT *", "400|411"}, {"DELETE *", "400"}, {"OPTIONS *", "204"},
		{"GET keep", "400"}, {"GET ?keep", "400"}, {"GET ", "400"}, {"GET  /keep", "400"}, {"GET /keep /keep", "400"}, {"GET #", "400"},
		{"CONNECT localhost:22", "405"}, {"CONNECT evil.example:443", "401"}, {"CONNECT /keep", "405"}, {"CONNECT 127.0.0.1:2049", "405"},
	}
	x := t[c.IntN(len(t))]
	return hostile{kind: "a target", send: x.line + hosted + "\r\n", want: x.want}
}

// cuts ends in the middle.
func (c chance) cuts() hostile {
	n := 1 + c.IntN(1000)
	switch c.IntN(4) {
	case 0:
		return hostile{kind: "a short body", send: fmt.Sprintf("PUT /x%sContent-Length: %d\r\n\r\n%s", hosted, n, strings.Repeat("x", c.IntN(n))), want: "400", half: true}
	case 1:
		return hostile{kind: "short chunks", send: fmt.Sprintf("PUT /x%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s", hosted, n, strings.Repeat("x", c.IntN(n))), want: "400", half: true}
	case 2:
		return hostile{kind: "no last chunk", send: "PUT /x" + hosted + "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n" + c.pick("", "0", "0\r", "0\r\n", "0\r\nX: "), want: "400", half: true}
	}
	whole := "PUT /x" + hosted + "Content-Length: 1\r\n\r\n"
	return hostile{kind: "half a head", send: whole[:c.IntN(len(whole)-2)], want: "-|400", half: true}
}

// mixes is made of pieces of requests. None is a PUT, or DELETE, that would be right.
func (c chance) mixes() hostile {
	return hostile{kind: "a mixture", send: oddRequest(c.Rand), half: c.IntN(4) == 0}
}

// slowRequest is one that its client does not send to its end.
func slowRequest(rnd *rand.Rand) hostile {
	c := chance{rnd}
	// last is the rest of the body, as far as the server knows.
	return [...]hostile{
		{kind: "a slow body", send: "PUT /slow" + hosted + "Content-Length: 1000000\r\n\r\n" + strings.Repeat("x", c.IntN(1000)), want: "408"},
		{kind: "slow chunks", send: "PUT /slow" + hosted + "Transfer-Encoding: chunked\r\n\r\nffff\r\n" + strings.Repeat("x", c.IntN(1000)), want: "408"},
	}[c.IntN(2)]
}

// oddRequest is made of pieces of requests. None is a PUT, or DELETE, that would be right.
func oddRequest(rnd *rand.Rand) string {
	pick := func(from ...string) string { return from[rnd.IntN(len(from))] }
	length := pick("", "", "0", "1", "7", "-1", "1e3", "99999999999", "0x10", "7, 7")
	method := pick("GET", "GET", "HEAD", "OPTIONS", "POST", "PATCH", "PROPFIND", "DELETE", "PUT", "get", "G ET", "")
	path := pick("/keep", "/", "/sub/", "/sub", "/none", "*", "") + pick("", "?page=%ff", "?sort=size&order=x", "/../../secret", "%00", "%2f..", "/.//.", ";x", "#x")
	if method == "DELETE" || method == "PUT" {
		path = pick("/none/x", "/sub", "/", "/sub/", "/keep/x", "/../x")
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s %s\r\n", method, path, pick("HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/9.9", "http/1.1", ""))
	text.WriteString(pick("Host: localhost\r\n", "Host: localhost\r\n", "Host: localhost\r\n", "Host: evil.example\r\n", ""))
	for range rnd.IntN(4) {
		text.WriteString(pick("Range: bytes=", "If-Match: ", "If-None-Match: ", "If-Range: ", "Accept: ", "Digest: ", "Repr-Digest: ", "Content-MD5: ",
			"Authorization: ", "Expect: ", "X-Odd: ", "Transfer-Encoding: ", "Content-Type: ", "Connection: "))
		text.WriteString(pick("0-0", "*", `W/"x"`, "text/html;q=9", "sha-256=:x:", "Basic Og==", "100-continue", "chunked", "close", strings.Repeat("a,", 500), "\x00", "") + "\r\n")
	}
	if length != "" {
		text.WriteString("Content-Length: " + length + "\r\n")
	}
	return text.String() + "\r\n" + pick("", "", "x", "1234567", "1\r\nx\r\n0\r\n\r\n", "\xff\x00\r\n")
}
