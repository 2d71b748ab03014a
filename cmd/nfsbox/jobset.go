package main

import (
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/internal/tools/jobs"
)

type jobSetCmd struct {
	jobNamed
	rateFlags
	MaxLoad string `placeholder:"auto|N" help:"Calls under way at once, of each of metadata, reads and writes, for each server."`
}

func (*jobSetCmd) Help() string {
	return `Changes the limits of a copy that runs, for as long as it runs: job resume begins with those of the
command. They hold within two seconds, and the copy says so. Calls that are under way are not taken back.

  nfsbox job set move --max-rate 20M
  nfsbox job set move --max-rate 0 --max-load auto`
}

func (c *jobSetCmd) Run(e *env) error {
	var o jobs.Order
	if rate, ok := c.rate(); ok {
		o.MaxRate = &rate
	}
	if c.MaxLoad != "" {
		load, err := parseLoad(c.MaxLoad)
		if err != nil {
			return err
		}
		o.MaxLoad = &load
	}
	if o.MaxRate == nil && o.MaxLoad == nil {
		return refused(errors.New("set what? --max-rate and --max-load can be changed"))
	}
	r, err := c.running()
	if err != nil {
		return err
	}
	if err := r.Send(e.ctx, o); err != nil {
		return c.notTaken(e, &r, err)
	}
	_, err = fmt.Fprintf(e.stdout, "%s has taken %s\n", r.Name, limitsText(&jobs.Limits{MaxRate: o.MaxRate, MaxLoad: o.MaxLoad}))
	return err
}
