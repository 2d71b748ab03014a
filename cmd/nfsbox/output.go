package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/nfsbox/nfsbox/internal/base/fault"
	"github.com/nfsbox/nfsbox/internal/tools/glob"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/silence"
	"github.com/nfsbox/nfsbox/vfs"
)

// output is what a command prints: text, or events.
type output struct {
	json   bool
	stderr io.Writer
	advice func(error, string) string // the advice on an error, or what replaces it

	mu      sync.Mutex // guards what follows: messages about silent servers come from other goroutines
	w       *bufio.Writer
	scratch []byte // a line of JSON
	entries uint64
	errors  uint64
	also    func(*progress.Event) // called with each argument that has failed; nil: nothing is
	advised map[string]bool       // codes of errors that advice has been given on

	tells   progress.Renderer // shows failures to people; nil: each as it is
	file    progress.Renderer // gets all failures; nil: there is no such file
	fileErr error             // of writing to it
}

func newOutput(e *env, asJSON bool) *output {
	return &output{w: bufio.NewWriter(e.stdout), json: asJSON, stderr: e.stderr, advice: e.aliasFor}
}

// outputError is the error of standard output. It ends a command, whatever argument it came with.
type outputError struct{ err error }

func (e *outputError) Error() string { return "standard output: " + e.err.Error() }
func (e *outputError) Unwrap() error { return e.err }

// event prints v, an object with fields, as a line of JSON.
func (o *output) event(kind string, v any) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.line(kind, v); err != nil {
		return err
	}
	o.entries++
	return nil
}

// line is event without counting. output.mu is held.
func (o *output) line(kind string, v any) (err error) {
	if o.scratch, err = progress.AppendObject(o.scratch[:0], time.Now(), kind, v); err != nil {
		return err
	}
	if _, err = o.w.Write(o.scratch); err != nil {
		return &outputError{err}
	}
	return nil
}

// anew prints lines of JSON that were made before. Their time is now. output.mu is held.
func (o *output) anew(lines []byte) error {
	o.scratch = progress.AppendAnew(o.scratch[:0], lines, time.Now())
	_, err := o.w.Write(o.scratch)
	return err
}

func (o *output) flush() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.w.Flush(); err != nil {
		return &outputError{err}
	}
	return nil
}

// onSilence reports servers that do not answer, immediately.
func (o *output) onSilence() silence.Watch {
	return silence.Tell(func(e *silence.Event) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.json {
			// The next flush returns the error of stdout.
			_ = errors.Join(o.line(e.Type, e), o.w.Flush())
		}
		// There is nowhere to report an error of stderr.
		_, _ = io.WriteString(o.stderr, e.Line())
	})
}

// text prints s. The caller has cleaned the names in it.
func (o *output) text(s string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := o.w.WriteString(s); err != nil {
		return &outputError{err}
	}
	o.entries++
	return nil
}

// errorEvent is an item that failed.
type errorEvent struct {
	Path      string     `json:"path,omitempty"`
	PathBytes string     `json:"path_base64,omitempty"` // if the path is not UTF-8
	Error     fault.JSON `json:"error"`
}

func newJSONError(err error) fault.JSON {
	return fault.JSON{Code: fault.Code(err), Message: fault.Text(err), Advice: advice(err, statusFor(err))}
}

// failed reports an item that failed; the command goes on. People read advice once for each
// code.
func (o *output) failed(path string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.errors++
	x := newJSONError(err)
	if o.also != nil {
		o.also(&progress.Event{Type: "error", Path: path, Message: x.Message, Err: err})
	}
	x.Advice = o.advice(err, x.Advice)
	now, e := time.Now(), progress.Event{Type: "error", Path: path, Message: x.Message, Err: err, Advice: x.Advice}
	if o.file != nil {
		o.fileErr = errors.Join(o.fileErr, o.file.Event(now, &e))
	}
	if o.json {
		// Flushing returns the error of stdout.
		_ = o.line("error", errorEvent{path, notUTF8(path), x})
	}
	if o.advised[x.Code] {
		x.Advice = ""
	} else if o.advised == nil {
		o.advised = make(map[string]bool)
	}
	o.advised[x.Code] = true
	e.Advice = x.Advice
	// There is nowhere to report an error of stderr.
	if o.tells != nil {
		_ = o.tells.Event(now, &e)
		return
	}
	_, _ = io.WriteString(o.stderr, complaint(err, x.Advice))
}

// note tells people something that is no failure.
func (o *output) note(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	// There is nowhere to report an error of stderr.
	_, _ = io.WriteString(o.stderr, "nfsbox: "+progress.Clean(text)+"\n")
}

// listSummary is the last event of ls, stat, exports, ctl and the verbs.
type listSummary struct {
	Entries uint64 `json:"entries"`
	Errors  uint64 `json:"errors"`
}

// watch adds to po what reports silent servers and incomplete snapshots, and ends what waits when the command does.
func (o *output) watch(e *env, po place.Options) place.Options {
	w := o.onSilence()
	po.Dial, po.Silent = append(slices.Clip(po.Dial), watched(e, w)...), w.Bucket
	po.Note = o.note
	return po
}

// each calls do with one argument after the other. What fails is reported, and the others follow;
// after an interruption none follows. It returns the worst of what has failed.
func (o *output) each(e *env, args iter.Seq2[string, error], do func(arg string) error) error {
	var worst error
	for arg, err := range args {
		if err == nil {
			err = do(arg)
		}
		if err == nil {
			continue
		}
		if e.ctx.Err() != nil {
			o.errors++
			return err
		}
		if broken, is := errors.AsType[*outputError](err); is {
			return broken
		}
		if !told(err) {
			o.failed(arg, err)
		}
		worst = worse(worst, err)
	}
	return worst
}

// told reports whether err only says that something has failed, which was reported.
func told(err error) bool {
	return !slices.ContainsFunc(joined(err), func(one error) bool {
		exit, ok := errors.AsType[*exitError](one)
		return !ok || exit.err != nil
	})
}

// opener is place.Open, or place.OpenName.
type opener func(ctx context.Context, arg string, po place.Options) (*place.Place, error)

// onePlace opens an argument and calls do with its place.
func onePlace(ctx context.Context, arg string, po place.Options, open opener, do func(*place.Place) error) (err error) {
	p, err := open(ctx, arg, po)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	return do(p)
}

// end prints the summary, if the output has one, and returns the command's error: err, or else that
// items have failed, which have been reported.
func (o *output) end(err error) error {
	if err := o.close(); err != nil {
		return err
	}
	if o.json {
		if err := o.event("summary", listSummary{o.entries, o.errors}); err != nil {
			return err
		}
	}
	if err := o.flush(); err != nil {
		return err
	}
	if err == nil && o.errors > 0 {
		return &exitError{status: exitIncomplete}
	}
	return err
}

// fail ends a command that could not begin with what the argument arg names: in JSON with an event
// and a summary, too.
func (o *output) fail(e *env, arg string, err error) error {
	if e.ctx.Err() != nil {
		o.errors++
		return o.end(err)
	}
	o.failed(arg, err)
	return o.end(worse(nil, err))
}

// eachPlace opens the places, and what patterns among them stand for, one after the other and
// calls do with each, as output.each does.
func eachPlace(e *env, places []string, asJSON bool, po place.Options, do func(*output, *place.Place) error) error {
	out := newOutput(e, asJSON)
	po = out.watch(e, po)
	return out.end(out.each(e, glob.Each(e.ctx, places, po), func(arg string) error {
		return onePlace(e.ctx, arg, po, place.Open, func(p *place.Place) error { return do(out, p) })
	}))
}

// worse is an exit without a message, for items that have been reported, with the highest status.
func worse(before, err error) error {
	status := exitOK
	for _, one := range append(joined(err), joined(before)...) {
		if one != nil {
			status = max(status, statusFor(one))
		}
	}
	return &exitError{status: status}
}

// row is an object as ls and stat print it in JSON.
type row struct {
	Path      string `json:"path"`
	PathBytes string `json:"path_base64,omitempty"` // if the path is not UTF-8
	Kind      string `json:"kind"`
	Mode      string `json:"mode"` // octal
	Nlink     uint32 `json:"nlink"`
	UID       uint32 `json:"uid"`
	GID       uint32 `json:"gid"`
	Size      uint64 `json:"size"`
	Used      uint64 `json:"used"`
	FileID    uint64 `json:"fileid"`
	Mtime     string `json:"mtime,omitempty"`
	Atime     string `json:"atime,omitempty"`
	Ctime     string `json:"ctime,omitempty"`
	Target    string `json:"target,omitempty"`

	TargetBytes string `json:"target_base64,omitempty"` // if the target is not UTF-8
}

// notUTF8 is s in base64 if JSON cannot hold its bytes, else "".
func notUTF8(s string) string {
	if utf8.ValidString(s) {
		return ""
	}
	return base64.StdEncoding.EncodeToString([]byte(s))
}

func newRow(path string, a vfs.Attr) *row {
	r := &row{
		Path: path, PathBytes: notUTF8(path), Kind: a.Type.String(), Mode: fmt.Sprintf("%04o", a.Mode), Nlink: a.Nlink,
		UID: a.UID, GID: a.GID, Size: a.Size, Used: a.Used, FileID: a.FileID,
	}
	for _, t := range []struct {
		to   *string
		mask vfs.Mask
		at   time.Time
	}{{&r.Mtime, vfs.MaskMtime, a.Mtime}, {&r.Atime, vfs.MaskAtime, a.Atime}, {&r.Ctime, vfs.MaskCtime, a.Ctime}} {
		if a.Has(t.mask) {
			*t.to = t.at.UTC().Format(time.RFC3339Nano)
		}
	}
	return r
}

// quoteArg quotes an argument for a shell. Characters that could control a terminal are written
// as $'...', which bash, zsh, ksh and POSIX.1-2024 understand.
func quoteArg(s string) string {
	switch {
	case s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:,@%=") == "":
		return s
	case progress.Clean(strings.ReplaceAll(s, `\`, "")) == strings.ReplaceAll(s, `\`, ""):
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for _, c := range []byte(s) {
		switch {
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}
