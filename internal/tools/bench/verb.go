package bench

import (
	"context"
	"errors"
	"strings"
)

// verb is something that can be measured.
type verb struct {
	name  string
	size  int    // the default of Options.Size; 0: the verb has no sizes
	count uint64 // the default of Options.Count, or of Options.Files; 0: as long as there is something to do
	start func(ctx context.Context, o *Options) (work, error)

	anywhere bool // the target may be a file API as well
	files    bool // it works on the files of a dataset
	once     bool // on each of them once
	cold     bool // it has no warm-up
	batch    bool // a caller may make many calls together
	// calls are those of which one operation makes exactly one, of NFS and of
	// the file API.
	calls [2][]string
}

// verbs are all verbs.
var verbs = [...]*verb{
	&nullVerb, &getattrVerb, &readVerb, &writeVerb, &listVerb,
	&uploadVerb, &downloadVerb, &existVerb, &deleteVerb, &cleanVerb, &echoVerb,
}

// Verbs are the names of what can be measured.
func Verbs() []string {
	names := make([]string, len(verbs))
	for i, v := range verbs {
		names[i] = v.name
	}
	return names
}

func verbOf(name string) (*verb, error) {
	for _, v := range verbs {
		if v.name == name {
			return v, nil
		}
	}
	return nil, usage("%q is not a verb of bench; these are: %s", name, strings.Join(Verbs(), ", "))
}

// work is a verb that is prepared: what callers share.
type work interface {
	// caller returns the i-th of the callers.
	caller(ctx context.Context, i int) (caller, error)
	// counters are what the client counts.
	counters() counters
	// end gives back what there is, and removes what was made. It is called
	// once, after the last use of a caller.
	end(ctx context.Context) error
}

// measurer is a work whose warm-up is something else than what is measured.
type measurer interface {
	// measure says that the warm-up, if there was one, is over.
	measure()
}

// caller makes operations, one after the other.
type caller interface {
	// op makes one operation and says what it has moved. errDone says that there
	// is none to make; a batchError has an error for each call that has failed.
	op(ctx context.Context) (moved, error)
	// flush ends a part of the run, within its time.
	flush(ctx context.Context) error
	// close gives back what the caller holds.
	close(ctx context.Context) error
}

// moved is what operations have moved.
type moved struct {
	bytes, entries uint64
	calls          int // of a batch: how many have succeeded
}

// batchError is what became of those calls of a batch that have failed.
type batchError []error

func (e batchError) Error() string   { return errors.Join(e...).Error() }
func (e batchError) Unwrap() []error { return e }

// plain is a caller that has nothing to flush or close.
type plain struct{}

func (plain) flush(context.Context) error { return nil }
func (plain) close(context.Context) error { return nil }
