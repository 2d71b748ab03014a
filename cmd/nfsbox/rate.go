package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/base/throttle"
	"github.com/nfsbox/nfsbox/internal/tools/jobs"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// rateFlags bound how fast contents of files are moved.
type rateFlags struct {
	MaxRate *byteRate `name:"max-rate" xor:"rate" placeholder:"BYTES" help:"Move so many bytes of files a second at most, such as 500K, 10M or 1G; 0 is no limit. One that is read and written counts once, one that is read back again."`
	BwLimit *kibRate  `name:"bwlimit" xor:"rate" placeholder:"RATE" help:"The same as rsync and rclone have it: without a unit, KiB a second."`
}

// byteRate is a number of bytes a second: as byteSize, or 0.
type byteRate uint64

// UnmarshalText parses digits and a binary unit.
func (r *byteRate) UnmarshalText(text []byte) error {
	if string(text) == "0" {
		*r = 0
		return nil
	}
	var size byteSize
	if err := size.UnmarshalText(text); err != nil {
		return err
	}
	if size < throttle.Least {
		return fmt.Errorf("%q is too slow: a rate is 0, or 1K at least", text)
	}
	*r = byteRate(size)
	return nil
}

// kibRate is a byteRate that is in KiB without a unit.
type kibRate byteRate

// UnmarshalText parses digits and a unit.
func (r *kibRate) UnmarshalText(text []byte) error {
	s := string(text)
	if s != "" && s != "0" && strings.Trim(s, "0123456789") == "" {
		s += "K"
	}
	return (*byteRate)(r).UnmarshalText([]byte(s))
}

// rate is the bound in bytes a second, 0 for none; ok is false if no flag says.
func (f *rateFlags) rate() (rate uint64, ok bool) {
	switch {
	case f.MaxRate != nil:
		return uint64(*f.MaxRate), true
	case f.BwLimit != nil:
		return uint64(*f.BwLimit), true
	}
	return 0, false
}

// throttle is the bound of a run. It may be changed.
func (f *rateFlags) throttle() *throttle.Throttle {
	rate, _ := f.rate()
	return throttle.New(rate)
}

// inUse are the places that a run has open, whose load may be changed.
type inUse struct {
	mu   sync.Mutex
	open map[*place.Place]struct{}
	load *int // what they were changed to; nil: they were not
}

// add has a place follow the load, until the function that it returns is called.
func (u *inUse) add(p *place.Place) (release func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.open == nil {
		u.open = make(map[*place.Place]struct{})
	}
	u.open[p] = struct{}{}
	if u.load != nil {
		_ = p.SetMaxLoad(*u.load) // setLoad has tried it
	}
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.open, p)
	}
}

// setLoad changes the load of all places that are open, and that will be.
func (u *inUse) setLoad(n int) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.load = &n
	var all error
	for p := range u.open {
		all = errors.Join(all, p.SetMaxLoad(n))
	}
	return all
}

// bound is what each place's load is bound to, if not by otherwise; 0: by nothing.
func (u *inUse) bound(otherwise int) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.load != nil {
		return *u.load
	}
	return otherwise
}

// loads are how many calls the servers of the places have.
func (u *inUse) loads() (all []progress.Load) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for p := range u.open {
		s, ok := p.Stats()
		if !ok {
			continue
		}
		for _, l := range s.Load {
			all = append(all, progress.Load{
				Server: p.Text, Class: l.Class, InFlight: l.InFlight, Limit: l.Limit, Waiting: l.Waiting, BackOffs: l.BackOffs,
			})
		}
	}
	slices.SortStableFunc(all, func(a, b progress.Load) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Class, b.Class))
	})
	return all
}

// obey does what nfsbox job says, and notes it in j.
func (r *cpRun) obey(o jobs.Order, j *jobs.Job) {
	if o.Cancel {
		r.e.interrupt()
		return
	}
	now := jobs.Limits{}
	if j.Limits != nil {
		now = *j.Limits
	}
	var err error
	if o.MaxLoad != nil {
		now.MaxLoad, err = o.MaxLoad, r.uses.setLoad(*o.MaxLoad)
	}
	if o.MaxRate != nil {
		now.MaxRate = o.MaxRate
		r.limit.Set(*o.MaxRate)
	}
	if err != nil {
		r.notKept(err)
	}
	j.Limits = &now
	r.tracker.Report(progress.Event{Type: "note", Message: "nfsbox job set has changed its limits: " + limitsText(&now)})
}

// limitsText says to what limits were changed.
func limitsText(l *jobs.Limits) string {
	var all []string
	if l.MaxRate != nil {
		all = append(all, "--max-rate="+rateText(*l.MaxRate))
	}
	if l.MaxLoad != nil {
		all = append(all, "--max-load="+loadText(*l.MaxLoad))
	}
	return strings.Join(all, " ")
}

func rateText(rate uint64) string {
	for i, unit := range "GMK" {
		if size := uint64(1) << (10 * (3 - i)); rate >= size && rate%size == 0 {
			return fmt.Sprintf("%d%c", rate/size, unit)
		}
	}
	return fmt.Sprint(rate)
}

func loadText(load int) string {
	if load == 0 {
		return "auto"
	}
	return fmt.Sprint(load)
}

// parseLoad reads what --max-load has.
func parseLoad(value string) (int, error) {
	u, err := nfsbox.ParseURL("nfs://host/?max-load=" + escapeArg(value))
	if err != nil {
		return 0, refused(fmt.Errorf("--max-load: %w", err))
	}
	return u.MaxLoad, nil
}
