package main

import (
	"errors"

	"github.com/nfsbox/nfsbox/internal/tools/job"
)

type syncCmd struct {
	Source      string  `arg:"" place:"" name:"SOURCE" help:"A directory: a path, nfs://host/export/path or s3://BUCKET/PATH."`
	Dest        string  `arg:"" place:"" name:"DEST" help:"The directory that becomes what SOURCE is; it is made if it does not exist."`
	Checksum    bool    `help:"Compare the contents of files that have the same size, whatever their times."`
	ACLs        bool    `name:"acls" help:"Compare access control lists and extended attributes as well of what is not copied."`
	Delete      bool    `help:"Delete what SOURCE does not have, when all is copied and nothing has failed."`
	FromEmpty   bool    `name:"delete-from-empty" help:"With --delete: also where SOURCE is empty, or has no name that DEST has."`
	MaxDelete   *uint64 `name:"max-delete" placeholder:"N" help:"With --delete: where more than N would be deleted, delete nothing."`
	DryRun      bool    `name:"dry-run" short:"n" help:"Change nothing: say what would be copied, set and deleted."`
	Verify      bool    `help:"Read every copied file back and compare it with what was read."`
	Job         jobName `placeholder:"NAME" help:"Keep a record under this name; the same command, run again, goes on where it ended."`
	Parallel    int     `help:"Files to copy at once; 0 takes what suits the destination."`
	NoOwner     bool    `help:"Leave owners and groups as the destination makes them."`
	OtherSource bool    `name:"other-source" help:"With --job: go on although SOURCE is not the directory any more that it was."`
	NoResume    bool    `name:"no-resume" help:"Use no record of a run of the same command that was interrupted, or is under way."`
	pairFlags
}

func (*syncCmd) Help() string { return syncHelp }

const syncHelp = `Makes the directory DEST what the directory SOURCE is. What is the same in both stays as it is, what
differs is copied as by cp, and what only DEST has stays, unless --delete is given. DEST is the copy
itself, never a directory that receives SOURCE under its own name. It gets the mode, owner and times of
SOURCE, and is made if it does not exist; the directory above it must exist. A SOURCE that is a symbolic
link is refused: SOURCE/ is the directory that it leads to. A DEST that is a link to a directory is that
directory.

Files are the same if they have the same size and time of last change, as far as both sides keep times
(contents are compared where the destination has no such time: NFSv3 has none before 1970 or after 2106);
symbolic links if they lead to the same; devices if they have the same number. Where nothing but the
mode or the owner differs, those are set again and no bytes are copied; of directories, links and
special files so is the time. With --checksum the contents are compared of all files that have the same
size, whatever their times: what a program has changed without a trace in size and time nothing else
finds. With --acls access control lists and extended attributes are compared as well; without it they
are copied with what is copied. Names that are hard links of one object become so, and names that are
not become objects of their own.

With --dry-run nothing is changed, and no trial is made in DEST: what would be copied, set (a mode, an
owner, a time) or deleted is named on stdout, a line each, and counted. Names that would become hard links of one
object count as copies, and where DEST takes two names for one that does not show.

Each directory is listed once on either side, and nothing is asked for a file that is the same: a
million files of which none has changed cost what listing them costs. The exception is a symbolic link,
which is read on both sides. A directory too large to be held is listed several times, within 64 MiB.

With --map-uid and --map-gid, as cp has them, the same owners are those that SOURCE's become.

With --delete, what SOURCE does not have is deleted in the end, directories with all below them. Nothing
is deleted if anything has failed: what could not be read would look as if it were not there. So it is,
and nothing is copied either, where SOURCE is empty, or has none of the first 64 names that DEST lists:
then mostly something is not mounted, or another directory was named. --delete-from-empty says that it
is meant. Where more than --max-delete N objects would be deleted, nothing is, and the number is told.
In all these cases the exit status is 2. Before a name is deleted, it is looked up in SOURCE once more.
A SOURCE that cannot be read any more ends the deletion, and what it has lost since it was listed first
stays. Symbolic links are deleted and not followed, and directories of other file systems that are
mounted in what is deleted stay, and have failed; one of the same file system (mount --bind) looks like
any other. Temporaries of another copy into DEST are deleted, too. Nothing is where SOURCE lies in what
would be. With --one-file-system, what DEST has in directories that are empty in SOURCE, or count as empty, stays.

A directory of DEST whose name is that of a file in SOURCE is replaced with --delete alone, as is a file
by a directory; without it such items have failed. Where DEST takes two names of SOURCE for one, the one
that it has stays, and the other has failed. All else is as with cp, whose help says more: how a file
gets its name when it is complete, what counts as a failure, what cannot be preserved, how SOURCE may be
in use, and when the whole ends early. The exit status is 2 if an item has failed.

An interrupted sync goes on when the same command is run again, as it would in any case: what it has
done is the same by then. As with cp a record is kept until it has ended well, by which the next run
removes the temporaries of one that was killed, and knows files whose times DEST cannot keep. With --job
the record has a name, and stays. SOURCE that is another directory than it was is then refused, with
exit status 4: a file system may not be mounted there. While the same sync is under way, the command is
refused, with status 1, but with --no-resume.

--include, --exclude and --filter-from are rsync's, relative to SOURCE: of all, the first that matches an entry
decides, and what none matches is taken. --files-from lists paths instead, and --failed-to makes such a list of what
has failed. What is left out of SOURCE stays in DEST as it is.

  nfsbox sync nfs://filer/export/home /backup/home
  nfsbox sync --delete --max-delete 1000 nfs://filer/export/home /backup/home
  nfsbox sync -n --delete nfs://filer/export/home /backup/home
  nfsbox sync --checksum nfs://old/export/home nfs://new/export/home`

// Run is a copy with other rules: what is the same stays.
func (c *syncCmd) Run(e *env) error {
	how := &job.SyncOptions{Checksum: c.Checksum, ACLs: c.ACLs}
	if c.Delete {
		how.Delete = &job.DeleteOptions{FromEmpty: c.FromEmpty, Max: c.MaxDelete}
	} else if c.FromEmpty || c.MaxDelete != nil {
		err := refused(errors.New("--delete-from-empty and --max-delete are for --delete"))
		return c.notBegun(e, err, &cpSummary{Summary: job.Summary{Errors: 1}})
	}
	return (&cpCmd{
		Places: []string{c.Source, c.Dest}, Recursive: true, Verify: c.Verify, Job: c.Job, Parallel: c.Parallel, NoOwner: c.NoOwner,
		OtherSource: c.OtherSource, NoResume: c.NoResume, DryRun: c.DryRun, pairFlags: c.pairFlags,
		sync: how, becomes: true,
	}).Run(e)
}

// verb is the command's name.
func (c *cpCmd) verb() string {
	switch {
	case c.restore != nil:
		return "restore"
	case c.sync != nil:
		return "sync"
	}
	return "cp"
}

// does is what the command does, as errors say it.
func (c *cpCmd) does() string {
	if c.sync != nil {
		return c.verb()
	}
	return "copy"
}
