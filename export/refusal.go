package export

import (
	"errors"
	"net/netip"

	"github.com/nfsbox/nfsbox/vfs"
)

// Reason says why the rules of an export have refused a call.
type Reason uint8

// The reasons.
const (
	// NoRule: no rule of the export matches the client.
	NoRule Reason = iota + 1
	// InsecurePort: the rule is Secure, and the client's port is not below 1024, or not known.
	InsecurePort
	// ReadOnlyRule: the rule is ReadOnly, and the call would change something.
	ReadOnlyRule
	// ReadOnlyExport is the same of the export, whatever its rules say.
	ReadOnlyExport
)

var reasons = [...]string{
	NoRule: "no rule matches the client", InsecurePort: "the rule is secure, and the client's port is not below 1024",
	ReadOnlyRule: "the rule is read-only", ReadOnlyExport: "the export is read-only",
}

// String returns the reason in words.
func (r Reason) String() string {
	if r > 0 && int(r) < len(reasons) {
		return reasons[r]
	}
	return "unknown"
}

// Refusal is a call that was refused by a rule, or for want of one. What the file system
// refuses, such as by the mode of a file, is none.
type Refusal struct {
	Export string         // its path
	Path   string         // what Mount was asked for; "": the call had a handle
	Client netip.AddrPort // not valid: it has no address; port 0: not known
	User   *uint32        // as Origin.User has it
	UID    uint32         // what the caller's credential says
	HasUID bool           // UID is known
	Rule   string         // Match of the rule that decided; "": none matches, or the export has none
	Why    Reason
}

// refusedError is what Mount returns of a refusal that Options.Refused was told of.
type refusedError struct{ vfs.Status }

func (e refusedError) Unwrap() error { return e.Status }

// Told reports whether Mount's error is a refusal that [Options].Refused was told of.
func Told(err error) bool {
	_, ok := errors.AsType[refusedError](err)
	return ok
}

// refuse tells Options.Refused that the rules have refused a call, and reports whether
// there is one. Rules and exports say why: s was judged by them.
func (v *View) refuse(s *seen, why Reason, path string) bool {
	if v.t.refused == nil || why == 0 {
		return false
	}
	r := Refusal{
		Export: s.e.Path, Path: path, Client: netip.AddrPortFrom(v.origin.addr, v.origin.port), User: v.origin.user, Why: why,
	}
	if s.rule != nil {
		r.Rule = s.rule.Match
	}
	if v.caller != nil && v.caller.UID != Anonymous {
		r.UID, r.HasUID = v.caller.UID, true
	}
	v.t.refused(r)
	return true
}

// rofs is vfs.ErrROFS, which Options.Refused is told of.
func (v *View) rofs(s *seen) error {
	why := ReadOnlyRule
	if s.e.ReadOnly {
		why = ReadOnlyExport
	}
	v.refuse(s, why, "")
	return vfs.ErrROFS
}
