package nfsbox

import (
	"context"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/nfsclient"
)

// Step is the result of one step of Diagnose.
type Step struct {
	// Name is "resolve", "portmap", "connect", "mount" (the service; again after "nfs",
	// the directory), "nfs", "fsinfo", "getattr" (of the directory, with the caller's
	// rights there), "lookup" (of what the URL names in it), "list", "local I/O", "read",
	// "clock" (which "write" finds out on its way) or "write".
	Name    string
	Detail  string        // what was found, in one or several lines, without Err
	Advice  string        // what to do about Err, or about something unusual; else ""
	Err     error         // why the step failed
	Took    time.Duration // of the step
	Skipped bool          // it was not tried; Detail says why
}

// DiagnoseOptions say what Diagnose tries besides looking around.
type DiagnoseOptions struct {
	Read  bool // read up to 1 MiB of the URL's file, or of one in its directory
	Write bool // make a file, write 1 MiB, make it stable, read it back, and remove the file
}

// Diagnose repeats the steps of Dial, and the first steps of a program after it, one by one:
// name, ports, MOUNT, NFS, limits, rights, the URL's object, a listing, local I/O, and what o
// asks for. It calls report after each step, from the calling goroutine. Every failed step has
// advice. Diagnose goes on as long as later steps can succeed. The error is that of the step
// without which nothing works, or those of the failed steps after it. If the URL's object does
// not exist in its directory, which Dial permits, that is a failure here. When ctx is
// cancelled, the current step is Skipped and is the last.
//
// Each step takes 15 seconds at most. Text from the server (names, paths, lists of hosts) is
// in Detail and Advice unchanged.
func Diagnose(ctx context.Context, rawURL string, o DiagnoseOptions, report func(Step), opts ...Option) error {
	c, err := options(rawURL, opts)
	if err != nil {
		return err
	}
	return nfsclient.Diagnose(ctx, c.Options, nfsclient.DiagnoseOptions{Read: o.Read, Write: o.Write, LocalIO: c.diagnose}, func(s nfsclient.Step) { report(Step(s)) })
}
