package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/top"
)

type topCmd struct {
	URL   string        `arg:"" name:"URL" help:"The live view: http://HOST:PORT/, or HOST:PORT."`
	Once  bool          `help:"Show the figures once, and end."`
	JSON  bool          `help:"Print a line of JSON for each interval, then a summary."`
	Every time.Duration `placeholder:"TIME" help:"Time between two requests, such as 10s, from 250ms to 1m (default: that between new figures of the server)."`
}

func (*topCmd) Help() string {
	return `Shows what a running server does: what nfsbox serve --http shows in a browser.

  nfsbox serve /srv --http 127.0.0.1:9465 &
  nfsbox top 127.0.0.1:9465

At the top are calls per second, their latency (median, 99 %), bytes per second, processor time, memory
and threads of the server, its connections and clients, and charts of the last minutes. Then come
tables, as far as the screen has room: the busiest clients, with the user as whom one called last, and
the file that it was last seen to use; the busiest files; procedures; who waits for the disk, by export and kind of work;
bounds, and how much of each is taken; LOCALIO; open files; and the slowest calls of the last minutes.

Figures are computed by the server, for intervals of about 2 seconds, however many watch. They are those
of the last interval, also where --every asks less often; a user who asks more often sees the same
again.

On a terminal the screen is drawn over and over, until q or Ctrl-C. Clients and files are sorted by
operations (o), bytes (b), p99 (p) or calls in flight (f), or by the column to the left or right (arrows);
up and down scroll them, and ? shows the keys. Elsewhere each interval is one line.
--once prints all tables, at full length. Colours are left out if NO_COLOR is set.

With --json each line is an object. Of "type":"frame" are the figures: rates are a second, times are
seconds, sizes are bytes; total, process, connections, procedures, gate, limits, localio (null if it is
not served), caches, jobs, slow, clients, files. Its form has the number "format":1; other fields may be added, and
none goes or changes its meaning while the number is 1. Of "type":"error" is a server that does not
answer. The last one is of "type":"summary", with frames and errors. Without --once it takes an
interruption to end:

  timeout --signal=INT 1m nfsbox top --json 127.0.0.1:9465 >minute.json

A server that stops answering is asked again every 3 seconds.`
}

func (c *topCmd) Run(e *env) error {
	if c.Every < 0 {
		return &exitError{status: exitUsage, err: fmt.Errorf("--every: %v is no time to wait", c.Every)}
	}
	o := top.Options{
		URL: c.URL, Out: e.stdout, Once: c.Once, JSON: c.JSON, Every: c.Every,
		Size: e.size, Colour: e.colour, Zone: time.Local,
	}
	if e.size != nil {
		resized, stop := resizes()
		defer stop()
		o.Resized = resized
	}
	if e.size != nil && e.stdin != nil && !c.Once && !c.JSON {
		keys, stop, err := pressed(e.stdin)
		if err == nil { // else it goes without keys
			defer stop()
			o.Keys = keys
		}
	}
	err := top.Run(e.ctx, o)
	switch {
	case errors.Is(err, top.ErrUsage):
		return &exitError{status: exitUsage, err: err}
	case errors.Is(err, top.ErrUnreachable):
		return &exitError{status: exitUnreachable, err: err}
	case err != nil:
		return fmt.Errorf("standard output: %w", err)
	}
	return nil
}
