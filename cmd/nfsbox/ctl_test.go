package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/daemon/ops"
)

// answer is of a server with two clients and two locks. Names are the clients' own.
func answer() *ops.ControlAnswer {
	since := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	return &ops.ControlAnswer{
		Clients: []ops.ControlClient{
			{Client: "192.0.2.7", Names: []string{"a\x1b[31m", "b"}, Connections: 2, UnderWay: 1, Calls: 30, BytesIn: 4, BytesOut: 5, Locks: 6, Waits: 7, Files: 8, Since: &since},
			{Client: "local"},
		},
		Locks: []ops.ControlLock{
			{Client: "192.0.2.7", Name: "a\x1b[31m", Process: 12, Handle: "ab", FileID: 34, Offset: 100, Length: 50, Exclusive: true},
			{Client: "192.0.2.7", Process: 13, Waits: true},
		},
	}
}

// TestCtlOutput has what each action prints, as a table and as JSON.
func TestCtlOutput(t *testing.T) {
	clients, locks := answer(), answer()
	clients.Locks, locks.Clients = nil, nil
	for _, c := range []struct {
		cmd  ctlCmd
		of   *ops.ControlAnswer
		want string
	}{
		{ctlCmd{Do: "clients"}, clients, `CLIENT     CONNS  UNDERWAY  CALLS  IN  OUT  LOCKS  WAITS  FILES  SINCE                 HEARD  NAMES
192.0.2.7  2      1         30     4   5    6      7      8      2026-03-04T05:06:07Z  -      a\x1b[31m,b
local      0      0         0      0   0    0      0      0      -                     -      -
`},
		{ctlCmd{Do: "locks"}, locks, `CLIENT     NAME       PROCESS  INODE  FROM  END  KIND       STATE
192.0.2.7  a\x1b[31m  12       34     100   150  exclusive  held
192.0.2.7  -          13       0      0     -    shared     waits
`},
		{ctlCmd{Do: "drop", Client: "192.0.2.7"}, &ops.ControlAnswer{}, "dropped  192.0.2.7\n"},
		{ctlCmd{Do: "clients", JSON: true}, clients, `{"type":"client","client":"192.0.2.7","names":["a\u001b[31m","b"],"connections":2,"under_way":1,"calls":30,"bytes_in":4,"bytes_out":5,"locks":6,"waits":7,"shares":0,"files":8,"since":"2026-03-04T05:06:07Z"}
{"type":"client","client":"local","connections":0,"under_way":0,"calls":0,"bytes_in":0,"bytes_out":0,"locks":0,"waits":0,"shares":0,"files":0}
{"type":"summary","entries":2,"errors":0}
`},
		{ctlCmd{Do: "locks", JSON: true}, locks, `{"type":"lock","client":"192.0.2.7","name":"a\u001b[31m","process":12,"handle":"ab","fileid":34,"offset":100,"length":50,"exclusive":true,"waits":false}
{"type":"lock","client":"192.0.2.7","name":"","process":13,"handle":"","offset":0,"length":0,"exclusive":false,"waits":true}
{"type":"summary","entries":2,"errors":0}
`},
		{ctlCmd{Do: "drop", Client: "192.0.2.7", JSON: true}, &ops.ControlAnswer{}, `{"type":"dropped","client":"192.0.2.7"}
{"type":"summary","entries":1,"errors":0}
`},
	} {
		var b bytes.Buffer
		out := newOutput(&env{stdout: &b}, c.cmd.JSON)
		show := c.cmd.table
		if c.cmd.JSON {
			show = c.cmd.events
		}
		if err := errors.Join(show(out, c.of), out.end(nil)); err != nil {
			t.Fatal(err)
		}
		// Every line of JSON begins with its time.
		if got := regexp.MustCompile(`(?m)^{"time":"[^"]+",`).ReplaceAllString(b.String(), "{"); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.cmd.Do, got, c.want)
		}
	}
}

// TestCtlRefuses wants to know whom, asks nobody where nobody is, and says which.
func TestCtlRefuses(t *testing.T) {
	for _, c := range []struct {
		cmd    ctlCmd
		status int
	}{
		{ctlCmd{Do: "drop"}, exitUsage},
		{ctlCmd{Do: "clients", Client: "192.0.2.7"}, exitUsage},
		{ctlCmd{Do: "status", Client: "192.0.2.7"}, exitUsage},
		{ctlCmd{Do: "status", StateDir: t.TempDir()}, exitUnreachable},
		{ctlCmd{Do: "clients", StateDir: t.TempDir()}, exitUnreachable},
		{ctlCmd{Do: "locks", StateDir: "/does/not/exist"}, exitUnreachable},
	} {
		var stdout, stderr bytes.Buffer
		e := &env{ctx: t.Context(), stdout: &stdout, stderr: &stderr}
		if status := report(e, c.cmd.Run(e)); status != c.status || stderr.Len() == 0 || stdout.Len() > 0 {
			t.Errorf("%s %q: status %d, want %d\n%s%s", c.cmd.Do, c.cmd.Client, status, c.status, &stdout, &stderr)
		}
	}
}

// TestCtlNamesAreBounded: the names that a client gives itself do not fill the screen.
func TestCtlNamesAreBounded(t *testing.T) {
	const shown = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..."
	name := strings.Repeat("a", 200)
	a := &ops.ControlAnswer{Clients: []ops.ControlClient{{Client: "x", MoreNames: 7}}}
	for range 10 {
		a.Clients[0].Names = append(a.Clients[0].Names, name)
	}
	var b bytes.Buffer
	out := newOutput(&env{stdout: &b}, false)
	if err := errors.Join((&ctlCmd{Do: "clients"}).table(out, a), out.flush()); err != nil {
		t.Fatal(err)
	}
	if want := strings.Join([]string{shown, shown, shown, shown}, ",") + " and 13 more\n"; !strings.HasSuffix(b.String(), " "+want) {
		t.Errorf("%s\nwant at its end\n%s", &b, want)
	}
}

// TestCtlStatus prints what top does, and as JSON a frame.
func TestCtlStatus(t *testing.T) {
	status := new(ops.ControlAnswer)
	if err := json.Unmarshal([]byte(`{"status":{"format":1,"url":"nfs://h/","healthy":true,"clients":[{"client":"192.0.2.7\u001b","last_file":"/f"}]}}`), status); err != nil {
		t.Fatal(err)
	}
	var text, events bytes.Buffer
	out := newOutput(&env{stdout: &text}, false)
	if err := errors.Join((&ctlCmd{Do: "status"}).status(&env{}, out, status), out.flush()); err != nil {
		t.Fatal(err)
	}
	if got := text.String(); !strings.Contains(got, "nfs://h/") || !strings.Contains(got, "in service") || !strings.Contains(got, `192.0.2.7\x1b`) || strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
	out = newOutput(&env{stdout: &events}, true)
	if err := errors.Join((&ctlCmd{Do: "status", JSON: true}).events(out, status), out.flush()); err != nil {
		t.Fatal(err)
	}
	if got := events.String(); !strings.Contains(got, `"type":"frame","format":1,`) || strings.Count(got, "\n") != 1 {
		t.Errorf("%q", got)
	}
}
