package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/nfsbox/nfsbox/internal/tools/hands"
	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/queue"
	"github.com/nfsbox/nfsbox/internal/tools/queue/jetstream"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/internal/tools/worker"
	"github.com/nfsbox/nfsbox/vfs"
)

// workersFlags are those of commands whose work at files workers on other machines can do.
type workersFlags struct {
	Workers string `name:"workers" placeholder:"nats://HOST" help:"With --job: have the work at files done by the workers that have joined this broker (nfsbox worker)."`
	brokerFlags
}

// brokerFlags say as whom a broker is used.
type brokerFlags struct {
	NATSCreds string `name:"nats-creds" type:"path" placeholder:"FILE" help:"Show the broker the user's credentials in FILE, as nsc writes them."`
	NATSCA    string `name:"nats-ca" type:"path" placeholder:"FILE" help:"Take the broker's certificate if one of those in FILE (PEM) vouches for it. That demands TLS."`
}

// connect reaches the broker at urls, which are servers of one broker, with commas between.
func (f *brokerFlags) connect(e *env, urls string) (queue.Broker, error) {
	if e.broker != nil {
		return e.broker(urls)
	}
	b, err := jetstream.Connect(e.ctx, jetstream.Options{URLs: strings.Split(urls, ","), Credentials: f.NATSCreds, CA: f.NATSCA, Name: "nfsbox"})
	if err != nil {
		return nil, err
	}
	return b, nil
}

// reach is connect, with the exit status of an error.
func (f *brokerFlags) reach(e *env, urls string) (queue.Broker, error) {
	b, err := f.connect(e, urls)
	switch {
	case err != nil && !errors.Is(err, queue.ErrBroker) && e.ctx.Err() == nil:
		return nil, refused(err) // what was said of it is wrong
	case err != nil && e.ctx.Err() == nil:
		return nil, &exitError{status: exitUnreachable, err: fmt.Errorf("the broker of the workers: %w", err)}
	}
	return b, err
}

// checkWorkers refuses what workers cannot do. places are those of the command.
func (f *workersFlags) check(name jobName, places ...string) error {
	switch {
	case f.Workers == "" && (f.NATSCreds != "" || f.NATSCA != ""):
		return errors.New("--nats-creds and --nats-ca are for --workers")
	case f.Workers == "":
		return nil
	case name == "":
		return errors.New("--workers needs --job NAME, by which the workers know the job")
	}
	for _, arg := range places {
		if _, err := worker.PlaceOf(arg); err != nil {
			return fmt.Errorf("--workers: %w", err)
		}
	}
	return nil
}

// team are the workers of a command, and what speaks for it to them; nil: it has none.
type team struct {
	*hands.Coordinator
	broker queue.Broker
}

// hands are what a job is given: nil if it works by itself.
func (t *team) hands() hands.Hands {
	if t == nil {
		return nil
	}
	return t.Coordinator
}

// lead opens a run for workers.
func (f *workersFlags) lead(e *env, name jobName, spec *hands.Spec, pace func() (int, uint64), t *progress.Tracker) (*team, error) {
	text, err := spec.Encode()
	if err != nil {
		return nil, refused(err)
	}
	b, err := f.reach(e, f.Workers)
	if err != nil {
		return nil, err
	}
	run := make([]byte, 16)
	e.rand(run)
	c, err := hands.Open(e.ctx, hands.Options{
		Broker: b, Job: queue.Job{Name: string(name), Run: hex.EncodeToString(run), Spec: text}, Verify: spec.Verify, Pace: pace,
		Tell:  func(message string) { t.Report(progress.Event{Type: "note", Kind: "workers", Message: message}) },
		Allow: joinLine(f.Workers, spec),
	})
	if err != nil {
		err = errors.Join(err, b.Close())
		if errors.Is(err, hands.ErrBusy) {
			return nil, refused(fmt.Errorf("--job %s: %w", name, err))
		}
		return nil, &exitError{status: exitUnreachable, err: fmt.Errorf("the broker of the workers: %w", err)}
	}
	t.SetTeam(func() progress.Team {
		s := c.Standing()
		return progress.Team{Workers: s.Workers, Batches: s.Batches, Here: s.Here}
	})
	return &team{c, b}, nil
}

// close ends the run, so that workers learn that it is over, and waits until they have removed their temporaries.
func (t *team) close() error {
	if t == nil {
		return nil
	}
	err := t.Coordinator.Close()
	if errors.Is(err, queue.ErrBroker) || errors.Is(err, context.DeadlineExceeded) {
		err = nil // the broker is not there; workers find out by themselves that nobody answers
	}
	return errors.Join(err, t.broker.Close())
}

// left is how many temporaries workers could not remove when the run was closed.
func (t *team) left() uint64 {
	if t == nil {
		return 0
	}
	return t.Left()
}

// joinLine is the command by which a worker takes part.
func joinLine(urls string, spec *hands.Spec) string {
	line := "nfsbox worker --join " + quoteArg(withoutUser(urls))
	for _, p := range [...]*hands.Place{spec.Source, &spec.Dest} {
		if p != nil {
			line += " --allow " + quoteArg(worker.Text(p))
		}
	}
	return line
}

// withoutUser is a list of URLs without who uses them.
func withoutUser(urls string) string {
	all := strings.Split(urls, ",")
	for i, u := range all {
		scheme, rest, ok := strings.Cut(u, "://")
		if at := strings.LastIndexByte(rest, '@'); ok && at >= 0 {
			all[i] = scheme + "://" + rest[at+1:]
		}
	}
	return strings.Join(all, ",")
}

// hostName is this host's name, by which a worker is known to people.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "a host without a name"
	}
	return name
}

// lead opens the run of a copy for workers, if it has any.
func (r *cpRun) lead(src *place.Place, isDir bool, name, id string) (*team, error) {
	if r.Workers == "" {
		return nil, nil
	}
	if !isDir {
		return nil, refused(fmt.Errorf("%s: --workers share what lies in a directory; copy this without", src.Text))
	}
	from, err := worker.PlaceOf(src.Text)
	if err != nil {
		return nil, refused(err)
	}
	var below []string
	if r.to.inside && name != "" {
		below = []string{name}
	}
	to, err := worker.PlaceOf(r.to.Text, below...)
	if err != nil {
		return nil, refused(err)
	}
	spec := hands.Spec{
		Command: r.verb(), Source: &from, Dest: to, Tag: job.TempTag(id), Owner: !r.NoOwner, Verify: r.Verify, MapUID: r.MapUID, MapGID: r.MapGID,
	}
	load, err := parseLoad(orAuto(r.MaxLoad))
	if err != nil {
		return nil, err
	}
	return r.workersFlags.lead(r.e, r.Job, &spec, func() (int, uint64) { return r.uses.bound(load), r.limit.Rate() }, r.tracker)
}

// lead opens the run of a comparison for workers, if it has any.
func (c *verifyCmd) lead(e *env, o *job.VerifyOptions, t vfs.Type) (*team, error) {
	if c.Workers == "" {
		return nil, nil
	}
	if t != vfs.TypeDir {
		return nil, refused(fmt.Errorf("%s: --workers share what lies in a directory; compare this without", c.Source))
	}
	from, err := worker.PlaceOf(c.Source)
	to, terr := worker.PlaceOf(c.Dest)
	load, lerr := parseLoad(orAuto(c.MaxLoad))
	if err = errors.Join(err, terr, lerr); err != nil {
		return nil, refused(err)
	}
	spec := hands.Spec{Command: "verify", Source: &from, Dest: to}
	return c.workersFlags.lead(e, c.Job, &spec, func() (int, uint64) { return load, o.Throttle.Rate() }, o.Progress)
}

// lead opens the run of a removal for workers, if it has any. Only what lies in a directory is for them.
func (r *removal) lead(p *place.Place, t vfs.Type) (*team, error) {
	if r.Workers == "" || t != vfs.TypeDir || r.DryRun {
		return nil, nil
	}
	at, err := worker.PlaceOf(p.Text)
	load, lerr := parseLoad(orAuto(r.MaxLoad))
	if err = errors.Join(err, lerr); err != nil {
		return nil, refused(err)
	}
	return r.workersFlags.lead(r.e, r.Job, &hands.Spec{Command: "rm", Dest: at}, func() (int, uint64) { return load, 0 }, r.tracker)
}

// unlink has workers remove the names that directories have for what is no directory; nil: nothing does.
func (t *team) unlink(f vfs.FS) func(ctx context.Context, d *walk.Dir, name string) error {
	if t == nil {
		return nil
	}
	return func(ctx context.Context, d *walk.Dir, name string) error {
		at := hands.Dir{Dest: &d.Attr, Path: func() (names []string) {
			for up := d; up.Parent != nil; up = up.Parent {
				names = append(names, up.Name)
			}
			slices.Reverse(names)
			return names
		}}
		return t.Remove(ctx, &at, f, d.Handle, name)
	}
}

func orAuto(load string) string {
	if load == "" {
		return "auto"
	}
	return load
}
