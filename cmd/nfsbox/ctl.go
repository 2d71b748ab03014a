package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/nfsbox/nfsbox/internal/server/daemon/ops"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/top"
)

type ctlCmd struct {
	Do       string `arg:"" name:"ACTION" enum:"clients,locks,drop,status" help:"clients, locks, drop or status."`
	Client   string `arg:"" optional:"" name:"CLIENT" help:"The client's address, or USER@ADDRESS: whose locks, or whom to drop."`
	StateDir string `placeholder:"DIR" help:"The server's state directory, or its folder in there, as serve has it."`
	JSON     bool   `help:"Print one line of JSON for each client or lock, then a summary."`
}

func (*ctlCmd) Help() string {
	return `Asks a server that runs on this host who its clients are and what they have locked, and sends one away.

  nfsbox ctl clients
  nfsbox ctl locks 192.0.2.7
  nfsbox ctl drop 192.0.2.7
  nfsbox ctl drop 1000@127.0.0.1
  nfsbox ctl status

clients lists the clients that have a connection, locks, or files open by LOCALIO (NFSv3 opens none). Columns
are the address; connections and calls under way; calls and bytes of the connections that are open, in
(received) and out (sent); ranges locked, and waited for; open files; since when it is known, and how long ago
it was last heard of. A client that does not come over IP is called local. Each user of this host whom the kernel
knows is a client: 1000@127.0.0.1 is user 1000, ?@127.0.0.1 are all whose user could not be told. An
address without a user stands for root, and for the user who runs the server.

locks lists the ranges that are locked or waited for, of all clients or of CLIENT: its address and the name
that it gives itself; the number by which it knows its process; the file's inode number (find DIR -inum N
finds its name); the range in bytes, without END if that is the end of the file; whether it is shared or
exclusive, and held or waited for. A CLIENT without a user stands for all users at that address.

drop takes from CLIENT all that it has, and from all users at it if CLIENT names none. Its connections are
closed, its locks go to those who wait for them, its open files are taken back, and its mounts are
forgotten. It does not learn that it has lost its locks: drop is for clients that are gone, or must go. One that
is alive connects again at once, and sends again what was not answered. To keep it out, take it out of the
export's rules first, and reload.

status shows what nfsbox top --once shows. A server with the live view (serve --http) shows rates of the last
interval; any other shows what it has counted since its start.

The server is asked through a socket in its folder of the state directory, which its own user and root can
open. --state-dir names that directory (default: /var/lib/nfsbox for root, else $XDG_STATE_HOME/nfsbox
or ~/.local/state/nfsbox). Where several servers share it, the error names the folder of each, and --state-dir
takes one of these. In a container the nfsbox there asks it:

  podman exec files nfsbox ctl clients --state-dir /state

With --json each line is an object, of "type":"client" (client, names, connections, under_way, calls,
bytes_in, bytes_out, locks, waits, shares, files, since, active), "lock" (client, name, process, handle,
fileid, offset, length, which is 0 to the end of the file, exclusive, waits), "dropped" (client) or
"frame" (of status, as nfsbox top --json has it); the last one of "type":"summary" with entries and
errors. Fields may be added, and none goes.`
}

// droppedRow is a line of JSON.
type droppedRow struct {
	Client string `json:"client"`
}

func (c *ctlCmd) Run(e *env) error {
	switch {
	case c.Do == ops.ControlDrop && c.Client == "":
		return &exitError{status: exitUsage, err: errors.New("drop whom? nfsbox ctl clients lists the addresses")}
	case (c.Do == ops.ControlClients || c.Do == ops.ControlStatus) && c.Client != "":
		return &exitError{status: exitUsage, err: fmt.Errorf("%s is about all clients: %q is too much", c.Do, c.Client)}
	}
	out := newOutput(e, c.JSON)
	answer, err := ops.Control(e.ctx, c.StateDir, c.Do, c.Client)
	if errors.Is(err, ops.ErrNoServer) {
		err = &exitError{status: exitUnreachable, err: err}
	}
	if err != nil {
		return out.fail(e, c.Client, err)
	}
	switch {
	case c.JSON:
		err = c.events(out, answer)
	case answer.Status != nil:
		err = c.status(e, out, answer)
	default:
		err = c.table(out, answer)
	}
	if err != nil {
		return err
	}
	if f := answer.Status; f != nil && !f.Healthy {
		return out.fail(e, "", fmt.Errorf("the server is not in service: %s", f.Health))
	}
	return out.end(nil)
}

func (c *ctlCmd) events(out *output, a *ops.ControlAnswer) error {
	for i := range a.Clients {
		if err := out.event("client", a.Clients[i]); err != nil {
			return err
		}
	}
	for i := range a.Locks {
		if err := out.event("lock", a.Locks[i]); err != nil {
			return err
		}
	}
	switch {
	case c.Do == ops.ControlDrop:
		return out.event("dropped", droppedRow{c.Client})
	case a.Status != nil:
		return out.event("frame", a.Status)
	}
	return nil
}

// status prints the figures as top does.
func (c *ctlCmd) status(e *env, out *output, a *ops.ControlAnswer) error {
	s := top.Screen{Width: plainWidth, Zone: time.Local}
	if e.size != nil {
		s.Width, _ = e.size()
	}
	if _, err := fmt.Fprintln(out.w, strings.Join(top.Lines(a.Status, s), "\n")); err != nil {
		return &outputError{err}
	}
	return nil
}

// plainWidth is how wide figures are drawn where there is no terminal.
const plainWidth = 200

// table prints an answer as text. Clients choose their names, so these are cleaned.
func (c *ctlCmd) table(out *output, a *ops.ControlAnswer) error {
	const gap = 2
	w := tabwriter.NewWriter(out.w, 0, 0, gap, ' ', 0)
	line := func(cells ...any) {
		for i, cell := range cells {
			if i > 0 {
				_, _ = fmt.Fprint(w, "\t") // flushing returns the error
			}
			_, _ = fmt.Fprint(w, cell)
		}
		_, _ = fmt.Fprintln(w)
	}
	switch c.Do {
	case ops.ControlClients:
		line("CLIENT", "CONNS", "UNDERWAY", "CALLS", "IN", "OUT", "LOCKS", "WAITS", "FILES", "SINCE", "HEARD", "NAMES")
		for i := range a.Clients {
			x := &a.Clients[i]
			line(x.Client, x.Connections, x.UnderWay, x.Calls, x.BytesIn, x.BytesOut, x.Locks, x.Waits, x.Files,
				stamp(x.Since), ago(x.Active), names(x))
		}
	case ops.ControlLocks:
		line("CLIENT", "NAME", "PROCESS", "INODE", "FROM", "END", "KIND", "STATE")
		for i := range a.Locks {
			x := &a.Locks[i]
			line(x.Client, dash(short(x.Name)), x.Process, x.FileID, x.Offset, end(x), kind(x), state(x))
		}
	default:
		line("dropped", c.Client)
	}
	if err := w.Flush(); err != nil {
		return &outputError{err}
	}
	return nil
}

const (
	// shownNames is how many of a client's names a line shows. Further ones are counted.
	shownNames = 4
	// shownName is how many columns of a name it shows; dots replace the rest.
	shownName = 64
)

func names(x *ops.ControlClient) string {
	all := make([]string, 0, shownNames)
	for _, name := range x.Names[:min(len(x.Names), shownNames)] {
		all = append(all, short(name))
	}
	s := strings.Join(all, ",")
	if more := len(x.Names) - len(all) + x.MoreNames; more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return dash(s)
}

// short cleans and shortens a text of a client for a terminal.
func short(name string) string {
	part := progress.Cut(name[:min(len(name), shownName*utf8.UTFMax)], shownName)
	if len(part) < len(name) {
		return progress.Clean(part) + "..."
	}
	return progress.Clean(name)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func stamp(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.Format(time.RFC3339)
}

func ago(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return max(time.Since(*t), 0).Truncate(time.Second).String()
}

// end is the first byte after a lock.
func end(l *ops.ControlLock) string {
	if l.Length == 0 {
		return "-"
	}
	return strconv.FormatUint(l.Offset+l.Length, 10)
}

func kind(l *ops.ControlLock) string {
	if l.Exclusive {
		return "exclusive"
	}
	return "shared"
}

func state(l *ops.ControlLock) string {
	if l.Waits {
		return "waits"
	}
	return "held"
}
