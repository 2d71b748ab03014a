package nfsbox

import (
	"context"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/nfsclient"
)

// Step is one thing that Diagnose has tried.
type Step struct {
	// Name is "resolve", "portmap", "connect", "mount" (the service, then, behind
	// "nfs", the directory), "nfs", "fsinfo", "getattr" (of the directory, with
	// what the caller may do there), "lookup" (of what the URL names in it),
	// "list", "local I/O" (whether the network can be left out), "read", "clock"
	// (which "write" finds out on its way) or "write".
	Name    string
	Detail  string        // what was found, in one line or several; what Err says is not in it
	Advice  string        // what to do about Err, or about something odd; else ""
	Err     error         // why the step failed
	Took    time.Duration // of the step
	Skipped bool          // it was not tried; Detail says why
}

// DiagnoseOptions say what Diagnose tries besides looking.
type DiagnoseOptions struct {
	Read  bool // read up to 1 MiB of the URL's file, or of one in its directory
	Write bool // make a file, write 1 MiB, make it stable, read it back, and remove the file
}

// Diagnose goes the way that Dial goes, and the first steps of a program behind
// it, one by one: name, ports, MOUNT, NFS, limits, rights, what the URL names, a
// listing, local I/O, and what o asks for. It calls report after each step, from the calling
// goroutine. Every step that fails carries advice. It goes on as long as there is
// sense in it; the error is that of the step without which nothing works, or
// those of the steps that failed behind it. That what the URL names does not
// exist in its directory, which Dial does not mind, is such a failure. A step that
// is cut off because ctx was cancelled is Skipped, and is the last.
//
// Each step takes 15 seconds at most. Text from the server (names, paths, lists
// of hosts) is in Detail and Advice as it came.
func Diagnose(ctx context.Context, rawURL string, o DiagnoseOptions, report func(Step), opts ...Option) error {
	c, err := options(rawURL, opts)
	if err != nil {
		return err
	}
	return nfsclient.Diagnose(ctx, c.Options, nfsclient.DiagnoseOptions{Read: o.Read, Write: o.Write, LocalIO: c.diagnose}, func(s nfsclient.Step) { report(Step(s)) })
}
