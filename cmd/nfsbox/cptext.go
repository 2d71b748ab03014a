package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// counted is a number and what it counts.
type counted struct {
	n    uint64
	what string
}

// text lists the numbers that are not zero.
func text(all ...counted) string {
	var parts []string
	for _, c := range all {
		if c.n > 0 {
			parts = append(parts, progress.Count(c.n)+" "+c.what)
		}
	}
	return strings.Join(parts, ", ")
}

// goneDirs tells of directories that have vanished from the source. Those that are still in it
// are failures as well.
const goneDirs = "directories vanished from the source, with all that was below them"

// print writes what the line with the totals lacks: what was skipped and verified, what was not
// copied as it stood, and what could not be preserved.
func (s *cpSummary) print(w io.Writer) {
	for _, line := range [...]struct{ head, text string }{
		{"", text(
			counted{s.Skipped, "skipped, as an earlier run had copied them"}, counted{s.AttrsSet, "of them given their mode or owner again"}, counted{s.Verified, "verified"},
			counted{s.Vanished, "vanished meanwhile"}, counted{s.Changed, "changed each time they were copied"},
			counted{s.DirsGone, goneDirs}, counted{s.Grew, "grew, and are copied as they were at first"}, counted{s.LinksSplit, "hard links copied as files of their own"},
		)},
		{"not preserved: ", text(
			counted{s.OwnersLost, "owners"}, counted{s.SetIDsLost, "set-id bits"}, counted{s.ModesLost, "modes"},
			counted{s.TimesLost, "times"}, counted{s.ACLsLost, "access control lists"},
			counted{s.XattrsLost, "objects' extended attributes"},
		)},
	} {
		if line.text != "" {
			// There is nowhere to report an error of stderr.
			_, _ = io.WriteString(w, line.head+line.text+"\n")
		}
	}
}

// goOn says how to resume a job that was broken off, or that has left directories unfinished.
func (c *cpCmd) goOn(e *env, sum *cpSummary, err error) {
	broken := interrupted(e) || errors.Is(err, job.ErrSilent) || errors.Is(err, job.ErrFull) || errors.Is(err, job.ErrGone)
	incomplete := sum.NoSpace > 0 || sum.DirsClosed > 0
	if err == nil || !broken && (!incomplete || errors.Is(err, job.ErrIntoItself)) {
		return
	}
	if !broken && sum.NoSpace > 0 {
		_, _ = fmt.Fprintf(e.stderr, "nfsbox: the destination had no space for %s: make room before the copy goes on\n", text(counted{sum.NoSpace, "of the items"}))
	}
	if sum.DirsClosed > 0 {
		_, _ = fmt.Fprintln(e.stderr, "nfsbox: directories that it has made and not finished are closed to others: they have mode 0700 until the copy goes on")
	}
	switch {
	case c.Job != "" || c.recorded:
		_, _ = fmt.Fprintf(e.stderr, "nfsbox: to go on from here: %s\n", commandLine(e.name, resuming(e.args)))
	case len(c.Places) > 2: // --job takes one source
		_, _ = fmt.Fprintf(e.stderr, "nfsbox: what has been copied is whole and stays, without a record to go on from; "+
			"this copies all again, to the same place: %s\n", commandLine(e.name, e.args))
	default:
		_, _ = fmt.Fprintf(e.stderr, "nfsbox: what has been copied is whole and stays, without a record to go on from; "+
			"this makes one, and copies all again, to the same place: %s\n", commandLine(e.name, c.again(e.args)))
	}
}

// stays says what happens to temporaries that could not be removed.
func (c *cpCmd) stays(e *env, dest string, n uint64) {
	switch {
	case n == 0:
	case c.Job != "" || c.recorded:
		_, _ = fmt.Fprintf(e.stderr, "nfsbox: temporaries may have stayed in %s: %s; the copy removes them when it goes on\n", progress.Clean(dest), progress.Count(n))
	default:
		_, _ = fmt.Fprintf(e.stderr, "nfsbox: temporaries may have stayed in %s: %s; on a host that has the directory, and when nothing is copied into it, "+
			"find DIR -name '.nfsbox-*.tmp*' -delete removes them\n", progress.Clean(dest), progress.Count(n))
	}
}

// again returns arguments that resume the copy of args as a job, to the same place. If args made
// the directory DEST, the new command would copy the source into it under the source's name; so
// it copies the source's contents.
func (c *cpCmd) again(args []string) []string {
	args = slices.Clone(args)
	source, dest := c.Places[0], c.Places[1]
	// From the end, since flags whose values have the same text usually come first.
	to := lastIndex(args, dest)
	if from := lastIndex(args[:max(to, 0)], source); c.madeDest && from >= 0 {
		args[from] = place.ContentsOf(source)
	}
	at := slices.Index(args, "cp") + 1
	return slices.Insert(args, at, "--job", "NAME")
}

// resuming returns args without --no-resume.
func resuming(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--no-resume" })
}

func lastIndex(all []string, s string) int {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i] == s {
			return i
		}
	}
	return -1
}

// commandLine is a command and its arguments, for a shell.
func commandLine(name string, args []string) string {
	words := []string{quoteArg(cmp.Or(name, "nfsbox"))}
	for _, a := range args {
		words = append(words, quoteArg(a))
	}
	return strings.Join(words, " ")
}
