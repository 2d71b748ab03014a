package config

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/pelletier/go-toml/v2"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/server/iogate"
)

// unnamedDir is a note on a key whose absence says what no value does.
const unnamedDir = `# localio-dir is not named: it is /run/nfsbox for root, else nfsbox in $XDG_RUNTIME_DIR, and without
# that there is no local I/O. A server whose file names it does not start without it.
`

// noteLoopback says what api.loopback would, if that is not shown. A server that was started
// by hand lets fewer programs call than the key would.
func (a *API) noteLoopback() string {
	switch {
	case a.Loopback == nil:
		return "# api.loopback is not set: programs of this host that show nothing may not call.\n"
	case a.Loopback.Only:
		return fmt.Sprintf("# api.loopback is not set: this user's own programs, and root's, call as %v, since the server is started by hand.\n", a.Loopback)
	}
	return ""
}

// TOML is the configuration as a file that means the same. It has the values that hold
// where nothing was said, as far as they are known before a start. Notes at its head are
// for keys that cannot be written so. Squash is then what follows from Listen; it is root
// in any case where a service manager opens sockets that others can reach. The state
// directory is that of the user who runs this.
func (c *Config) TOML() ([]byte, error) {
	shown, out := c.Squashed(), bytes.Buffer{}
	for i := range shown.Exports {
		shown.Exports[i].show()
	}
	shown.IOThreads, shown.IOQueue = cmp.Or(c.IOThreads, iogate.DefaultThreads), cmp.Or(c.IOQueue, iogate.DefaultQueue)
	if c.StateDir == "" {
		var err error
		if shown.StateDir, err = DefaultStateDir(); err != nil {
			return nil, err
		}
	}
	if c.LocalIODir == "" {
		out.WriteString(unnamedDir)
	}
	if note := c.API.noteLoopback(); note != "" {
		shown.API.Loopback = nil
		out.WriteString(note)
	}
	if err := toml.NewEncoder(&out).Encode(shown); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// show puts in what holds where nothing was said.
func (e *Export) show() {
	e.Rule.show()
	for i := range e.Clients {
		e.Clients[i].Rule.show()
	}
	if e.LocalIO == nil {
		e.LocalIO = new(true)
	}
	if len(e.Clients)+len(e.Allow) == 0 {
		e.Allow = []string{"*"}
	}
}

// show puts in what holds where neither the rule nor its export's has said anything.
func (r *Rule) show() {
	for _, b := range []**bool{&r.ReadOnly, &r.Secure, &r.ManageGroups, &r.TrustLocal} {
		if *b == nil {
			*b = new(false)
		}
	}
	for _, id := range []**uint32{&r.AnonUID, &r.AnonGID} {
		if *id == nil {
			*id = new(uint32(export.Nobody))
		}
	}
}
