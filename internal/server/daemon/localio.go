package daemon

import (
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/nfsserver"
)

// localIO says how clients of this host are to find the server; nil: not at all.
func (d *daemon) localIO() (*nfsserver.LocalIO, error) {
	if d.c.LocalIO == config.LocalIOOff {
		return nil, nil
	}
	o := &nfsserver.LocalIO{Trusted: d.c.LocalIO == config.LocalIOTrusted}
	d.w.Rand(o.UUID[:])
	if d.c.LocalIODir == "" {
		return o, nil
	}
	var err error
	o.Dir, err = filepath.Abs(d.c.LocalIODir)
	return o, err
}

// withoutLocalIO makes the server without local I/O where that was the trouble,
// unless somebody has named its directory, and so relies on it. All else works
// without, and few hosts have both client and server.
func (d *daemon) withoutLocalIO(o nfsserver.Options, why error) (err error) {
	if d.c.LocalIODir != "" {
		return fmt.Errorf("%w; name another localio-dir, or switch localio off", why)
	}
	o.LocalIO = nil
	if d.srv, err = nfsserver.New(o); err != nil {
		return err // which was the trouble
	}
	d.log.Info("no local I/O: clients of this host read and write over the network, too", slog.Any("why", why))
	return nil
}
