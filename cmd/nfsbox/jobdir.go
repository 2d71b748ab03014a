package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/jobs"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/vfs"
)

// jobName is the name of a job; "" if there is none.
type jobName string

// Decode takes the name from the command line. It refuses an empty one: a script with an empty
// variable would run without a record.
func (n *jobName) Decode(ctx *kong.DecodeContext) error {
	var name string
	if err := ctx.Scan.PopValueInto("name", &name); err != nil {
		return err
	}
	if err := jobs.CheckName(name); err != nil {
		return err
	}
	*n = jobName(name)
	return nil
}

// namedJob is the job of --job, which this run has locked; nil: there is none.
type namedJob struct {
	*jobs.Dir
	name  jobName
	begun bool   // this run has begun, and job.json says so
	rest  func() // ends the keeping of job.json
}

// openJob opens the job, or makes its directory. Without a name it returns nil.
func openJob(ctx context.Context, name jobName) (*namedJob, error) {
	if name == "" {
		return nil, nil
	}
	all, err := jobStore()
	if err != nil {
		return nil, fmt.Errorf("--job: %w", err)
	}
	dir, err := all.Open(ctx, string(name))
	if err != nil {
		return nil, fmt.Errorf("--job %s: %w", name, noPlace(err))
	}
	if err := job.CheckRecord(dir.Root); err != nil { // before job.json says that the job runs
		err = fmt.Errorf("--job %s: %s: %w: put it back, or begin anew behind nfsbox job forget %s", name, filepath.Join(dir.Name(), job.RecordFile), err, name)
		return nil, errors.Join(refused(err), dir.Close())
	}
	if dir.Job.Target == "" && dir.Job.Source == "" && job.Recorded(dir.Root) {
		// DEST, which the first run may have made, would be taken for one that receives the copy.
		err := fmt.Errorf("--job %s: the record of what was copied is there, and %s, which says where to, is not: put it back, "+
			"or begin anew behind nfsbox job forget %s", name, filepath.Join(dir.Name(), jobs.FileName), name)
		return nil, errors.Join(refused(err), dir.Close())
	}
	return &namedJob{Dir: dir, name: name}, nil
}

// jobStore is where the records of jobs are.
func jobStore() (jobs.Store, error) {
	state, err := stateDir()
	return jobs.Store(filepath.Join(state, "nfsbox")), err
}

// stateDir is the directory for state of programs (XDG Base Directory Specification).
func stateDir() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, otherState)
	}
	return filepath.Join(home, ".local", "state"), nil
}

// otherState is the way out where no record can be kept.
const otherState = "set XDG_STATE_HOME to a directory that can be written, and records are kept there"

// noPlace is err, with the way out if the state directory cannot be written.
func noPlace(err error) error {
	if errors.Is(err, jobs.ErrForeign) {
		return fmt.Errorf("%w. Or %s", err, otherState)
	}
	switch s, _ := vfs.StatusOf(err); s {
	case vfs.ErrAccess, vfs.ErrPerm, vfs.ErrROFS, vfs.ErrNotDir, vfs.ErrNoEnt, vfs.ErrNoSpace:
		return fmt.Errorf("%w: %s", err, otherState)
	}
	return err
}

// remembered returns how the job's first run has understood DEST; known is false if this is the
// first run, or there is no job.
func (n *namedJob) remembered() (inside, known bool) {
	if n == nil {
		return false, false
	}
	return n.Job.Target == jobs.Inside, n.Job.Target != ""
}

// jobID identifies a job: the same command, whatever the working directory.
func jobID(verb, source, dest string) string {
	return strings.Join([]string{verb, jobPlace(source), jobPlace(dest)}, "\x00")
}

// belongs returns an error if the job does something else than to copy source to dest. It is called
// before DEST is looked up: otherwise a mistyped DEST would look like one that is gone.
func (n *namedJob) belongs(verb, source, dest string) error {
	was := &n.Job
	known := was.Source != ""
	same := was.Command == verb && string(was.Source) == jobPlace(source) && string(was.Dest) == jobPlace(dest)
	if !job.OfAnother(n.Root, jobID(verb, source, dest)) && (!known || same) {
		return nil
	}
	what := "copies another SOURCE, or to another DEST; these need"
	if known {
		what = fmt.Sprintf("copies %s to %s; another SOURCE or DEST needs", quoteArg(string(was.Source)), quoteArg(string(was.Dest)))
	}
	return fmt.Errorf("the job %s %s another --job NAME. Nothing has been copied", n.name, what)
}

// run says in job.json that the run r has begun. It is called after all other refusals, before
// anything is copied. It refuses a src with the attributes attr that is a directory, and not the
// one that the job has copied, unless the user says so.
func (n *namedJob) run(r *cpRun, src *place.Place, attr *vfs.Attr) (err error) {
	if n == nil {
		return nil
	}
	if attr.Type == vfs.TypeDir {
		now := r.origin(attr)
		switch another := n.Job.From.Another(now); {
		case another && r.restore != nil:
			r.another()
		case another && !r.OtherSource:
			return otherSource(src.Text, "bring it back and run the same command, or copy what is there now with --other-source")
		}
		n.Job.From = now
	}
	if n.Job, err = r.running(src.Text, &n.Job); err != nil {
		return refused(fmt.Errorf("--job: %w", err))
	}
	if err := n.Save(); err != nil {
		return refused(fmt.Errorf("--job: %w", err))
	}
	n.begun = true
	n.rest = n.Attend(r.attending(n.Dir, true))
	return nil
}

// running is what job.json says of the run r while it copies source; was is what it said before.
func (r *cpRun) running(source string, was *jobs.Job) (jobs.Job, error) {
	dir, err := os.Getwd()
	if err != nil {
		return *was, err
	}
	now := jobs.Job{
		Command: r.verb(), Source: jobs.Text(jobPlace(source)), Dest: jobs.Text(jobPlace(r.to.Text)), Target: jobs.Itself, From: was.From,
		Dir: jobs.Text(dir), State: jobs.Running, Runs: was.Runs + 1, Begun: time.Now(),
	}
	for _, arg := range r.e.args {
		now.Args = append(now.Args, jobs.Text(arg))
	}
	if r.to.inside {
		now.Target = jobs.Inside
	}
	return now, nil
}

// attending is how the run keeps job.json, and obeys nfsbox job.
func (r *cpRun) attending(d *jobs.Dir, stable bool) jobs.Attending {
	return jobs.Attending{Counts: r.counts, Obey: func(o jobs.Order) { r.obey(o, &d.Job) }, Told: r.notKept, Stable: stable}
}

// counts are those of job.json while the run goes on.
func (r *cpRun) counts() map[string]uint64 {
	s := r.tracker.Snapshot()
	return s.Map()
}

// notKept tells of what is wrong with the record while the run goes on.
func (r *cpRun) notKept(err error) {
	r.tracker.Report(progress.Event{Type: "note", Message: "the record: " + err.Error()})
}

// tellEnd says in j how the run has ended: with err, and these counts.
func tellEnd(e *env, j *jobs.Job, counts map[string]uint64, err error) {
	j.State, j.Ended, j.Counts = jobs.Complete, time.Now(), counts
	if err != nil {
		j.State = jobs.Failed
		if exit, ok := errors.AsType[*exitError](err); !ok || exit.err != nil { // else items have failed, which were told
			j.Error = oneLine(err)
		}
	}
	if err != nil && interrupted(e) {
		j.State = jobs.Interrupted
	}
}

// end says in job.json how the run has ended: with err, and these counts.
func (n *namedJob) end(e *env, sum *cpSummary, t *progress.Tracker, err error) error {
	if n == nil || !n.begun {
		return nil
	}
	n.rest()
	tellEnd(e, &n.Job, countsOf(sum, t), err)
	serr := n.Save()
	if serr == nil {
		return nil
	}
	serr = fmt.Errorf("--job: %w", serr)
	if err != nil {
		return &exitError{status: statusFor(err), err: serr}
	}
	return serr
}

// countsOf are the whole numbers of a summary, and those of its progress that it does not have.
func countsOf(sum any, t *progress.Tracker) map[string]uint64 {
	last := t.Snapshot()
	counts := last.Map()
	text, err := json.Marshal(sum)
	var fields map[string]json.RawMessage
	if err != nil || json.Unmarshal(text, &fields) != nil {
		return counts
	}
	for name, value := range fields {
		if n, err := strconv.ParseUint(string(value), 10, 64); err == nil {
			counts[name] = n
		}
	}
	return counts
}

// jobPlace is a place in the form that identifies a job: paths are absolute.
func jobPlace(arg string) string {
	if place.IsURL(arg) {
		return arg
	}
	if abs, err := filepath.Abs(arg); err == nil {
		return abs
	}
	return arg
}
