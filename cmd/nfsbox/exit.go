package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/nfsbox/nfsbox/internal/base/fault"
	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// The exit statuses of every command: those of a job, which other commands share.
const (
	exitOK          = job.ExitDone
	exitUsage       = job.ExitRefused     // usage or configuration
	exitIncomplete  = job.ExitIncomplete  // some items failed; they have been listed
	exitDiffers     = job.ExitDifferent   // verification found differences
	exitUnreachable = job.ExitUnreachable // a source or destination cannot be reached

	exitInterrupted = 130 // by a signal, as shells show one that SIGINT has ended
)

// exitError is an error with its exit status. Without err nothing is printed: the items have been
// listed.
type exitError struct {
	status int
	err    error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// report prints err, unless its items have been listed, and returns the exit status. A command
// that was interrupted before it was done has a status of its own, whatever it was waiting for.
func report(e *env, err error) int {
	status := statusOf(e, err)
	if status != exitOK && interrupted(e) {
		return exitInterrupted
	}
	return status
}

// statusOf prints err, unless its items have been listed, and returns its status; of several
// errors the highest.
func statusOf(e *env, err error) int {
	if err == nil {
		return exitOK
	}
	if errors.Is(context.Cause(e.ctx), errPipe) {
		return exitPipe // there is no reader for a message
	}
	status := exitOK
	for _, one := range joined(err) {
		var exit *exitError
		switch {
		case !errors.As(one, &exit):
			complain(e, one, statusFor(one))
		case exit.err != nil:
			complain(e, exit.err, exit.status)
		}
		status = max(status, statusFor(one))
	}
	return status
}

func statusFor(err error) int {
	var exit *exitError
	switch {
	case errors.As(err, &exit):
		return exit.status
	case errors.Is(err, place.ErrUsage):
		return exitUsage
	case errors.Is(err, place.ErrUnreachable):
		return exitUnreachable
	}
	return exitIncomplete
}

// joined are the errors in err; err alone if errors.Join has not made it.
func joined(err error) (each []error) {
	all, ok := err.(interface{ Unwrap() []error })
	if !ok || errors.Join(all.Unwrap()...).Error() != err.Error() {
		return []error{err}
	}
	for _, one := range all.Unwrap() {
		each = append(each, joined(one)...)
	}
	return each
}

// complain prints err as a line, or each of several joined errors as a line, and below it what
// to do. Their texts may hold names that a server chose.
func complain(e *env, err error, status int) {
	for _, one := range joined(err) {
		// There is nowhere to report an error of stderr.
		_, _ = io.WriteString(e.stderr, complaint(one, e.aliasFor(one, advice(one, status))))
	}
}

// complaint is what people read of an error.
func complaint(err error, advice string) string { return complaintOf(fault.Text(err), advice) }

// complaintOf is complaint, of an error's text.
func complaintOf(text, advice string) string {
	text = "nfsbox: " + cleanLine(text) + "\n"
	if advice != "" {
		text += "        -> " + progress.Clean(advice) + "\n"
	}
	return text
}

// advised is an error with the advice on it.
type advised struct {
	error
	advice string
}

func (e *advised) Unwrap() error { return e.error }

// oneLine is an error's text as a terminal may show it.
func oneLine(err error) string { return cleanLine(fault.Text(err)) }

func cleanLine(text string) string { return progress.Clean(strings.ReplaceAll(text, "\n", "; ")) }

// advice is what to do about an error of a server that has the given exit status; "" for other
// errors, and where the text says it all.
func advice(err error, status int) string {
	if a, ok := errors.AsType[*advised](err); ok {
		return a.advice
	}
	if place.InUse(err) {
		return "run it again when that has ended"
	}
	url := urlIn(fault.Text(err))
	switch {
	case url == "" || errors.Is(err, context.Canceled):
		return ""
	case !strings.HasPrefix(url, "nfs://"): // of a file API, which doctor knows nothing of
		return fault.Advice(err)
	}
	if status != exitUnreachable && errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	text := fault.Advice(err)
	if none, ok := errors.AsType[*place.NoExport](err); ok {
		text = none.Advice()
	}
	if status != exitUnreachable {
		return text
	}
	switch {
	case strings.HasSuffix(text, "?"):
		text += " "
	case text != "":
		text += "; "
	}
	return text + "nfsbox doctor " + quoteArg(url) + " finds out more"
}

// urlIn is the URL that an error's text is about: it begins with that, or bench has said before in which run. "" is none.
func urlIn(text string) string {
	for part := range strings.SplitSeq(text, ": ") {
		before, url, found := strings.Cut(part, "://")
		switch scheme := before[strings.LastIndexByte(before, ' ')+1:]; {
		case !found && strings.HasPrefix(part, "bench "):
		case scheme == before && scheme == "nfs", strings.HasPrefix(before, "round "), strings.HasPrefix(scheme, "http"):
			return scheme + "://" + url
		default:
			return ""
		}
	}
	return ""
}

func interrupted(e *env) bool {
	return e.ctx.Err() != nil && !errors.Is(context.Cause(e.ctx), errPipe)
}
