package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/terminal"
	"github.com/nfsbox/nfsbox/internal/tools/top"
)

type topCmd struct {
	URL   string        `arg:"" name:"URL" help:"The live view: http://HOST:PORT/, or HOST:PORT."`
	Once  bool          `help:"Show the figures once, and end."`
	JSON  bool          `help:"Print a line of JSON for each interval, then a summary."`
	Every time.Duration `placeholder:"TIME" help:"Time between two requests, such as 10s; less than 250ms is taken for that, and more than 1m for 1m (default: that between new figures of the server)."`
}

func (*topCmd) Help() string {
	return `Shows what a running server does: what nfsbox serve --http shows in a browser.

  nfsbox serve /srv --http 127.0.0.1:9465 &
  nfsbox top 127.0.0.1:9465

At the top are calls per second, their latency (median, 99 %), bytes per second, processor time, memory
and threads of the server, its connections and clients, LOCALIO, and charts of the last minutes. Tables follow,
as far as the screen has room:

  clients      the busiest, with their last user and the file that they were last seen to use
  files        the busiest
  procedures   how often each is called, and how long it takes
  slow calls   the slowest of the last minutes
  exports      who waits for the disk, by kind of work
  limits       bounds, and how much of each is taken
  caches       their hits and misses, and how full they are
  jobs         what runs beside the calls

The server computes the figures, for intervals of about 2 seconds, however many watch. With --every they are
shown less often, and still are those of the last interval; more often, the same ones are shown again.

On a terminal the screen is drawn over and over, until q or Ctrl-C. The keys o, b, p and f sort clients and
files by operations, bytes, p99 or calls in flight; left and right, by the column before or the next. Up and
down scroll them, and ? shows the keys. Where there is no terminal, each interval is one line.
--once prints all tables, at full length. NO_COLOR leaves out colours.

With --json each line is an object. One of "type":"frame" has the figures: total, process, connections,
procedures, gate, limits, localio (null if it is not served), caches, jobs, slow, clients, files. Rates are by the
second, times are seconds, sizes are bytes. Its form is "format":1: fields may be added, and none goes or
changes its meaning while the number is 1. A line of "type":"error" says that the server does not answer. The last
one is of "type":"summary", with frames and errors. Without --once it goes on until it is interrupted:

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
		resized, stop := terminal.Resizes()
		defer stop()
		o.Resized = resized
	}
	if e.size != nil && e.stdin != nil && !c.Once && !c.JSON {
		keys, stop, err := terminal.Keys(e.stdin, top.Keys)
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
		return &outputError{err}
	}
	return nil
}
