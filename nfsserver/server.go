package nfsserver

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/bufpool"
	"github.com/nfsbox/nfsbox/nfsserver/internal/mountd"
	"github.com/nfsbox/nfsbox/nfsserver/internal/peer"
	"github.com/nfsbox/nfsbox/nfsserver/internal/portmap"
	"github.com/nfsbox/nfsbox/nfsserver/internal/v3"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// Options say what a Server serves and within which bounds. Exports is
// required; the zero value of anything else is a good one.
type Options struct {
	// Exports is what is served.
	Exports *export.Table
	// Log receives mounts, and what no client can be told: errors of file
	// systems that have no status. nil discards.
	Log *slog.Logger

	// Bounds; 0 is the default of package oncrpc, whose constants say what
	// happens at each.
	MaxConns        int   // connections at once
	MaxCallsPerConn int   // calls of one connection under way
	MaxRequestBytes int64 // memory of requests
	IdleTimeout     time.Duration
	// MaxReplyBytes bounds the memory of data that is being read or waits to
	// be sent, all connections together; 0 is DefaultMaxReplyBytes. At the
	// bound READ and READDIR wait, and answer JUKEBOX after two seconds.
	MaxReplyBytes int64
}

// DefaultMaxReplyBytes is Options.MaxReplyBytes if that is 0.
const DefaultMaxReplyBytes = v3.DefaultMaxBulk

// ErrClosed is returned by Serve once the server is shut down.
var ErrClosed = oncrpc.ErrServerClosed

// Server serves exports on any number of listeners. All methods may be called
// concurrently.
type Server struct {
	rpc     *oncrpc.Server
	nfs     *v3.Service
	buffers bufpool.Pool
}

// New makes a server. It does nothing until Serve.
func New(o Options) (*Server, error) {
	if o.Exports == nil {
		return nil, errors.New("nfsserver: no exports")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{}
	s.nfs = v3.New(v3.Options{Log: o.Log, Buffers: &s.buffers, MaxBulk: o.MaxReplyBytes})
	mount := mountd.New(o.Exports, o.Log)
	ports := portmap.New(&nfs3.NFS_V3, &mount3.MOUNT_V3, &mount3.MOUNT_V1)
	var err error
	s.rpc, err = oncrpc.NewServer(slices.Concat([]oncrpc.Service{s.nfs.RPC()}, mount.RPC(), ports.RPC()), oncrpc.ServerOptions{
		MaxConns:        o.MaxConns,
		MaxRecord:       v3.MaxTransfer + recordRoom,
		MaxCallsPerConn: o.MaxCallsPerConn,
		MaxRequestBytes: o.MaxRequestBytes,
		IdleTimeout:     o.IdleTimeout,
		Log:             o.Log,
		NewConn: func(remote, _ net.Addr) (any, error) {
			return peer.NewConn(o.Exports, remote), nil
		},
	})
	return s, err
}

// recordRoom is what a request may have beside the data of a WRITE: the head of
// the call, its credential, the handle. A longer record closes the connection.
const recordRoom = 64 << 10

// Serve answers connections to l, which it closes in the end, until Shutdown or
// Close; it then returns [ErrClosed]. It may be called for several listeners.
func (s *Server) Serve(l net.Listener) error { return s.rpc.Serve(l) }

// Shutdown ends the server without losing a reply: listeners are closed, calls
// under way are finished and answered, and clients are given two seconds to
// take their leave. When ctx ends before, it is a Close and returns ctx's error.
// The exports' file systems stay open; they are the caller's.
func (s *Server) Shutdown(ctx context.Context) error { return s.rpc.Shutdown(ctx) }

// Close ends the server at once: calls under way are cancelled, and waited for.
func (s *Server) Close() error { return s.rpc.Close() }
