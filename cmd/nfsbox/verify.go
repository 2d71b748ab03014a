package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nfsbox/nfsbox/internal/bufpool"
	"github.com/nfsbox/nfsbox/internal/job"
	"github.com/nfsbox/nfsbox/internal/place"
)

type verifyCmd struct {
	Source   string `arg:"" name:"SOURCE" help:"A path or nfs://host/export/path."`
	Dest     string `arg:"" name:"DEST" help:"What shall be the same."`
	Parallel int    `help:"Files to compare at once; 0 takes the default."`
	Owner    bool   `help:"Compare owners and groups as well."`
	mountFlags
	clientFlags
	show
}

func (*verifyCmd) Help() string {
	return `Compares two trees: names, types, sizes, every byte of every file, the targets of links, modes,
times and which names belong to one object. What is missing, extra or different is listed. Nothing is
changed. A mode of the source that is but what an access control list shows, where the copy has what the
list gives to the group itself, is no difference, and counted: cp copies no lists. Nor is a time before
1970 or after 2106, which NFSv3 does not have, where the copy has the nearest that it has.

The exit status is 0 if all is the same, 3 if there are differences, 2 if something could not be
compared, or SOURCE or DEST is not there, and 4 if one cannot be reached, or SOURCE is lost meanwhile.

  nfsbox verify nfs://filer/export/home ./home
  nfsbox verify --json ./a ./b | jq 'select(.type=="difference")'`
}

// verifySummary is the last event of verify.
type verifySummary struct {
	job.VerifySummary
	mountsSkipped
	RPCs uint64 `json:"rpcs"`
}

func (c *verifyCmd) Run(e *env) error {
	if c.Parallel < 0 || c.Parallel > job.MaxParallel {
		return &exitError{status: exitUsage, err: fmt.Errorf("--parallel takes 0 to %d", job.MaxParallel)}
	}
	defer c.print(e)
	tracker := c.tracker(e)
	c.watched = watched(e, onTracker(tracker))
	po, err := c.place(true)
	if err != nil {
		return err
	}
	po.OneFileSystem = c.OneFileSystem
	var sum verifySummary
	err = c.verify(e, po, job.VerifyOptions{
		Pool: new(bufpool.Pool), Now: time.Now, Progress: tracker, Parallel: c.Parallel, Owner: c.Owner,
	}, &sum)
	sum.tell(tracker)
	// What has failed as a whole must not look like a success.
	if err != nil && sum.Errors == 0 && sum.Differences == 0 {
		sum.Errors = 1
	}
	if ferr := tracker.Finish(&sum); ferr != nil {
		err = errors.Join(err, fmt.Errorf("output: %w", ferr))
	}
	if lost := text(
		counted{sum.ACLsLost, "access control lists, whose modes are as a copy has them"},
		counted{sum.TimesLost, "times that NFSv3 does not have"},
	); lost != "" && !c.JSON {
		_, _ = io.WriteString(e.stderr, "not preserved: "+lost+"\n") // what cannot be written has nowhere else to go
	}
	return err
}

func (c *verifyCmd) verify(e *env, po place.Options, o job.VerifyOptions, sum *verifySummary) (err error) {
	for _, side := range [...]struct {
		arg string
		at  *job.Place
	}{{c.Source, &o.Source}, {c.Dest, &o.Dest}} {
		p, oerr := place.Open(e.ctx, side.arg, po)
		if oerr != nil {
			err = errors.Join(err, oerr)
			continue
		}
		defer closePlace(p, &err, &sum.RPCs)
		defer c.count(p)
		defer sum.note(p)
		r, rerr := p.Resolve(e.ctx, true)
		err = errors.Join(err, rerr)
		*side.at = job.Place{FS: p.FS, Handle: r.Handle}
	}
	if err != nil {
		return err
	}
	sum.VerifySummary, err = job.Verify(e.ctx, o)
	if status := sum.ExitCode(err); status != exitOK {
		return &exitError{status: status, err: err}
	}
	return nil
}
