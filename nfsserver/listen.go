package nfsserver

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"time"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/server/sockdiag"
	"github.com/nfsbox/nfsbox/oncrpc"
)

// DefaultAddr is where ListenAndServe listens if it is given no address: NFS' own port, on
// loopback.
const DefaultAddr = "127.0.0.1:2049"

// drainTime is how long Serve waits at its end for calls under way, and for clients to close
// their connections. Then it cuts them off, and returns context.DeadlineExceeded.
const drainTime = 10 * time.Second

// ListenAndServe serves exports over TCP at addr ("" is [DefaultAddr]) until ctx ends; see
// [Serve].
//
//	err := nfsserver.ListenAndServe(ctx, "", export.Export{Path: "/", FS: tree})
func ListenAndServe(ctx context.Context, addr string, exports ...export.Export) error {
	var c net.ListenConfig
	l, err := c.Listen(ctx, "tcp", cmp.Or(addr, DefaultAddr))
	if err != nil {
		return fmt.Errorf("nfsserver: %w", err)
	}
	return Serve(ctx, l, exports...)
}

// Serve serves exports to l until ctx ends. Then it answers the calls under way, which may
// take up to ten seconds, closes l, and returns nil. The file systems stay open: they are the
// caller's, to be closed after that.
//
// An export without Clients is for the programs of this host alone, over loopback:
// [export.Rule] says how to admit others. On Linux such a program is the user that the kernel
// knows, whatever it claims; root, and the user of this process, may speak for others. Where
// the kernel cannot tell, programs of this host are anonymous there.
//
// Handles are those of one Serve: a client that has mounted finds them stale after a restart.
// There are no locks. Errors of a file system that have no status go to slog.Default. A
// program that wants it otherwise makes its own [Server] and [export.Table].
func Serve(ctx context.Context, l net.Listener, exports ...export.Export) error {
	s, err := serverOf(exports)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended:
		return errors.Join(err, s.Close())
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	err = s.Shutdown(drain)
	if e := <-ended; !errors.Is(e, ErrClosed) {
		err = errors.Join(err, e)
	}
	return err
}

// serverOf makes the server of Serve.
func serverOf(exports []export.Export) (*Server, error) {
	user := localUser
	if sockdiag.Works() != nil {
		user = nil
	}
	exports = slices.Clone(exports)
	for i := range exports {
		if len(exports[i].Clients) == 0 {
			exports[i].Clients = thisHost(user != nil)
		}
	}
	var key export.Key
	if _, err := rand.Read(key[:]); err != nil {
		return nil, fmt.Errorf("nfsserver: %w", err)
	}
	table, err := export.NewTable(key, exports...)
	if err != nil {
		return nil, err
	}
	return New(Options{Exports: table, Log: slog.Default(), User: user})
}

// thisHost are the rules for loopback alone. A user who is not known is nobody.
func thisHost(known bool) []export.Rule {
	squash := export.SquashAll
	if known {
		squash = export.SquashNone
	}
	return []export.Rule{{Match: "127.0.0.0/8", Squash: squash}, {Match: "::1", Squash: squash}}
}

// localUser is the user of a connection from this host, for Options.User. Root and this
// process' own user are believed, since they can do all that it can.
func localUser(nc net.Conn) *uint32 {
	uid, err := sockdiag.Owner(nc)
	switch {
	case err != nil: // it belongs to nobody who is known, and gets what anonymous callers get
		uid = oncrpc.UnknownUser
	case uid == 0, int64(uid) == int64(os.Geteuid()):
		return nil
	}
	return &uid
}
