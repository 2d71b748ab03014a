package transfer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// LeftError says that temporaries could not be removed, so that they may be there.
type LeftError struct {
	Names []string // in the directory of the copy; one at least
	Err   error    // of the last
}

// Error names the temporaries.
func (e *LeftError) Error() string {
	return fmt.Sprintf("may be left behind: the temporary %s: %v", strings.Join(e.Names, ", and "), e.Err)
}

// Unwrap returns why they could not be removed.
func (e *LeftError) Unwrap() error { return e.Err }

// leftTemps are temporaries that the attempts to copy one file could not remove, or that may
// appear yet.
type leftTemps struct {
	names []string
	why   error // of the last
}

// add notes the temporary, if err is that of its RemoveTemp.
func (l *leftTemps) add(temp string, err error) {
	if err != nil {
		l.names, l.why = append(l.names, temp), errors.Unwrap(err)
	}
}

// explain adds them to err, with which the last attempt has failed.
func (l *leftTemps) explain(err error) error {
	if len(l.names) == 0 {
		return err
	}
	return join(err, &LeftError{l.names, l.why})
}

// errOvertaken says why a temporary may appear after a REMOVE has not found it.
var errOvertaken = errors.New("the call that makes it was not answered, so that it may appear yet")

// makeTime is how long a call that makes a temporary goes on after the copy's context has
// ended. Without its answer, a REMOVE may overtake it, and the temporary would stay. If no
// answer comes in that time, the temporary is reported as left. A silent server is given up
// sooner (nfsbox.WithStop).
const makeTime = 5 * time.Second

// whileMade is the context in which a temporary is made: it ends makeTime after ctx, or
// with end.
func whileMade(ctx context.Context) (making context.Context, end func()) {
	making, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(makeTime)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-making.Done():
		}
	})
	return making, func() {
		unhook()
		cancel()
	}
}

// CreateTemp makes a temporary, with a name from Options.TempName. If ctx ends meanwhile, it
// waits for the answer for up to five seconds. An error that Is vfs.ErrUnknownOutcome has to be
// passed to RemoveTemp.
func CreateTemp(ctx context.Context, dst *Target, temp string, how *vfs.CreateHow) (vfs.Handle, vfs.Attr, error) {
	if err := ctx.Err(); err != nil {
		return vfs.Handle{}, vfs.Attr{}, err
	}
	ctx, end := whileMade(ctx)
	defer end()
	h, attr, _, err := dst.FS.Create(ctx, dst.Dir, temp, how)
	return h, attr, err
}

// RemoveTemp removes a temporary, also after ctx has ended: it waits ten seconds for the answer,
// and without one the error Is vfs.ErrNoAnswer. made is the error of the call
// that makes it: if that call was not answered, a REMOVE that finds nothing proves nothing.
// An error is a LeftError.
func RemoveTemp(ctx context.Context, dst *Target, temp string, made error) error {
	ctx, cancel := cleanup(ctx)
	defer cancel()
	_, err := dst.FS.Remove(ctx, dst.Dir, temp, false)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && !errors.Is(err, vfs.ErrNoAnswer):
		return &LeftError{[]string{temp}, fmt.Errorf("%w in %v: %w", vfs.ErrNoAnswer, cleanupTime, err)}
	case !errors.Is(err, vfs.ErrNoEnt):
		return &LeftError{[]string{temp}, err}
	case unanswered(made):
		return &LeftError{[]string{temp}, errOvertaken}
	}
	return nil
}

// unanswered reports whether err is of a call that got no answer, and may yet be executed. A
// Status is an answer.
func unanswered(err error) bool {
	_, answered := errors.AsType[vfs.Status](err)
	return errors.Is(err, vfs.ErrUnknownOutcome) && !answered
}
