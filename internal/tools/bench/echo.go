package bench

import (
	"context"
	"errors"
)

// echoVerb is what the protocol alone costs: a message there and back.
var echoVerb = verb{
	name: "echo", size: DefaultEcho, count: 100_000, anywhere: true, start: startEcho,
	calls: [2][]string{{"NULL"}, {"Echo"}},
}

// DefaultEcho is how much comes back from a file API, in bytes.
const DefaultEcho = 32

type echoWork struct {
	t    target
	data []byte
}

func startEcho(ctx context.Context, o *Options) (work, error) {
	t, err := reach(ctx, o)
	if err != nil {
		return nil, err
	}
	return &echoWork{t: t, data: noise(o.Size, o.Seed)}, nil
}

func (w *echoWork) caller(context.Context, int) (caller, error) { return &echoCaller{w: w}, nil }
func (w *echoWork) counters() counters                          { return w.t.counters() }
func (w *echoWork) end(context.Context) error                   { return w.t.close() }

type echoCaller struct {
	plain
	w *echoWork
}

func (c *echoCaller) op(ctx context.Context) (moved, error) {
	if err := c.w.t.echo(ctx, c.w.data); err != nil {
		return moved{}, err
	}
	return moved{bytes: uint64(len(c.w.data))}, nil
}

// errEcho is a size where nothing comes back.
var errEcho = errors.New("over NFS echo is NULL, which carries nothing: leave the size out")
