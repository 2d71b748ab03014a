package wire

import (
	"errors"
	"strings"

	"github.com/nfsbox/nfsbox/internal/base/fault"
	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/vfs"
)

// OfCopy is the outcome of a copy.
func OfCopy(r *transfer.Result, err error) Outcome {
	if err != nil {
		return OfError(err)
	}
	o := Outcome{End: COPIED}
	o.Copied.Source.Set(&r.Source)
	o.Copied.Copy.Set(&r.Attr)
	o.Copied.Left = names(r.Left)
	for _, f := range flags(r) {
		if *f.is {
			o.Copied.Flags |= f.bit
		}
	}
	return o
}

// Result is what the copy has come to. It has no handle.
func (c *Copied) Result() transfer.Result {
	r := transfer.Result{Source: c.Source.VFS(), Attr: c.Copy.VFS(), Left: texts(c.Left)}
	r.Bytes = r.Source.Size
	for _, f := range flags(&r) {
		*f.is = c.Flags&f.bit != 0
	}
	return r
}

// flag is a bit of Copied.Flags, and what it stands for.
type flag struct {
	bit uint32
	is  *bool
}

func flags(r *transfer.Result) [10]flag {
	return [...]flag{
		{VERIFIED, &r.Verified}, {GREW, &r.Grew}, {LISTED, &r.Listed}, {MARKED, &r.Marked},
		{LOST_OWNER, &r.Lost.Owner}, {LOST_SETID, &r.Lost.SetID}, {LOST_MODE, &r.Lost.Mode},
		{LOST_TIMES, &r.Lost.Times}, {LOST_ACL, &r.Lost.ACL}, {LOST_XATTR, &r.Lost.Xattr},
	}
}

// OfComparison is the outcome of a comparison.
func OfComparison(c transfer.Comparison, err error) Outcome {
	if err != nil {
		return OfError(err)
	}
	return Outcome{End: COMPARED, Compared: Compared{c.Differ, c.Offset, c.Bytes}}
}

// Comparison is what the comparison has found.
func (c *Compared) Comparison() transfer.Comparison {
	return transfer.Comparison{Differ: c.Differ, Offset: c.Offset, Bytes: c.Bytes}
}

// OfRemoval is the outcome of a removal.
func OfRemoval(err error) Outcome {
	if err != nil {
		return OfError(err)
	}
	return Outcome{End: REMOVED}
}

// Declined is the outcome of a file that a worker cannot work at.
func Declined(why string) Outcome { return Outcome{End: DECLINED, Why: Text(why)} }

// sentinels are what an error may be beside a status, as far as a job looks at it.
var sentinels = [...]struct {
	bit uint32
	err error
}{
	{IS_VANISHED, transfer.ErrVanished}, {IS_CHANGED, transfer.ErrChanged}, {IS_COUNT, transfer.ErrCount},
	{IS_VERIFY, transfer.ErrVerify}, {IS_UNKNOWN, vfs.ErrUnknownOutcome},
}

// OfError is the outcome of a file that has failed.
func OfError(err error) Outcome {
	o := Outcome{End: FAILED, Failed: Failed{Text: Text(fault.Text(err))}}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			o.Failed.Is |= s.bit
		}
	}
	if status, ok := vfs.StatusOf(err); ok {
		o.Failed.Status = uint32(status)
	}
	if left, ok := errors.AsType[*transfer.LeftError](err); ok {
		o.Failed.Left = names(left.Names)
	}
	return o
}

// Err is the error with which the file has failed, in its words. It Is what it was on the worker, as
// far as a job looks at that.
func (f *Failed) Err() error {
	e := farError{text: string(f.Text)}
	if e.text == "" {
		e.text = "failed on a worker, which does not say why"
	}
	for _, s := range sentinels {
		if f.Is&s.bit != 0 {
			e.causes = append(e.causes, s.err)
		}
	}
	if f.Status != 0 {
		e.causes = append(e.causes, vfs.Status(f.Status))
	}
	if len(f.Left) > 0 {
		e.causes = append(e.causes, &transfer.LeftError{Names: texts(f.Left), Err: errors.New("a worker could not remove it")})
	}
	return &e
}

// farError is an error of a worker.
type farError struct {
	text   string
	causes []error
}

func (e *farError) Error() string   { return e.text }
func (e *farError) Unwrap() []error { return e.causes }

// Text is a text within its bound.
func Text(s string) []byte { return []byte(s[:min(len(s), TEXT)]) }

// names are names within their bound: further ones are left out.
func names(all []string) (out [][]byte) {
	for _, name := range all[:min(len(all), LEFT)] {
		out = append(out, []byte(name[:min(len(name), NAME)]))
	}
	return out
}

// texts are names of a message, on their own. What is no name is left out.
func texts(all [][]byte) (out []string) {
	for _, b := range all {
		if name := strings.Clone(string(b)); vfs.CheckName(name) == nil {
			out = append(out, name)
		}
	}
	return out
}
