package daemon

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/base/ledger"
	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/server/daemon/ops"
	"github.com/nfsbox/nfsbox/internal/server/iogate"
	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/internal/server/upstream"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/oncrpc/replycache"
	"github.com/nfsbox/nfsbox/vfs"
)

// World is what a server gets from its surroundings. Only Rand is required.
type World struct {
	Rand func([]byte)     // fills its argument with randomness
	Now  func() time.Time // time.Now if nil
	Log  io.Writer        // nil discards

	// File is the configuration's path, by which the server's own folder in
	// the state directory is named; "" names it by the directory served.
	File string

	// Locate says of a key where its value came from, with an error about it; nil adds
	// nothing.
	Locate func(key string, err error) error

	// Reload makes the server call Reread and change what can be changed under
	// way; see [Serve]. Both nil: it never does.
	Reload <-chan os.Signal
	Reread func() (*config.Config, error)

	Version string // of the program, as the live view shows it

	// Manager has started the process, and may have opened its listeners.
	Manager Manager

	// Alone says that the process has no other purpose. Its limits and capabilities are
	// then set as the configuration needs them.
	Alone bool
}

// at says where the directory of an export was named, with an error about it.
func (w *World) at(export int, err error) error {
	if err == nil || w.Locate == nil {
		return err
	}
	return w.Locate(fmt.Sprintf("export[%d].dir", export), err)
}

// from is at, of the URL of an export.
func (w *World) from(export int, err error) error {
	if err == nil || w.Locate == nil {
		return err
	}
	return w.Locate(fmt.Sprintf("export[%d].from", export), err)
}

// located says where the keys stand of the config.KeyErrors that err joins.
func (w *World) located(err error) error {
	if w.Locate == nil {
		return err
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, w.located(e))
		}
		return errors.Join(all...)
	}
	if e, ok := errors.AsType[*config.KeyError](err); ok {
		return w.Locate(e.Key, e.Err)
	}
	return err
}

// Running is what can be known of a server that has begun to listen.
type Running struct {
	URL  string   // for a client on this host: "nfs://127.0.0.1:2049/"
	Addr net.Addr // of the first listener
}

// daemon is a server and all that belongs to it.
type daemon struct {
	w    World
	c    *config.Config // in force
	log  *slog.Logger
	logs *ops.Logs

	own       string   // the server's own folder in the state directory
	held      *os.File // the lock of that folder, while it is open
	key       export.Key
	gate      *iogate.Gate
	locks     localfs.Locks // of all directories, which may overlap
	sites     sites
	table     *export.Table
	probe     *upstream.Probe // finds exports that lead back to this server
	replies   *replycache.Cache
	srv       *nfsserver.Server
	listeners []listener
	users     func(net.Conn) *uint32 // the user of a connection from this host; nil: the kernel does not report it
	api       api
	web       ops.Web
	control   *ops.Controls         // nil: it is not there
	entered   *nfsserver.Registered // with rpcbind; nil: nothing is

	served  chan error // what each listener's Serve returned
	serving int        // how many of them have not

	refusals ledger.Ledger // of calls that rules, or the file API, have refused

	reloading chan struct{} // closed when the last reload has been prepared; nil: there was none
}

// pathOf is the path by which clients mount what a sealed handle is of, if it is open.
func (d *daemon) pathOf(sealed vfs.Handle) (path string, ok bool) {
	d.table.At(sealed, func(at string, fs vfs.FS, h vfs.Handle) {
		for _, x := range d.sites.now() {
			if x.fs != fs || x.local == nil {
				continue
			}
			if path, ok = x.local.PathOf(h); path != "" {
				at = strings.TrimSuffix(at, "/") + "/" + path
			}
			path = at
		}
	})
	return path, ok
}

func (d *daemon) running() Running {
	addr := d.listeners[0].addr()
	return Running{URL: address(addr, d.c.Exports[0].Path), Addr: addr}
}

// address is the URL at which a client on this host finds the export.
func address(addr net.Addr, path string) string {
	host := addr.String()
	if a, ok := addr.(*net.TCPAddr); ok && a.IP.IsUnspecified() {
		host = net.JoinHostPort("127.0.0.1", fmt.Sprint(a.Port))
	}
	u := url.URL{Scheme: "nfs", Host: host, Path: path}
	return u.String()
}

// notify tells the service manager. If that fails the log says so, and no more happens.
func (d *daemon) notify(state string) {
	if err := d.w.Manager.notify(state); err != nil {
		d.log.Warn("notify", slog.Any("error", err))
	}
}
