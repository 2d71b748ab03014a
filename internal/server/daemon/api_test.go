package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/fileapi"
	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/testkit/logbuf"
	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// apiConfig serves dir over the file API, too, to the user who runs the tests.
func apiConfig(dir, state string) config.Config {
	c := confOf(dir, state)
	c.API.Listen = []string{"127.0.0.1:0"}
	c.API.Loopback = &config.User{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	return c
}

// apiURL is where the log says that the file API is.
func apiURL(t *testing.T, log *logbuf.Buffer) string {
	t.Helper()
	at := regexp.MustCompile(`msg=listening network=tcp address=(\S+) serves="file API over (HTTPS?)"`).FindAllStringSubmatch(log.String(), -1)
	if at == nil {
		t.Fatalf("the log does not say where the file API is:\n%s", log)
	}
	last := at[len(at)-1]
	return strings.ToLower(last[2]) + "://" + last[1]
}

// apiClient is a client of the file API.
func apiClient(t *testing.T, url string, o fileapi.Options) *fileapi.Client {
	t.Helper()
	c, err := fileapi.New(url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// codeOf is the protocol's code of an error; 0 is none.
func codeOf(err error) connect.Code {
	var e *fileapi.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// writeSecret writes a file that nobody else may read.
func writeSecret(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// token is one of the length that tokens have.
func token(c byte) string { return strings.Repeat(string(c), 32) }

// TestAPI stores files by HTTP and reads them over NFS, and the other way round.
func TestAPI(t *testing.T) {
	tree, store := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(tree, "before"), []byte("from NFS"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := apiConfig(tree, t.TempDir())
	c.API.Store, c.Metrics, c.HTTP, c.IOThreads = store, "127.0.0.1:0", "127.0.0.1:0", 4
	u, log, _ := run(t, c)
	at := apiURL(t, log)

	body := `{"path": "/by-json", "data": "` + "aGVsbG8=" + `", "sync": true}`
	res, err := http.Post(at+"/nfsbox.fileapi.v1.FileService/Put", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil || res.StatusCode != http.StatusOK || !bytes.Contains(text, []byte("sha256:2cf24dba")) {
		t.Fatalf("%d, %s, %v", res.StatusCode, text, err)
	}
	large := strings.Repeat("hello", fileapi.MaxMessage/4) // more than one message takes
	for _, asJSON := range []bool{false, true} {
		cl := apiClient(t, at, fileapi.Options{JSON: asJSON})
		stored, err := cl.Upload(t.Context(), "/by-stream", strings.NewReader(large), fileapi.UploadOptions{})
		if err != nil || stored.Info.GetSize() != uint64(len(large)) {
			t.Fatalf("%+v, %v", stored, err)
		}
		if got, _, err := cl.Get(t.Context(), "/before", fileapi.Range{}); err != nil || string(got) != "from NFS" {
			t.Errorf("%q, %v", got, err)
		}
		stored, err = cl.UploadContent(t.Context(), strings.NewReader("by content"))
		if err != nil || stored.Existed != asJSON {
			t.Errorf("%+v, %v", stored, err)
		}
	}
	raw := client(t, u)
	root := mount(t, raw, "/")
	for _, name := range []string{"by-json", "by-stream"} {
		if got, st := read(t, raw, lookup(t, raw, root, name)); st != nfs3.NFS3_OK || !strings.HasPrefix(large, got) || len(got) < 5 {
			t.Errorf("%s over NFS: %q, %v", name, got, st)
		}
	}
	checkAPIMetrics(t, log)
}

// TestAPILog has calls of the file API in the log of requests.
func TestAPILog(t *testing.T) {
	c := apiConfig(t.TempDir(), t.TempDir())
	c.Log.Requests, c.Log.Format, c.Log.Sample = filepath.Join(t.TempDir(), "requests.log"), "json", 1
	_, log, stop := run(t, c)
	// The log itself is JSON, too.
	at := regexp.MustCompile(`"msg":"listening","network":"tcp","address":"([^"]+)","serves":"file API over HTTP"`).FindStringSubmatch(log.String())
	if at == nil {
		t.Fatalf("the log does not say where the file API is:\n%s", log)
	}
	if _, err := apiClient(t, "http://"+at[1], fileapi.Options{}).Stat(t.Context(), "/x"); codeOf(err) != connect.CodeNotFound {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	lines := logged(t, c.Log.Requests)
	if len(lines) != 1 {
		t.Fatalf("%v", lines)
	}
	l := lines[0]
	from, _ := l["client"].(string)
	if l["procedure"] != "Stat" || l["path"] != "/x" || l["status"] != "not_found" || l["user"] != "loopback" || l["uid"] != float64(os.Geteuid()) ||
		!strings.HasPrefix(from, "127.0.0.1:") || l["in"].(float64) <= 0 || l["out"].(float64) <= 0 || l["took"].(float64) <= 0 {
		t.Errorf("%v", l)
	}
}

// checkAPIMetrics looks at what TestAPI has been counted as.
func checkAPIMetrics(t *testing.T, log *logbuf.Buffer) {
	t.Helper()
	urls := regexp.MustCompile(`msg=(?:metrics|http) url=(\S+)`).FindAllStringSubmatch(log.String(), -1)
	metricsSay(t, urls[0][1],
		`nfsbox_api_calls_total{procedure="Upload"} 2`, `nfsbox_api_calls_total{procedure="Get"} 2`,
		`nfsbox_api_errors_total{code="not_found",procedure="Stat"} 1`, `nfsbox_api_duration_seconds_count{procedure="Upload"} 2`,
		`nfsbox_api_refused_total{reason="too_many"} 0`, `nfsbox_api_slow_clients_total 0`, `nfsbox_api_uploads_in_progress 0`+"\n",
		`nfsbox_api_calls_in_progress 0`+"\n", `nfsbox_api_temporaries_left 0`,
		`nfsbox_store_puts_total 1`+"\n", `nfsbox_store_failed 0`, `nfsbox_gate_threads_limit 4`,
	)
	_, text := get(t, urls[0][1]+"/metrics")
	// Both ways to the disk lead through the gate.
	for _, lane := range []string{`export="/",lane="write"`, `export="store",lane="sync"`, `export="store",lane="meta"`} {
		if !regexp.MustCompile(`nfsbox_gate_entered_total\{` + lane + `\} [1-9]`).MatchString(text) {
			t.Errorf("nothing went through the gate's lane %s", lane)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
	if status, text := get(t, urls[1][1]+"/view.json"); status != http.StatusOK || !strings.Contains(text, `"calls of the API"`) {
		t.Errorf("the view: %d, %s", status, text)
	}
	if status, _ := get(t, urls[1][1]+"/healthz"); status != http.StatusOK {
		t.Error("it is not well")
	}
}

// TestAPICallers lets tokens in as the users that the file names, and goes over
// to another file without a restart; one with an error changes nothing.
func TestAPICallers(t *testing.T) {
	tree, secret := t.TempDir(), filepath.Join(t.TempDir(), "callers")
	writeSecret(t, filepath.Join(tree, "private"), "mine")
	c := apiConfig(tree, t.TempDir())
	c.API.Loopback, c.API.Callers = nil, secret
	c.Fill()
	me, other := os.Geteuid(), os.Geteuid()+1
	writeSecret(t, secret, fmt.Sprintf("me %d:%d token:%s\nother %d:%[4]d token:%s\n", me, os.Getegid(), token('m'), other, token('o')))
	r := runReloader(t, c)
	may := func(shown string) connect.Code {
		t.Helper()
		_, _, err := apiClient(t, apiURL(t, r.log), fileapi.Options{Token: shown}).Get(t.Context(), "/private", fileapi.Range{})
		return codeOf(err)
	}
	hold := func(when string, mine, others, new connect.Code) {
		t.Helper()
		if got := [...]connect.Code{may(token('m')), may(token('o')), may(token('n')), may("")}; got != [...]connect.Code{mine, others, new, connect.CodeUnauthenticated} {
			t.Errorf("%s: %v", when, got)
		}
	}
	const denied, unknown = connect.CodePermissionDenied, connect.CodeUnauthenticated
	hold("at first", 0, denied, unknown)

	writeSecret(t, secret, "me 0:0 token:short\n")
	r.reload(&c, nil)
	hold("with a broken file", 0, denied, unknown)
	if !strings.Contains(r.log.String(), "line 1: a token has 32") {
		t.Errorf("the log does not say what is wrong:\n%s", r.log)
	}

	writeSecret(t, secret, fmt.Sprintf("me %d:%d token:%s\n", me, os.Getegid(), token('n')))
	r.reload(changed(c, func(c *config.Config) { c.API.MaxCalls = 5000 }), nil)
	hold("with another file", unknown, unknown, 0)
	if !strings.Contains(r.log.String(), "keys=api.max-calls\n") {
		t.Errorf("the log does not say what waits for a restart:\n%s", r.log)
	}
}

// TestAPIReloadExports serves by HTTP what NFS does after a reload, and no more.
func TestAPIReloadExports(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	c := apiConfig(one, t.TempDir())
	c.Exports[0].Path = "/one"
	c.Fill()
	r := runReloader(t, c)
	cl := apiClient(t, apiURL(t, r.log), fileapi.Options{})
	r.reload(changed(c, func(c *config.Config) { c.Exports[0].Path, c.Exports[0].Dir = "/two", two }), nil)
	if _, err := cl.Put(t.Context(), "/two/file", []byte("x"), fileapi.UploadOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := cl.Put(t.Context(), "/one/file", []byte("x"), fileapi.UploadOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is exported no longer: %v", err)
	}
}

// TestAPIStarts refuses to begin with files that will not do, each named.
func TestAPIStarts(t *testing.T) {
	tree, dir := t.TempDir(), t.TempDir()
	inside, open, full := filepath.Join(tree, "callers"), filepath.Join(dir, "open"), t.TempDir()
	writeSecret(t, inside, "")
	writeSecret(t, filepath.Join(full, "file"), "")
	if err := os.WriteFile(open, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for what, x := range map[string]struct {
		change func(*config.API)
		want   string
	}{
		"no callers":             {func(a *config.API) { a.Callers = filepath.Join(dir, "none") }, "callers: stat " + dir},
		"callers open to others": {func(a *config.API) { a.Callers = open }, "chmod 600"},
		"callers in the tree":    {func(a *config.API) { a.Callers = inside }, "lies within " + tree},
		"a store in the tree":    {func(a *config.API) { a.Store = tree }, "lies within " + tree},
		"no certificate":         {func(a *config.API) { a.TLSCert, a.TLSKey = open, open }, "certificate " + open},
		"no store":               {func(a *config.API) { a.Store = filepath.Join(dir, "none") }, "store of content"},
		"a store that is none":   {func(a *config.API) { a.Store = full }, "store of content"},
		"no such address":        {func(a *config.API) { a.Listen = []string{"192.0.2.1:0"} }, "api: listen"},
		"nobody":                 {func(a *config.API) { a.Loopback = nil }, "it is not said who may call"},
	} {
		c := apiConfig(tree, t.TempDir())
		x.change(&c.API)
		err := Serve(t.Context(), c, World{Rand: counter()}, func(Running) error { return errors.New("it serves") })
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v; want %s", what, err, x.want)
		}
	}
}
