package localio

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"slices"

	"github.com/nfsbox/nfsbox/nfsserver/internal/peer"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/localio"
	"github.com/nfsbox/nfsbox/xdr"
)

// RPC binds the procedures to their numbers. The program is for connections of
// NFS: no port mapper knows it.
func (s *Service) RPC() oncrpc.Service {
	h := make([]oncrpc.Handler, len(localio.LOCALIO_V1.Procs))
	h[localio.LOCALIOPROC_NULL.Number] = null
	h[localio.LOCALIOPROC_UUID_IS_LOCAL.Number] = s.procedure1
	return oncrpc.Service{Program: &localio.LOCALIO_V1, Handlers: h}
}

func null(_ context.Context, c *oncrpc.Call) error { return c.Reply(xdr.Void{}) }

// procedure1 is GETUUID or UUID_IS_LOCAL, by the length of the arguments. The reply to
// the latter says nothing, as in Linux: the outcome is told over the socket.
func (s *Service) procedure1(_ context.Context, c *oncrpc.Call) error {
	conn := c.State.(*peer.Conn)
	if _, err := conn.View(c.Auth); err != nil {
		return err
	}
	switch c.Args.Len() {
	case 0:
		return c.Reply(&localio.GETUUIDres{Uuid: s.o.UUID})
	case localio.UUID_SIZE:
		var a localio.UUID_IS_LOCALargs
		if err := a.DecodeXDR(&c.Args); err != nil {
			return err
		}
		s.bind(a.Uuid, conn)
		return c.Reply(xdr.Void{})
	}
	return oncrpc.ErrGarbageArgs
}

// bind finds the client with the hash of the nonce, and binds it to the RPC connection. A
// nonce is good once.
func (s *Service) bind(nonce [localio.UUID_SIZE]byte, conn *peer.Conn) {
	s.mu.Lock()
	c := s.pending[sha256.Sum256(nonce[:])]
	if c == nil {
		s.mu.Unlock()
		s.n.unknown.Add(1)
		return
	}
	s.estrange(c)
	victim := s.displaced(c)
	if victim != c {
		delete(s.bound, victim) // if there is one
		s.bound[c] = struct{}{}
		c.conn.Store(conn)
	}
	s.mu.Unlock()
	if victim != nil {
		s.n.full.Add(1)
		victim.end(errors.New("too many local clients"))
	}
	if victim == c {
		return
	}
	c.timer.Stop()
	s.n.bound.Add(1)
	s.o.Log.Info("local client", slog.String("client", conn.Name), slog.Uint64("uid", uint64(c.peer.UID)),
		slog.Int("pid", int(c.peer.PID)), slog.Bool("foreign", c.foreign.Load()))
	c.queue(func() {
		c.greetings = append(c.greetings, localio.SessionMessage{
			Type: localio.SESSION_BOUND, Bound: localio.SessionBound{Nonce: nonce},
		})
	})
}

// estrange removes c from the strangers. s.mu is held.
func (s *Service) estrange(c *client) {
	s.strangers = slices.DeleteFunc(s.strangers, func(o *client) bool { return o == c })
	if s.pending[c.commitment] == c {
		delete(s.pending, c.commitment)
	}
}
