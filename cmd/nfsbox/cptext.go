package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/vfs"
)

// counted is a number and what it counts: one text, or one for 1 and one for more, with "|"
// between.
type counted struct {
	n    uint64
	what string
}

// text lists the numbers that are not zero.
func text(all ...counted) string {
	var parts []string
	for _, c := range all {
		what, many, two := strings.Cut(c.what, "|")
		if two && c.n != 1 {
			what = many
		}
		if c.n > 0 {
			parts = append(parts, progress.Count(c.n)+" "+what)
		}
	}
	return strings.Join(parts, ", ")
}

// line is a line of a verdict; one without a text is not printed.
type line struct{ head, text string }

// verdict prints what a task has come to, in words.
func verdict(w io.Writer, lines ...line) {
	for _, l := range lines {
		if l.text != "" {
			// There is nowhere to report an error of stderr.
			_, _ = io.WriteString(w, l.head+l.text+"\n")
		}
	}
}

// items lists what was copied or compared.
func items(files, dirs, symlinks, hardlinks, nodes uint64) string {
	return text(counted{files, "file|files"}, counted{dirs, "directory|directories"}, counted{symlinks, "symbolic link|symbolic links"},
		counted{hardlinks, "hard link|hard links"}, counted{nodes, "special file|special files"})
}

// goneDirs tells of directories that have vanished from the source. Those that are still in it
// are failures as well.
const goneDirs = "directory vanished from the source, with all that was below it|directories vanished from the source, with all that was below them"

// changedDirs tells of directories of the source that changed on and on.
const changedDirs = "directory went on changing, and may have more now|directories went on changing, and may have more now"

// print writes the verdict: what was copied, skipped and verified, what was not copied as it
// stood, what could not be preserved, and how many items have failed.
func (s *cpSummary) print(w io.Writer, failed uint64) {
	copied, deleted, set := "copied: ", "deleted", "of them given its mode or owner again|of them given their mode or owner again"
	if s.Unchanged > 0 {
		set = "of them given its mode, owner or time again|of them given their mode, owner or time again"
	}
	if s.DryRun {
		copied, deleted, set = "would be copied: ", "would be deleted", "of them would get its mode, owner or time|of them would get their mode, owner or time"
	}
	unchanged := "unchanged"
	if s.keeps {
		unchanged = "kept, as it was there already|kept, as they were there already"
	}
	from := ""
	if s.Snapshot != "" {
		copied, from = strings.Replace(copied, "copied", "restored", 1), s.Snapshot
	}
	verdict(w,
		line{"snapshot: ", from},
		line{copied, items(s.Files, s.Dirs, s.Symlinks, s.Hardlinks, s.Nodes)},
		line{"", text(
			counted{s.Skipped, "skipped, as an earlier run had copied it|skipped, as an earlier run had copied them"},
			counted{s.Unchanged, unchanged}, counted{s.Deleted, deleted},
			counted{s.AttrsSet, set}, counted{s.Verified, "verified"},
			counted{s.Vanished, "vanished meanwhile"}, counted{s.DirsGone, goneDirs}, counted{s.Changed, "changed each time it was copied|changed each time they were copied"},
			counted{s.Grew, "grew, and is copied as it was at first|grew, and are copied as they were at first"},
			counted{s.DirsChanged, changedDirs},
			counted{s.LinksSplit, "hard link copied as a file of its own|hard links copied as files of their own"},
		)},
		line{"left out: ", s.words()},
		line{"not preserved: ", text(
			counted{s.OwnersLost, "owner|owners"}, counted{s.SetIDsLost, "file's set-id bits|files' set-id bits"}, counted{s.ModesLost, "mode|modes"},
			counted{s.TimesLost, "object's times|objects' times"}, counted{s.ACLsLost, "access control list|access control lists"},
			counted{s.XattrsLost, "object's extended attributes|objects' extended attributes"},
			counted{s.HolesLost, "file's holes|files' holes"},
		)},
		line{"failed: ", text(counted{failed, "item|items"})},
	)
}

// goOn says how to resume a job that was broken off, or that has left directories unfinished.
func (c *cpCmd) goOn(e *env, sum *cpSummary, err error) {
	if c.DryRun || errors.Is(err, job.ErrEmpty) || errors.Is(err, job.ErrTooMany) {
		return // the same command would come to the same
	}
	broken := interrupted(e) || errors.Is(err, job.ErrSilent) || errors.Is(err, job.ErrFull) || errors.Is(err, job.ErrGone)
	incomplete := sum.NoSpace > 0 || sum.DirsClosed > 0
	if err == nil || !broken && (!incomplete || errors.Is(err, job.ErrIntoItself)) {
		if sum.Errors > 0 && statusFor(err) == exitIncomplete && (c.Job != "" || c.recorded) {
			head := "to try again what has failed"
			if c.saw != nil && c.saw.damaged {
				_, _ = fmt.Fprintln(e.stderr, "nfsbox: the store is damaged, and another restore comes to the same: nfsbox snapshots check --read-data names all that is hurt; "+afterDamage)
				head = "when the store is mended"
			}
			_, _ = fmt.Fprintf(e.stderr, "nfsbox: %s: %s\n", head, e.again(resuming(e.args)))
		}
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
		_, _ = fmt.Fprintf(e.stderr, "nfsbox: to go on from here: %s\n", e.again(resuming(e.args)))
	case c.stateless:
		args := e.args
		if len(c.Places) == 2 {
			args = c.again(args)
		}
		_, _ = fmt.Fprintf(e.stderr, "nfsbox: what has been copied is whole and stays, without a record to go on from, for which there is no place; "+
			"with XDG_STATE_HOME set to a directory that can be written, this makes one, and copies all again, to the same place: %s\n", e.inItsDir(args))
	case len(c.Places) > 2: // --job takes one source
		_, _ = fmt.Fprintf(e.stderr, "nfsbox: what has been copied is whole and stays, without a record to go on from; "+
			"this copies all again, to the same place: %s\n", e.inItsDir(e.args))
	default:
		_, _ = fmt.Fprintf(e.stderr, "nfsbox: what has been copied is whole and stays, without a record to go on from; "+
			"this makes one, and copies all again, to the same place: %s\n", e.inItsDir(c.again(e.args)))
	}
}

// askRoom bounds the question how much room a full destination has. Without an answer nothing is said of it.
const askRoom = 5 * time.Second

// withRoom is err. If that says that DEST is full, how much DEST has free is added, and what to do. The part
// of a large file is removed again, so that there seems to be room.
func (r *cpRun) withRoom(err error) error {
	if !errors.Is(err, job.ErrFull) {
		return err
	}
	ctx, cancel := context.WithTimeout(r.e.ctx, askRoom)
	defer cancel()
	info, ierr := r.to.at.FS.Info(ctx, r.to.at.Handle, vfs.InfoSpace)
	free := ""
	switch {
	case ierr != nil:
	case info.TotalFiles > 0 && info.AvailFiles == 0:
		free = "the file system of DEST has no room for another name (inodes); "
	case errors.Is(err, vfs.ErrNoSpace):
		free = fmt.Sprintf("the file system of DEST has %s free, now that the part of what found no room is removed; ", progress.Size(info.AvailBytes))
	}
	return &advised{err, free + "make room, or raise the user's quota, and run the same command again"}
}

// stays says what happens to temporaries that could not be removed.
func (c *cpCmd) stays(e *env, dest string, n uint64) {
	switch {
	case n == 0:
	case c.Job != "" || c.recorded:
		_, _ = fmt.Fprintf(e.stderr, "nfsbox: temporaries may have stayed in %s: %s; the copy removes them when it goes on\n", progress.Clean(dest), progress.Count(n))
	case c.marked && len(c.Places) == 2:
		_, _ = fmt.Fprintf(e.stderr, "nfsbox: temporaries may have stayed in %s: %s; the same command removes them when it is run again\n", progress.Clean(dest), progress.Count(n))
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
	at := slices.Index(args, c.verb()) + 1
	return slices.Insert(args, at, "--job", "NAME")
}

// resuming returns args without what only the first run needs.
func resuming(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--no-resume" || a == "--other-source" })
}

func lastIndex(all []string, s string) int {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i] == s {
			return i
		}
	}
	return -1
}

// again is the command line that goes on with the copy of args. The user of job resume is in another directory,
// where paths in args mean others.
func (e *env) again(args []string) string {
	all, err := jobStore()
	if err == nil && e.resumes != "" {
		if _, err = all.Find(e.resumes); err == nil {
			return commandLine(e.name, []string{"job", "resume", e.resumes})
		}
	}
	return e.inItsDir(args)
}

// inItsDir is the command line that runs args in the directory of this run.
func (e *env) inItsDir(args []string) string {
	line := commandLine(e.name, args)
	if dir, err := os.Getwd(); e.resumes != "" && err == nil {
		return "cd " + quoteArg(dir) + " && " + line
	}
	return line
}

// commandLine is a command and its arguments, for a shell.
func commandLine(name string, args []string) string {
	words := []string{quoteArg(cmp.Or(name, "nfsbox"))}
	for _, a := range args {
		words = append(words, quoteArg(a))
	}
	return strings.Join(words, " ")
}
