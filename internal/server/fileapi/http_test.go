package fileapi

import (
	"bufio"
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// answer is what came of a request for a path.
type answer struct {
	*http.Response
	body string
}

// do makes a request for a path. headers are names and values in turn.
func (r *rig) do(method, path, body string, headers ...string) *answer {
	r.Helper()
	q, err := http.NewRequestWithContext(r.Context(), method, "http://"+r.addr+path, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	if body == "" {
		q.Body, q.ContentLength = http.NoBody, 0
	}
	for i := 0; i < len(headers); i += 2 {
		q.Header.Add(headers[i], headers[i+1])
	}
	a, err := r.http.Transport.RoundTrip(q) // it follows no redirection
	if err != nil {
		r.Errorf("%s %s: %v", method, path, err)
		return &answer{Response: &http.Response{}}
	}
	defer func() { _ = a.Body.Close() }()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		r.Errorf("%s %s: %v", method, path, err)
	}
	return &answer{a, string(b)}
}

// expect is do, and the status that must come of it.
func (r *rig) expect(status int, method, path, body string, headers ...string) *answer {
	r.Helper()
	a := r.do(method, path, body, headers...)
	if a.StatusCode != status {
		r.Errorf("%s %s %q: %s, want %d: %.200s", method, path, headers, a.Status, status, a.body)
	}
	return a
}

// later has a server's clock go an hour ahead, so that no file is recent.
func later(o *Options) { o.Now = func() time.Time { return time.Now().Add(time.Hour) } }

// TestPlain goes through what curl and browsers do with a file.
func TestPlain(t *testing.T) {
	onEvery(t, func(t *testing.T, fs vfs.FS) {
		r := newRig(t, fs, later)
		r.make("/dir", aDir, "")
		for _, size := range []int{0, 1, onTrust - 1, onTrust, onTrust + 1, chunk + onTrust, len(large)} {
			data := string(large[:size])
			for _, sync := range []string{"true", "false"} {
				first := r.expect(http.StatusCreated, "PUT", "/dir/f", data, syncField, sync)
				second := r.expect(http.StatusNoContent, "PUT", "/dir/f", data, syncField, sync)
				get := r.expect(http.StatusOK, "GET", "/dir/f", "")
				if get.body != data {
					t.Errorf("%d bytes: %d have come back, and others", size, len(get.body))
				}
				head := r.expect(http.StatusOK, "HEAD", "/dir/f", "")
				for _, name := range []string{"Content-Length", "Content-Type", "Etag", "Last-Modified", "Accept-Ranges"} {
					if get.Header.Get(name) == "" || get.Header.Get(name) != head.Header.Get(name) {
						t.Errorf("%s is %q to GET and %q to HEAD", name, get.Header.Get(name), head.Header.Get(name))
					}
				}
				tag := get.Header.Get("Etag")
				if want := second.Header.Get("Etag"); sync == "true" && tag != want || sync == "false" && want != "" || tag == first.Header.Get("Etag") || strings.HasPrefix(tag, "W/") {
					t.Errorf("GET has the tag %s, and the PUTs %s and %s", tag, first.Header.Get("Etag"), second.Header.Get("Etag"))
				}
				r.expect(http.StatusNoContent, "DELETE", "/dir/f", "")
				r.expect(http.StatusNotFound, "GET", "/dir/f", "")
			}
		}
		r.expect(http.StatusNoContent, "DELETE", "/dir/", "")
	})
}

// TestPlainStatuses has each refusal get its own status.
func TestPlainStatuses(t *testing.T) {
	onEvery(t, func(t *testing.T, fs vfs.FS) {
		r := newRig(t, fs, func(o *Options) { o.Limits.FileSize = 1000; o.Report = func(error) {} })
		r.make("/dir", aDir, "")
		r.make("/dir/f", aFile, "text")
		r.make("/pipe", vfs.CreateHow{Type: vfs.TypeFIFO, Set: aFile.Set}, "")
		before := r.tree()
		for _, c := range []struct {
			status             int
			method, path, body string
			headers            []string
		}{
			{404, "GET", "/none", "", nil}, {404, "GET", "/dir/f/below", "", nil}, {404, "GET", "/dir/f/", "", nil},
			{403, "GET", "/pipe", "", nil}, {404, "HEAD", "/none", "", nil},
			{400, "GET", "/dir/../dir/f", "", nil}, {400, "GET", "/%2e%2e/etc/passwd", "", nil}, {400, "GET", "/dir%2ff", "", nil},
			{400, "GET", "/dir%2Ff", "", nil}, {400, "GET", "/%00", "", nil}, {404, "GET", `/..%5c..%5cetc`, "", nil},
			{400, "GET", "/" + tempPrefix + "x", "", nil}, {400, "PUT", "/" + tempPrefix + "x", "y", nil},
			{409, "PUT", "/none/f", "x", nil}, {409, "PUT", "/dir/f/below", "x", nil}, {409, "PUT", "/dir", "x", nil},
			{400, "PUT", "/dir/", "x", nil}, {413, "PUT", "/g", strings.Repeat("x", 1001), nil},
			{400, "PUT", "/g", "x", []string{"Content-Range", "bytes 0-0/1"}}, {415, "PUT", "/g", "x", []string{"Content-Encoding", "gzip"}},
			{400, "PUT", "/g", "x", []string{modeField, "rw"}}, {400, "PUT", "/g", "x", []string{modeField, "77777"}}, {400, "PUT", "/g", "x", []string{syncField, "perhaps"}},
			{404, "DELETE", "/none", "", nil}, {409, "DELETE", "/dir", "", nil}, {409, "DELETE", "/dir/", "", nil}, {404, "DELETE", "/dir/f/", "", nil},
			{404, "DELETE", "/none/f", "", nil}, {400, "DELETE", "/", "", nil},
			{405, "POST", "/dir/f", "x", nil}, {405, "PATCH", "/dir/f", "x", nil}, {405, "TRACE", "/dir/f", "", nil}, {405, "MKCOL", "/new", "", nil},
			{204, "OPTIONS", "/dir/f", "", nil},
			{401, "GET", "/dir/f", "", []string{"Origin", "http://evil.example"}},
			{401, "GET", "/dir/f", "", []string{"Sec-Fetch-Site", "cross-site"}},
			{401, "PUT", "/dir/f", "x", []string{"Sec-Fetch-Site", "same-origin"}},
			{200, "GET", "/dir/f", "", []string{"Sec-Fetch-Site", "none"}}, {200, "GET", "/dir/", "", []string{"Sec-Fetch-Site", "same-origin"}},
			{401, "GET", "/dir/f", "", []string{"Authorization", "Basic eDp5"}},
		} {
			a := r.expect(c.status, c.method, c.path, c.body, c.headers...)
			if allow := a.Header.Get("Allow"); (allow != "") != (c.status == 405 || c.method == "OPTIONS") {
				t.Errorf("%s %s: Allow is %q", c.method, c.path, allow)
			}
			if a.Header.Get("X-Content-Type-Options") != "nosniff" && c.status != 401 {
				t.Errorf("%s %s: a browser may guess at types", c.method, c.path)
			}
			if c.status < 400 || c.method == "HEAD" {
				continue
			}
			var told struct{ Code, Message string }
			a = r.expect(c.status, c.method, c.path, c.body, append(c.headers, "Accept", "application/json")...)
			if err := json.Unmarshal([]byte(a.body), &told); err != nil || told.Code == "" || told.Message == "" {
				t.Errorf("%s %s: %q, %v", c.method, c.path, a.body, err)
			}
		}
		if after := r.tree(); after != before {
			t.Errorf("there is now\n%s\nand was\n%s", after, before)
		}
	})
}

// TestConditions has a file's tag and time in each condition, alone.
func TestConditions(t *testing.T) {
	r := newRig(t, nil, later)
	old, soon := time.Unix(1e9, 0).UTC().Format(http.TimeFormat), time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	for _, c := range []struct {
		name, value       string // TAG stands for the tag, DATE for Last-Modified
		get, change, none int    // of a file; of a PUT to a name that is not there
	}{
		{"If-None-Match", "TAG", 304, 412, 201}, {"If-None-Match", "W/TAG", 304, 412, 201}, {"If-None-Match", `"a", TAG`, 304, 412, 201},
		{"If-None-Match", `"a"`, 200, 204, 201}, {"If-None-Match", "*", 304, 412, 201}, {"If-None-Match", "", 200, 204, 201},
		{"If-Match", "TAG", 200, 204, 412}, {"If-Match", `"a",TAG`, 200, 204, 412}, {"If-Match", "*", 200, 204, 412},
		{"If-Match", "W/TAG", 412, 412, 412}, {"If-Match", `"a"`, 412, 412, 412},
		{"If-Modified-Since", "DATE", 304, 204, 201}, {"If-Modified-Since", old, 200, 204, 201}, {"If-Modified-Since", "soon", 200, 204, 201},
		{"If-Unmodified-Since", soon, 200, 204, 201}, {"If-Unmodified-Since", "DATE", 200, 204, 201}, {"If-Unmodified-Since", old, 412, 412, 201},
		{"If-Unmodified-Since", "soon", 200, 204, 201},
	} {
		a := r.do("PUT", "/f", "0123456789")
		tag, date := a.Header.Get("Etag"), r.do("HEAD", "/f", "").Header.Get("Last-Modified")
		value := strings.NewReplacer("TAG", tag, "DATE", date).Replace(c.value)
		if get := r.expect(c.get, "GET", "/f", "", c.name, value); (get.body == "0123456789") != (c.get == 200) {
			t.Errorf("%s %q: %q has come", c.name, c.value, get.body)
		}
		r.expect(c.get, "HEAD", "/f", "", c.name, value)
		for _, sync := range []string{"true", "false"} {
			r.expect(c.none, "PUT", "/none", "new", c.name, value, syncField, sync)
			r.do("DELETE", "/none", "")
		}
		r.expect(c.change, "PUT", "/f", "new", c.name, value)
		want := map[bool]string{true: "new", false: "0123456789"}[c.change == 204]
		if get := r.expect(200, "GET", "/f", ""); get.body != want {
			t.Errorf("PUT with %s %q: the file has %q", c.name, c.value, get.body)
		}
		now := r.do("HEAD", "/f", "").Header
		value = strings.NewReplacer("TAG", now.Get("Etag"), "DATE", now.Get("Last-Modified")).Replace(c.value)
		r.expect(c.change, "DELETE", "/f", "", c.name, value)
	}
}

// TestRecent: a file that may change again without a new tag has a weak one.
func TestRecent(t *testing.T) {
	r := newRig(t, nil, func(o *Options) {
		o.Now = func() time.Time { return time.Now().Add(-time.Minute) }
		o.Limits.Idle = time.Hour // by the same clock
	})
	put := r.expect(201, "PUT", "/f", "x").Header.Get("Etag")
	if get := r.expect(200, "GET", "/f", "").Header.Get("Etag"); get != "W/"+put {
		t.Errorf("GET has the tag %s, and PUT %s", get, put)
	}
	r.expect(204, "PUT", "/f", "y", "If-Match", put)
}

// TestRanges asks for parts of ten bytes.
func TestRanges(t *testing.T) {
	r := newRig(t, nil, later)
	tag := r.expect(201, "PUT", "/f.txt", "0123456789").Header.Get("Etag")
	date := r.do("HEAD", "/f.txt", "").Header.Get("Last-Modified")
	for _, c := range []struct {
		ranges, ifRange string
		status          int
		want, where     string
	}{
		{"bytes=0-3", "", 206, "0123", "bytes 0-3/10"}, {"bytes=4-", "", 206, "456789", "bytes 4-9/10"}, {"bytes=-3", "", 206, "789", "bytes 7-9/10"},
		{"bytes=0-", "", 206, "0123456789", "bytes 0-9/10"}, {"bytes=-99", "", 206, "0123456789", "bytes 0-9/10"}, {"bytes=9-99", "", 206, "9", "bytes 9-9/10"},
		{"bytes=10-", "", 416, "", "bytes */10"}, {"bytes=5-2", "", 416, "", ""}, {"bytes=x", "", 416, "", ""}, {"bytes=--1", "", 416, "", ""},
		{"bytes=0-99999999999999999999", "", 416, "", ""}, {"bytes=99999999999999999999-", "", 416, "", ""},
		{"lines=0-3", "", 200, "0123456789", ""}, {"bytes=" + strings.Repeat("0-0,", maxRanges) + "0-0", "", 200, "0123456789", ""},
		{"bytes=0-9,0-9,0-9", "", 200, "0123456789", ""},
		{"bytes=0-3", tag, 206, "0123", "bytes 0-3/10"}, {"bytes=0-3", "W/" + tag, 200, "0123456789", ""}, {"bytes=0-3", `"a"`, 200, "0123456789", ""},
		{"bytes=0-3", date, 206, "0123", "bytes 0-3/10"}, {"bytes=0-3", time.Unix(1e9, 0).UTC().Format(http.TimeFormat), 200, "0123456789", ""},
	} {
		headers := []string{"Range", c.ranges}
		if c.ifRange != "" {
			headers = append(headers, "If-Range", c.ifRange)
		}
		a := r.expect(c.status, "GET", "/f.txt", "", headers...)
		if c.status < 400 && a.body != c.want || a.Header.Get("Content-Range") != c.where {
			t.Errorf("%q: %q at %q, want %q at %q", headers, a.body, a.Header.Get("Content-Range"), c.want, c.where)
		}
	}
	many := r.expect(206, "GET", "/f.txt", "", "Range", "bytes=1-2,5-6")
	if !strings.Contains(many.body, "bytes 1-2/10") || !strings.Contains(many.body, "\r\n56\r\n") {
		t.Errorf("two ranges: %q", many.body)
	}
	if n := r.s.Snapshot().Calls["HTTP GET"].Codes["out_of_range"]; n != 6 {
		t.Errorf("%d count as out of range, want 6", n)
	}
}

// TestDigests has what a client announces compared with what comes.
func TestDigests(t *testing.T) {
	onEvery(t, func(t *testing.T, fs vfs.FS) {
		r := newRig(t, fs, nil)
		data := string(large[:100_000])
		b := []byte(data)
		md5Sum, sha256Sum, sha512Sum := md5.Sum(b), sha256.Sum256(b), sha512.Sum512(b)
		crc := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
		in64 := base64.StdEncoding.EncodeToString
		right := [][2]string{
			{"Content-MD5", in64(md5Sum[:])}, {"Digest", "SHA-256=" + in64(sha256Sum[:])}, {"Digest", "unixsum=1, sha-512=" + in64(sha512Sum[:])},
			{"Digest", "crc32c=" + in64([]byte{byte(crc >> 24), byte(crc >> 16), byte(crc >> 8), byte(crc)})},
			{"Content-Digest", "sha-256=:" + in64(sha256Sum[:]) + ":"}, {"Repr-Digest", "sha-512=:" + in64(sha512Sum[:]) + ":, sha-256=:" + in64(sha256Sum[:]) + ":;a=1"},
		}
		r.make("/f", aFile, "old")
		before := r.tree()
		for _, d := range right {
			for _, cut := range []string{data[1:], data + "x", "", data[:len(data)-1] + "?"} {
				r.expect(400, "PUT", "/f", cut, d[0], d[1])
				r.expect(400, "PUT", "/g", cut, d[0], d[1], syncField, "false")
			}
		}
		for _, bad := range [][2]string{
			{"Content-MD5", ""}, {"Content-MD5", "x"}, {"Content-MD5", in64(sha256Sum[:])}, {"Digest", "sha-256"}, {"Digest", "unixsum=1"}, {"Digest", ""},
			{"Content-Digest", "sha-256=" + in64(sha256Sum[:])}, {"Repr-Digest", "sha-256=:x:"}, {"Repr-Digest", "sha-256=:"}, {"Repr-Digest", "md4=:x:"},
			{"Digest", strings.Repeat("sha-256="+in64(sha256Sum[:])+",", maxDigests+1)},
		} {
			r.expect(400, "PUT", "/f", data, bad[0], bad[1])
		}
		for _, field := range []string{"Digest", "Repr-Digest", "Content-Digest", "Content-Md5"} {
			if _, err := digestsOf(http.Header{}, http.Header{field: nil}); err == nil {
				t.Errorf("%s in a trailer: %v", field, err)
			}
		}
		for _, bad := range []string{"**", "'*'", "x", "*;", `"a`, `"a", b`} {
			r.expect(400, "PUT", "/f", data, "If-None-Match", bad)
			r.expect(400, "DELETE", "/f", "", "If-Match", bad)
		}
		if after := r.tree(); after != before {
			t.Errorf("there is now\n%s\nand was\n%s", after, before)
		}
		for _, d := range right {
			r.expect(204, "PUT", "/f", data, d[0], d[1])
		}
	})
}

// TestOneWins: of many that want the same version replaced, or the same name new, one does.
func TestOneWins(t *testing.T) {
	onEvery(t, func(t *testing.T, fs vfs.FS) {
		r := newRig(t, fs, nil)
		race := func(method string, header ...string) (won []string) {
			var mu sync.Mutex
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					text := fmt.Sprint(method, i)
					switch a := r.do(method, "/f", text, append(header, syncField, fmt.Sprint(i%2 == 0))...); a.StatusCode {
					case 201, 204:
						mu.Lock()
						defer mu.Unlock()
						won = append(won, text)
					case 412:
					default:
						t.Errorf("%s %q: %s", method, header, a.Status)
					}
				})
			}
			wg.Wait()
			return won
		}
		for range 20 {
			won := race("PUT", "If-None-Match", "*")
			if got := r.do("GET", "/f", ""); len(won) != 1 || got.body != won[0] {
				t.Fatalf("%q have made the file, which has %q", won, got.body)
			}
			tag := r.do("PUT", "/f", "next").Header.Get("Etag")
			won = race("PUT", "If-Match", tag)
			if got := r.do("GET", "/f", ""); len(won) != 1 || got.body != won[0] {
				t.Fatalf("%q have replaced the file, which has %q", won, got.body)
			}
			tag = r.do("PUT", "/f", "last").Header.Get("Etag")
			if won = race("DELETE", "If-Match", tag); len(won) != 1 {
				t.Fatalf("%q have removed the file", won)
			}
		}
		if tree := r.tree(); strings.Contains(tree, tempPrefix) {
			t.Errorf("a temporary is left: %s", tree)
		}
	})
}

// TestPutMode: a new file has the mode that is asked for, and one that is replaced keeps its own.
func TestPutMode(t *testing.T) {
	r := newRig(t, nil, nil)
	mode := func(want string) {
		t.Helper()
		if a := r.do("GET", "/", ""); !strings.Contains(a.body, `"mode":"`+want+`"`) {
			t.Errorf("%s, want the mode %s", a.body, want)
		}
	}
	r.expect(201, "PUT", "/f", "x", modeField, "0600")
	mode("0600")
	r.expect(204, "PUT", "/f", "y")
	mode("0600")
	r.expect(204, "PUT", "/f", "z", modeField, "4755")
	mode("4755")
	r.expect(204, "DELETE", "/f", "")
	r.expect(201, "PUT", "/f", "x")
	mode("0644")
}

// TestBasic: curl and browsers show a token as a password.
func TestBasic(t *testing.T) {
	r := newRig(t, nil, func(o *Options) {
		o.Loopback, o.Callers = nil, callersOf(t, "one 0:0 token:"+token)
	})
	basic := func(password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte("anybody:"+password))
	}
	a := r.expect(401, "GET", "/", "")
	if asked := a.Header.Values("Www-Authenticate"); !slices.Equal(asked, []string{"Bearer", `Basic realm="nfsbox", charset="UTF-8"`}) {
		t.Errorf("it asks for %q", asked)
	}
	r.expect(200, "GET", "/", "", "Authorization", basic(token))
	r.expect(200, "GET", "/", "", "Authorization", "Bearer "+token)
	r.expect(401, "GET", "/", "", "Authorization", basic(token+"x"))
	r.expect(401, "GET", "/", "", "Authorization", basic(""))
	r.expect(201, "PUT", "/f", "x", "Authorization", basic(token))
	// A browser shows the password for the pages of others, too.
	r.expect(403, "PUT", "/f", "x", "Authorization", basic(token), "Origin", "http://evil.example")
	r.expect(403, "DELETE", "/f", "", "Authorization", basic(token), "Sec-Fetch-Site", "cross-site")
	r.expect(204, "DELETE", "/f", "", "Authorization", "Bearer "+token, "Origin", "http://evil.example")
}

// TestForbiddenEachTime: a caller who may not read a file is told so, whoever has it open.
func TestForbiddenEachTime(t *testing.T) {
	need.Root(t, "the server acts for two users")
	onEvery(t, func(t *testing.T, fs vfs.FS) {
		const other = token + "other"
		r := newRig(t, fs, func(o *Options) {
			o.Loopback, o.Callers = nil, callersOf(t, "root 0:0 token:"+token+"\nann 1000:1000 token:"+other)
		})
		r.make("/f", vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600}}, "secret")
		for range 3 {
			r.expect(200, "GET", "/f", "", "Authorization", "Bearer "+token)
			for range 2 {
				a := r.expect(403, "GET", "/f", "", "Authorization", "Bearer "+other)
				if strings.Contains(a.body, "secret") {
					t.Error("a stranger has read it")
				}
				r.expect(403, "HEAD", "/f", "", "Authorization", "Bearer "+other)
			}
		}
	})
}

// TestContinue: a client that waits to be told to send its bytes is told so when its rights
// are known.
func TestContinue(t *testing.T) {
	r := newRig(t, nil, nil)
	for path, want := range map[string][]int{"/f": {100, 201}, "/none/f": {409, 0}} {
		c := r.raw()
		if _, err := fmt.Fprintf(c, "PUT %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n", path); err != nil {
			t.Fatal(err)
		}
		got := answers(c, 1)
		if got[0] == 100 {
			if _, err := io.WriteString(c, "text"); err != nil {
				t.Fatal(err)
			}
		}
		if got = append(got, answers(c, 1)...); !slices.Equal(got, want) {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
}

// TestCutOffPlain: a PUT that ends before its end changes nothing, however long it said to be.
func TestCutOffPlain(t *testing.T) {
	onEvery(t, func(t *testing.T, fs vfs.FS) {
		r := newRig(t, fs, nil)
		r.make("/f", aFile, "before")
		before := r.tree()
		for _, size := range []int{1, onTrust - 1, onTrust, onTrust + 1, onTrust + chunk + 5} {
			data := string(large[:size])
			for _, raw := range []string{
				fmt.Sprintf("Content-Length: %d\r\n\r\n%s", size+1, data),
				fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", size, data),
				fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s", size+1, data),
				fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\nzz\r\n", size, data),
			} {
				c := r.raw()
				if _, err := fmt.Fprintf(c, "PUT /f HTTP/1.1\r\nHost: localhost\r\n%s: %v\r\n%s", syncField, size%2 == 0, raw); err != nil {
					t.Fatal(err)
				}
				if half, ok := c.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
					t.Fatal("the connection cannot be cut")
				}
				if got := answers(c, 1); got[0] != 400 && got[0] != 0 {
					t.Errorf("%d bytes: %d", size, got)
				}
			}
		}
		r.gone()
		if after := r.tree(); after != before {
			t.Errorf("there is now\n%s\nand was\n%s", after, before)
		}
	})
}

// TestChangingPlain gets a file that is written to meanwhile: the answer breaks off.
func TestChangingPlain(t *testing.T) {
	r := newRig(t, nil, nil)
	h := r.make("/f", aFile, string(random(32<<20)))
	for _, client := range []*http.Client{r.http, r.h2} {
		a, err := client.Get("http://" + r.addr + "/f")
		if err != nil {
			t.Fatal(err)
		}
		// The rest does not fit between the two: the server is still reading.
		f, _, err := r.fs.Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareWrite})
		if err != nil {
			t.Fatal(err)
		}
		var w vfs.Written
		_, err = f.WriteAt(t.Context(), []byte("x"), 1, vfs.FileSync, &w)
		if err := errors.Join(err, f.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, a.Body); err == nil {
			t.Errorf("%d bytes have come without an error", n)
		}
		_ = a.Body.Close()
	}
	r.gone()
	if n := r.s.Snapshot().Calls["HTTP GET"].Codes["aborted"]; n != 2 {
		t.Errorf("%d count as aborted, want 2", n)
	}
}

// TestPutWithoutLength: a PUT that does not say how long its body is replaces nothing by an empty file.
func TestPutWithoutLength(t *testing.T) {
	r := newRig(t, nil, nil)
	r.make("/f", aFile, "what is to be kept")
	before := r.tree()
	for _, protocol := range []string{"1.0", "1.1"} {
		c := r.conn()
		if _, err := fmt.Fprintf(c, "PUT /f HTTP/%s\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\nDELETE /f HTTP/1.1\r\nHost: localhost\r\n\r\n", protocol); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || answer.StatusCode != http.StatusLengthRequired || !answer.Close {
			t.Errorf("HTTP/%s: %v, %v", protocol, answer, err)
		}
		_ = c.Close()
	}
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+r.addr+"/f", nil)
	if err != nil {
		t.Fatal(err)
	}
	if tree := r.tree(); tree != before {
		t.Errorf("there is now\n%s\nand was\n%s", tree, before)
	}
	for name, client := range map[string]*http.Client{"HTTP/1.1": r.http, "HTTP/2": r.h2} { // they say 0
		answer, err := client.Do(q)
		if err != nil || answer.StatusCode != http.StatusNoContent {
			t.Fatalf("%s: %v, %v", name, answer, err)
		}
		_ = answer.Body.Close()
	}
}
