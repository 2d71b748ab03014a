package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/jobs"
	"github.com/nfsbox/nfsbox/internal/tools/terminal"
)

// jobCmd is about the records that copies keep.
type jobCmd struct {
	Ls     jobLsCmd     `cmd:"" help:"List all: how each stands, how far it is, and what it copies."`
	Show   jobShowCmd   `cmd:"" help:"Show all that is known of one, and what to do next."`
	Resume jobResumeCmd `cmd:"" help:"Run its command again, which goes on where it ended."`
	Set    jobSetCmd    `cmd:"" help:"Change the limits of a running one."`
	Cancel jobCancelCmd `cmd:"" help:"End a running one as Ctrl-C would; it can be resumed."`
	Forget jobForgetCmd `cmd:"" help:"Remove a record. What was copied stays."`
}

func (*jobCmd) Help() string {
	return `Copies of directories keep records, by which they go on where they ended: those with --job NAME for
good, those without a name until they have ended well. They are below $XDG_STATE_HOME/nfsbox (or
~/.local/state/nfsbox), in jobs and unfinished, and only their own user may use them.

NAME is that of --job, or, of a copy without, what job ls shows: twelve digits. Fewer are enough, four at
least, where no other begins so. Shells complete it.

A copy is running, interrupted (also if it was killed), failed (it has ended early, or items have failed:
its command tries them again) or complete. That it runs is known by its lock, which the system lets go
when a process ends, however it does. How far it is, the record says, five seconds late at most.

job resume runs the command of the last run again, in the directory where that was started, without
--no-resume and --other-source. It ends as that command ends, with its status. Flags that came from the
environment or from the settings are those of now.

job cancel ends a copy that runs, by a file in the record's directory: no signal is sent. It waits until the
copy has ended, for a minute at most: it removes what is unfinished. The copy's own status is 130.

job set changes how fast a copy that runs may be (--max-rate), and how many calls it has under way
(--max-load), until it ends.

job forget removes a record. Its command, run again, copies all anew: nothing tells any more which files it
had copied. No copy and no source is touched: temporaries of large files that it had copied in part are named.
One that runs is not forgotten.

A record that is damaged, of a later version, or refused, is told of, with status 2, and the others are
listed. Nothing is changed. Refused is what may be another user's: a record, or a file in it, or a directory
above it, in nfsbox, that belongs to another user, or to which others may write. cp --job refuses it, too.

  nfsbox job ls
  nfsbox job show move
  nfsbox job resume 3f2a
  nfsbox job ls --json | jq -r 'select(.state=="interrupted").name'`
}

// jobNamed is the argument of those that are about one record.
type jobNamed struct {
	Name string `arg:"" job:"" name:"NAME" help:"Of --job, or what job ls shows."`
}

// find finds the record. The error is told as that of an argument if there is none, and as that of an item if it
// cannot be read.
func (n *jobNamed) find() (jobs.Store, jobs.Record, error) {
	all, err := jobStore()
	if err != nil {
		return all, jobs.Record{}, err
	}
	r, err := all.Find(n.Name)
	if err != nil && errors.Is(err, jobs.ErrNone) {
		err = refused(fmt.Errorf("%w; nfsbox job ls lists them", err))
	} else if err != nil {
		err = fmt.Errorf("the job %s: %w", n.Name, err)
	}
	return all, r, err
}

// running is find, and an error unless it runs.
func (n *jobNamed) running() (r jobs.Record, err error) {
	_, r, err = n.find()
	if err == nil && r.State != jobs.Running {
		err = refused(fmt.Errorf("the job %s does not run: it is %s", r.Name, standing(&r)))
	}
	return r, err
}

// resting is find, and an error if it runs.
func (n *jobNamed) resting() (all jobs.Store, r jobs.Record, err error) {
	all, r, err = n.find()
	if err == nil && r.State == jobs.Running {
		err = refused(runs(&r))
	}
	return all, r, err
}

func runs(r *jobs.Record) error {
	by := r.By
	if by == "" {
		by = "another run"
	}
	return fmt.Errorf("the job %s runs: %s has it; nfsbox job cancel %s ends it", r.Name, by, r.Name)
}

type jobLsCmd struct {
	JSON bool `help:"Print events as lines of JSON."`
}

func (*jobLsCmd) Help() string {
	return `Columns are the name, how it stands, how many items are done, how many of the bytes, when it was last at
work, and what is copied to where. Totals have a ≥ before them while directories are being listed. The one that
was last at work comes first.

  nfsbox job ls
  nfsbox job ls --json | jq -r 'select(.type=="job").name'`
}

func (c *jobLsCmd) Run(e *env) error {
	out := newOutput(e, c.JSON)
	all, err := jobStore()
	if err != nil {
		return err
	}
	var list []jobs.Record
	err = all.List(func(r jobs.Record, err error) {
		if err != nil {
			out.failed(r.Dir, fmt.Errorf("the record %s: %w", quoteArg(r.Name), err))
			return
		}
		list = append(list, r)
	})
	if err != nil {
		out.failed(string(all), err)
	}
	if e.ctx.Err() != nil {
		return out.end(context.Cause(e.ctx))
	}
	slices.SortStableFunc(list, func(a, b jobs.Record) int { return b.At.Compare(a.At) })
	if !c.JSON {
		err = printJobs(out, list)
	}
	for i := range list {
		if c.JSON {
			err = errors.Join(err, out.event("job", newJobEvent(&list[i])))
		}
	}
	return out.end(err)
}

type jobShowCmd struct {
	jobNamed
	JSON bool `help:"Print it as a line of JSON, then a summary."`
}

func (*jobShowCmd) Help() string {
	return `Shows its places, counts, times, failures of its last run, and the command that goes on.

  nfsbox job show move
  nfsbox job show --json 3f2a`
}

func (c *jobShowCmd) Run(e *env) error {
	out := newOutput(e, c.JSON)
	_, r, err := c.find()
	if err != nil {
		return out.fail(e, c.Name, err)
	}
	if c.JSON {
		err = out.event("job", newJobEvent(&r))
	} else {
		err = out.text(showJob(e, &r))
	}
	return out.end(err)
}

type jobResumeCmd struct{ jobNamed }

func (*jobResumeCmd) Help() string {
	return `Runs the command of its last run again, in the directory where that was started. It ends with that
command's status. nfsbox job --help says what is different.

  nfsbox job resume move`
}

func (c *jobResumeCmd) Run(e *env) error {
	_, r, err := c.resting()
	if err != nil {
		return err
	}
	if err := resumable(&r); err != nil {
		return err
	}
	args := resuming(argsOf(&r.Job))
	again := *e
	again.name, again.resumes = e.program(), r.Name
	back, err := os.Getwd()
	if err == nil {
		err = os.Chdir(string(r.Job.Dir))
	}
	if err != nil {
		return notEntered(&r, err)
	}
	defer func() { _ = os.Chdir(back) }() // the process ends
	// There is nowhere to report an error of stderr.
	_, _ = fmt.Fprintf(e.stderr, "nfsbox: in %s: %s\n", quoteArg(string(r.Job.Dir)), commandLine(again.name, args))
	if f, is := e.stderr.(terminal.Messages); is {
		again.stderr = f.To
	}
	if status := run(&again, args); status != exitOK {
		return &exitError{status: status}
	}
	return nil
}

// resumable returns the error with which job resume refuses the record of a job that does not run.
func resumable(r *jobs.Record) error {
	if len(r.Job.Args) == 0 {
		return refused(fmt.Errorf("the record of %s does not have its command: run that again, which copied %s to %s",
			r.Name, quoteArg(string(r.Job.Source)), quoteArg(string(r.Job.Dest))))
	}
	args := resuming(argsOf(&r.Job))
	if err := isCopyOf(r, args); err != nil {
		return fmt.Errorf("the job %s: %w: %s", r.Name, err, commandLine("", args))
	}
	if !filepath.IsAbs(string(r.Job.Dir)) {
		return notEntered(r, fmt.Errorf("%s: it is no absolute path", quoteArg(string(r.Job.Dir))))
	}
	if _, err := os.Stat(string(r.Job.Dir) + "/."); err != nil {
		return notEntered(r, err)
	}
	return nil
}

func notEntered(r *jobs.Record, err error) error {
	return refused(fmt.Errorf("the job %s was started in a directory that cannot be entered: %w", r.Name, err))
}

// program is the name under which the program was called, as it is understood in any directory.
func (e *env) program() string {
	if filepath.Base(e.name) == e.name { // it was found in PATH
		return e.name
	}
	if abs, err := filepath.Abs(e.name); err == nil && e.name != "" {
		return abs
	}
	return e.name
}

func argsOf(j *jobs.Job) []string {
	args := make([]string, len(j.Args))
	for i, a := range j.Args {
		args[i] = string(a)
	}
	return args
}

// errNotItsCommand says that a record has a command that is none that keeps this record.
var errNotItsCommand = errors.New("its record is damaged: this is not its command")

// isCopyOf returns an error unless args are a command that keeps the record r. What a record says is not
// run for the asking.
func isCopyOf(r *jobs.Record, args []string) error {
	args = customary(args)
	parser, exited, err := newParser(&env{stdout: io.Discard, stderr: io.Discard}, new(resolver), args)
	if err != nil {
		return err
	}
	ctx, err := parser.Parse(args)
	if err != nil || *exited {
		return errors.Join(errNotItsCommand, err)
	}
	command, name := commandOf(ctx.Selected()), ""
	for _, f := range ctx.Selected().Flags {
		if f.Name == "job" {
			name = f.Target.String()
		}
	}
	if command != r.Job.Command || command != "cp" && command != "sync" && command != "restore" || r.Named != (name != "") || r.Named && name != r.Name {
		return errNotItsCommand
	}
	return nil
}

// endTime bounds how long job cancel waits for the end of a copy.
const endTime = time.Minute

type jobCancelCmd struct{ jobNamed }

func (*jobCancelCmd) Help() string {
	return `Ends a copy that runs, and waits until it has ended, for a minute at most. Its command's status is 130, and
job resume goes on with it.

  nfsbox job cancel move`
}

func (c *jobCancelCmd) Run(e *env) error {
	r, err := c.running()
	if err != nil {
		return err
	}
	if err := r.Send(e.ctx, jobs.Order{Cancel: true}); err != nil {
		return c.notTaken(e, &r, err)
	}
	ctx, cancel := context.WithTimeout(e.ctx, endTime)
	defer cancel()
	if err := r.WaitEnd(ctx); err != nil && ctx.Err() != nil && e.ctx.Err() == nil {
		return fmt.Errorf("the job %s has been told to end, and has not within %v: %s", r.Name, endTime, r.By)
	} else if err != nil {
		return err
	}
	how := "; to go on: " + commandLine(e.name, []string{"job", "resume", r.Name})
	if c.complete() {
		how = " by itself, and is complete"
	}
	_, err = fmt.Fprintf(e.stdout, "%s has ended%s\n", r.Name, how)
	return err
}

// complete reports whether a run has ended well. Then a copy without a name has no record any more.
func (n *jobNamed) complete() bool {
	_, r, err := n.find()
	return errors.Is(err, jobs.ErrNone) || err == nil && r.State == jobs.Complete
}

// notTaken says that a run did not do what it was told.
func (n *jobNamed) notTaken(e *env, r *jobs.Record, err error) error {
	if e.ctx.Err() != nil {
		return e.ctx.Err()
	}
	if _, now, ferr := n.find(); n.complete() || ferr == nil && now.State != jobs.Running {
		return refused(fmt.Errorf("the job %s has ended meanwhile", r.Name))
	}
	if errors.Is(err, jobs.ErrNotTaken) && job.Locks {
		return fmt.Errorf("the job %s: %w within %v; it may be of an earlier version, or stopped: %s", r.Name, err, jobs.TakeTime, r.By)
	}
	return fmt.Errorf("the job %s: %w", r.Name, err)
}

type jobForgetCmd struct {
	Names []string `arg:"" job:"" name:"NAME" help:"Of --job, or what job ls shows."`
}

func (*jobForgetCmd) Help() string {
	return `Removes a record, and nothing else: its command, run again, copies all anew. One that runs is not
forgotten.

  nfsbox job forget 3f2a`
}

func (c *jobForgetCmd) Run(e *env) error {
	var all error
	for _, name := range c.Names {
		if err := forget(e, jobNamed{Name: name}); err != nil {
			all = errors.Join(all, err)
		}
	}
	return all
}

// forget removes a record, also one that cannot be read.
func forget(e *env, n jobNamed) error {
	all, r, err := n.find()
	if err != nil && r.Dir == "" {
		return err
	}
	if ferr := all.Forget(&r); ferr != nil {
		if errors.Is(ferr, jobs.ErrRuns) {
			return refused(runs(&r))
		}
		return fmt.Errorf("the job %s: %w", r.Name, ferr)
	}
	lost := "it had no file recorded"
	if r.Files > 0 {
		lost = fmt.Sprintf("its command copies all anew, %s recorded as copied too", text(counted{r.Files, "file|files"}))
	}
	_, err = fmt.Fprintf(e.stdout, "%s is forgotten; %s\n", r.Name, lost)
	for _, text := range orphans(string(r.Job.Dest), r.Parts) {
		_, werr := fmt.Fprintf(e.stdout, "it has left %s\n", text)
		err = errors.Join(err, werr)
	}
	return err
}
