package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/base/fault"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/worker"
)

type workerCmd struct {
	Join     string   `name:"join" required:"" placeholder:"nats://HOST" help:"The broker whose jobs are joined; servers of one broker with commas between."`
	Allow    []string `name:"allow" required:"" sep:"none" placeholder:"PLACE" help:"Work at PLACE and what lies below it, and nowhere else: nfs://host/export/path or host:/export/path. May be repeated."`
	Name     string   `name:"name" placeholder:"NAME" help:"The name by which coordinators speak of this worker (default: the host's)."`
	Parallel int      `placeholder:"N" help:"Files to work at, at once (default: 64)."`
	JSON     bool     `help:"Log lines of JSON."`
	Verbose  bool     `short:"v" help:"Log more."`
	brokerFlags
	rateFlags
	loadFlags
}

func (*workerCmd) Help() string {
	return `Joins a NATS server, and does the work at files for jobs that others run with --workers: cp, sync, verify and rm,
on as many machines as there are workers, up to 64 a job. It runs until a signal.

A job is joined if SOURCE and DEST lie in places that --allow names: on the same host and port as they are written
there, and as the same user. Other places are never touched, whatever the broker or the job says: a worker mounts
PLACE itself, and finds all else by names below it. It follows no symbolic link. As whom it acts is what PLACE says
(uid=, gid=), or else who runs it; a job that acts as another user is refused. So is a path of this host, which other
machines do not have. What is refused is logged here, and told where the job runs.

On one machine, on each worker, and on the machine that runs the job:

  nats-server -js
  nfsbox worker --join nats://hub --allow nfs://old/a --allow nfs://new/a
  nfsbox cp -r --job move --workers nats://hub nfs://old/a/. nfs://new/a

The machine that runs the job lists the directories, keeps the record, and makes directories, links and what else has
no contents. Workers copy, compare and remove files, in batches of up to 256. A worker may be added or killed at any
time: what it had in its hands another one does, and no more than that is done twice. If the machine with the job is
gone, workers wait ten seconds for it, and then leave the job; the same command, run again, goes on.

--max-load and --max-rate of the job are divided among its workers. Those of a worker hold besides.

The first signal lets files end that are under way, and reports them. The second ends it at once. docs/workers.md has
more: the broker's settings, TLS, users, and what goes wrong.

  nfsbox worker --join nats://hub --allow nfs://old/a --allow nfs://new/a
  nfsbox worker --join tls://hub --max-rate 50M --allow 'nfs://b/a?uid=1000'`
}

// Run works until a signal.
func (c *workerCmd) Run(e *env) error {
	o, err := c.options(e)
	if err != nil {
		return refused(err)
	}
	b, err := c.reach(e, c.Join)
	if e.ctx.Err() != nil && err != nil {
		return nil // a signal is how it ends
	}
	if err != nil {
		return err
	}
	o.Broker = b
	o.Log.Info("waits for jobs", "broker", withoutUser(c.Join), "name", o.Name)
	err = worker.New(o).Run(context.WithoutCancel(e.ctx), e.ctx)
	if err != nil {
		err = &exitError{status: exitUnreachable, err: fmt.Errorf("the broker: %w", err)}
	}
	err = errors.Join(err, b.Close())
	if err == nil {
		o.Log.Info("ended")
	}
	return err
}

// options are those of the command line, but for the broker.
func (c *workerCmd) options(e *env) (o worker.Options, err error) {
	if c.Parallel < 0 || c.Parallel > worker.MaxParallel {
		return o, fmt.Errorf("--parallel takes 0 to %d", worker.MaxParallel)
	}
	if len(c.Allow) > worker.MaxAllowed {
		return o, fmt.Errorf("--allow is given %d times, and taken %d times at most", len(c.Allow), worker.MaxAllowed)
	}
	dial, err := c.loadFlags.options()
	if err != nil {
		return o, err
	}
	load, err := parseLoad(orAuto(c.MaxLoad))
	if err != nil {
		return o, err
	}
	o = worker.Options{
		Name: c.Name, Parallel: c.Parallel, MaxLoad: load, Pool: new(bufpool.Pool), Random: randReader(e.rand), Log: c.logger(e),
		Open: func(ctx context.Context, arg string) (*place.Place, error) {
			return place.Open(ctx, arg, place.Options{Follow: true, Dial: dial})
		},
	}
	o.MaxRate, _ = c.rate()
	if o.Name == "" {
		o.Name = hostName()
	}
	for _, arg := range c.Allow {
		if arg, err = e.meant(arg); err != nil {
			return o, err
		}
		a, err := worker.Allow(arg)
		if err != nil {
			return o, fmt.Errorf("--allow: %w", err)
		}
		o.Allow = append(o.Allow, a)
	}
	return o, nil
}

// logger writes lines to stderr, in which nothing is that a terminal would obey.
func (c *workerCmd) logger(e *env) *slog.Logger {
	o := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if err, ok := a.Value.Any().(error); ok {
			a.Value = slog.StringValue(progress.Clean(fault.Text(err)))
		}
		return a
	}}
	if c.Verbose {
		o.Level = slog.LevelDebug
	}
	if c.JSON {
		return slog.New(slog.NewJSONHandler(e.stdout, o))
	}
	return slog.New(slog.NewTextHandler(e.stderr, o))
}
