package nfsclient

import (
	"context"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/oncrpc"
)

// silent is Options.Silent for a port of the server, which it names as the user did; nil if that
// is not set.
func (o *Options) silent(port uint16) func(oncrpc.Silence) {
	if o.Silent == nil {
		return nil
	}
	server := net.JoinHostPort(o.Host, strconv.Itoa(int(port)))
	return func(s oncrpc.Silence) {
		s.Server = server
		o.Silent(s)
	}
}

// dialFirst makes the first connection to a port, and reports a server that is silent meanwhile:
// package oncrpc sees nothing before there is a connection.
func (o *Options) dialFirst(ctx context.Context, port uint16) (net.Conn, error) {
	tell := o.silent(port)
	if tell == nil {
		return o.dial(ctx, port)
	}
	s := oncrpc.Silence{Since: time.Now()}
	s.Until, _ = ctx.Deadline()
	var mu sync.Mutex // orders the timer and the end
	told, ended := false, false
	timer := time.AfterFunc(oncrpc.SilentAfter, func() {
		mu.Lock()
		defer mu.Unlock()
		if !ended {
			told = true
			tell(s)
		}
	})
	c, err := o.dial(ctx, port)
	timer.Stop()
	mu.Lock()
	defer mu.Unlock()
	if ended = true; told && err == nil {
		s.Until, s.Over = time.Time{}, true
		tell(s)
	}
	return c, err
}
