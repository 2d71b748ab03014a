package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/testkit/logbuf"
	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// hasLine fails unless the log has a line with all of these.
func hasLine(t *testing.T, log *logbuf.Buffer, parts ...string) {
	t.Helper()
next:
	for line := range strings.Lines(log.String()) {
		for _, p := range parts {
			if !strings.Contains(line, p) {
				continue next
			}
		}
		return
	}
	t.Errorf("no line has all of %q:\n%s", parts, log)
}

// TestLogBegins has a server say what it is, and what it serves where to whom.
func TestLogBegins(t *testing.T) {
	tree, state := t.TempDir(), t.TempDir()
	c := confOf(tree, state)
	c.PortmapListen = []string{"127.0.0.1:0"}
	c.API.Listen, c.API.Loopback = []string{"127.0.0.1:0"}, &config.User{UID: 1000, GID: 1000}
	c.Exports[0].Path = "/data"
	c.Exports[0].Allow = []string{"127.0.0.1", "10.0.0.0/8"}
	c.Exports[0].Squash = "all"
	u, log, _ := runIn(t, c, World{Version: "1.2.3"})
	hasLine(t, log, `msg="nfsbox begins"`, "version=1.2.3", "go="+runtime.Version(), fmt.Sprintf("pid=%d ", os.Getpid()), "state="+state+string(filepath.Separator))
	address := regexp.MustCompile(`[\d.]+:\d+`).FindString(u)
	hasLine(t, log, "msg=listening", "network=tcp", "address="+address, `serves="NFS NFSACL MOUNT NLM NSM portmap"`)
	hasLine(t, log, "msg=listening", "serves=portmap")
	hasLine(t, log, "msg=listening", `serves="file API over HTTP"`)
	hasLine(t, log, "msg=export", "path=/data", "dir="+tree, `rules="127.0.0.1(rw,all_squash) 10.0.0.0/8(rw,all_squash)"`)
}

// TestLogRules says of many rules how many there are.
func TestLogRules(t *testing.T) {
	e := config.DefaultExport()
	for i := range maxToldRules + 3 {
		e.Allow = append(e.Allow, fmt.Sprintf("10.0.0.%d", i))
	}
	if got := rulesOf(&e); strings.Count(got, "10.0.0.") != maxToldRules || !strings.HasSuffix(got, "and 3 more") {
		t.Error(got)
	}
}

// TestLogRefusals names whom the rules refuse, what was asked for, and the rule.
func TestLogRefusals(t *testing.T) {
	c := confOf(t.TempDir(), t.TempDir())
	c.Exports[0].Path = "/open"
	yes := true
	for path, rule := range map[string]config.Client{
		"/away": {Match: "192.0.2.1"}, "/secure": {Match: "127.0.0.0/8", Rule: config.Rule{Secure: &yes}}, "/ro": {Match: "127.0.0.1", Rule: config.Rule{ReadOnly: &yes}},
	} {
		x := config.DefaultExport()
		x.Path, x.Dir, x.Clients = path, t.TempDir(), []config.Client{rule, {Match: "192.0.2.2"}}
		c.Exports = append(c.Exports, x)
	}
	if err := c.Complete(); err != nil {
		t.Fatal(err)
	}
	u, log, _ := run(t, c)
	cl := client(t, u)
	for _, path := range []string{"/away/below", "/away/below", "/secure"} {
		var res mount3.Mountres3
		reply, err := cl.Call(t.Context(), mount3.MOUNTPROC3_MNT, auth(t), &mount3.Mountargs{Path: []byte(path)}, &res)
		if err != nil || res.FhsStatus != mount3.MNT3ERR_ACCES {
			t.Fatalf("%s: %v, %v", path, res.FhsStatus, err)
		}
		reply.Release()
	}
	var res nfs3.MKDIR3res
	args := nfs3.MKDIR3args{Where: nfs3.Diropargs3{Dir: nfs3.NfsFh3{Data: mount(t, cl, "/ro")}, Name: []byte("new")}}
	reply, err := cl.Call(t.Context(), nfs3.NFSPROC3_MKDIR, auth(t), &args, &res)
	if err != nil || res.Status != nfs3.NFS3ERR_ROFS {
		t.Fatalf("%v, %v", res.Status, err)
	}
	reply.Release()
	const msg = `msg="refused by the rules"`
	who := fmt.Sprintf("claimed_uid=%d", os.Geteuid())
	hasLine(t, log, msg, "client=127.0.0.1 ", "export=/away", "path=/away/below", "rule=none", `why="no rule matches the client"`, who)
	hasLine(t, log, msg, "export=/secure", "rule=127.0.0.0/8", "not below 1024", "port=")
	hasLine(t, log, msg, "export=/ro", "rule=127.0.0.1 ", "read-only")
	if n := strings.Count(log.String(), msg); n != 3 || strings.Contains(log.String(), "mount refused") {
		t.Errorf("%d lines:\n%s", n, log)
	}
}

// TestLogAPIRefusal names who had no proof, and what it asked for.
func TestLogAPIRefusal(t *testing.T) {
	c := confOf(t.TempDir(), t.TempDir())
	c.API.Listen = []string{"127.0.0.1:0"}
	callers := filepath.Join(t.TempDir(), "callers")
	if err := os.WriteFile(callers, []byte("backup 1000:1000 token:abcdefghijklmnopqrstuvwxyz0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.API.Callers = callers
	_, log, _ := run(t, c)
	at := regexp.MustCompile(`address=(\S+) serves="file API`).FindStringSubmatch(log.String())
	if at == nil {
		t.Fatal(log)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at[1]+"/secret%0aname", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer wrong")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusUnauthorized {
		t.Errorf("%v, %v", res.StatusCode, err)
	}
	hasLine(t, log, `msg="refused by the file API"`, "client=127.0.0.1 ", "method=GET", `path="/secret\nname"`, "not a token of any caller")
	if strings.Contains(log.String(), "wrong") {
		t.Error("the log has the token")
	}
}

// TestLogEnd says why the end began, with what under way, and what it leaves.
func TestLogEnd(t *testing.T) {
	log := &logbuf.Buffer{}
	ctx, cancel := context.WithCancelCause(t.Context())
	err := Serve(ctx, confOf(t.TempDir(), t.TempDir()), World{Log: log, Rand: counter()}, func(r Running) error {
		c := client(t, r.URL)
		mount(t, c, "/")
		hangUp(t, c)
		cancel(errors.New("terminated"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	hasLine(t, log, `msg="the end begins`, "why=terminated", "connections=", "calls=", "most=")
	hasLine(t, log, `msg="remembered replies are left to the next server"`, "replies=")
	hasLine(t, log, "level=INFO", `msg="the end: no client is served any more"`, "took=", "unanswered=0")
}
