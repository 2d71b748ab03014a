package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

func (*backupCmd) Help() string { return backupHelp }

const backupHelp = `Takes a snapshot of the directory PLACE, and keeps it in STORE. A snapshot is looked at, copied out of and
compared like any other place, as STORE::NAME for the newest one of that name.

The newest complete snapshot of NAME is the base: a file is read only if it is not in that, or if its size,
its times of change (mtime, ctime) or its file id are others. What is the same costs the listing of its
directory, and nothing else. The summary counts why files were read: "new"; "size", "mtime", "ctime",
"fileid"; "recent", if a change just before the base was taken may have left no trace; "changed", if it
changed while the base read it; "damaged", if the base cannot be used; "links", if an object's names had
different contents in the base. --change leaves differences out for
servers whose ctimes or file ids wander: --change=size,mtime. Another size always counts. A base of another
source is told; of that all four count.

Kept are files with their holes, directories, symbolic links, devices, pipes and sockets under all of their
names, as bytes; modes, owners and times; access control lists; of a local PLACE extended attributes. What an
earlier snapshot could not see of a file, as that was taken over NFS, or not by root, is asked for.

PLACE may be in use. A file that changes while it is read is read again; one that changes each time is kept
as it was read, marked and counted, and read again the next time. What vanishes before its turn is noted. An
item that fails is listed, the exit status is 2, and the snapshot is incomplete: it is kept, says so
wherever it is shown, and is no base of the next.

Where there is nothing in PLACE, or flags leave all of it out, and the snapshot before has something, no
snapshot is made, and the exit status is 2: then mostly something is not mounted. --delete-from-empty says
that it is meant.

STORE is made if there is none, which is told: an empty directory, or one that is not there in one that is.
--existing refuses to, so that nothing is written where a disk is not mounted. What several files or
snapshots have in common is stored once. What zstd makes a tenth smaller is stored so, unless --plain is given.
A STORE that lies in PLACE is left out, also where one of the two is named by nfs://.

A backup that is interrupted, or loses its server, goes on when the same command is run again, also from another
host: what was done by then is in STORE, noted each 128 MiB and at the end. The exit status is then 130. What of
it has changed since is read again. So does one that follows an incomplete snapshot.

NAME is made of the host and the last two parts of PLACE's path, if it is not given: lower-case, with '-' for
what a name cannot have. If that is too long, its beginning is cut off. One NAME is for one tree.

With --verify all that the snapshot needs is read back from STORE, each object once, also what unchanged
files rely on. An object that is missing there, or has other bytes, is mended if PLACE still has what was
in it: the file is read again, and stored again in the place of what was damaged. Of a pack of small files
that is damaged all files are read again, and go into another pack; the damaged one stays for older
snapshots. What cannot be mended is listed, with its files, and the exit status is 3.

Small files share packs. Where less than half of a pack is needed any more, what is needed is copied within
STORE to another pack, of which the summary counts the files: PLACE is not read for it. The old pack goes with
the snapshots that need it, by "snapshots forget" and "snapshots prune". One backup copies 256 MiB, or a
sixteenth of what is in packs if that is more; the next goes on.

With --dry-run no file is read, and nothing is stored or made: the files that would be read are listed, each
with the reason.

--include, --exclude and --filter-from are rsync's, relative to PLACE: of all, the first that matches an entry
decides, and what none matches is taken. --files-from lists paths instead. Directories in which servers show
snapshots (.snapshot, ~snapshot, .zfs, .ckpt) are left out, and counted, unless --snapshots is given.

  nfsbox backup nfs://filer/export/home /backup
  nfsbox backup --name home --tag daily --verify /home nfs://nas/backup/store
  nfsbox backup -n nfs://filer/export/home /backup
  nfsbox backup --change size,mtime --exclude '*.tmp' nfs://old/export /backup`

// backupEndings are the statuses of backup.
func backupEndings() []ending {
	return []ending{
		{exitOK, "the snapshot is complete, and with --verify is what was stored"},
		{exitUsage, "the arguments are wrong, or STORE has something else in it; nothing was stored"},
		{exitIncomplete, "items have failed, and are listed: the snapshot is incomplete; or there is none, as where another process uses STORE"},
		{exitDiffers, "the snapshot is complete, but STORE does not have what was stored"},
		{exitUnreachable, "a server or STORE cannot be reached; with --existing: there is no store"}, {exitInterrupted, whySignal},
	}
}

// whys are the reasons why files are read, in the order in which they are shown, and what they say.
var whys = [...][2]string{
	{"new", "new"}, {"size", "of another size"}, {"mtime", "modified"}, {"ctime", "changed"}, {"fileid", "of another file id"},
	{"recent", "changed just before the base was taken"}, {"changed", "changed while the base read them"}, {"damaged", "damaged in the base"},
	{"links", "names of one object that the base has different contents of"},
}

// print writes the verdict.
func (s *backupSummary) print(w io.Writer, name string) {
	head, read, packed := "backed up: ", "read: ", "packed anew: "
	if s.DryRun {
		head, read, packed = "would be backed up: ", "would be read: ", "would be packed anew: "
	}
	state := ""
	if !s.Complete {
		state = " (incomplete: something has failed, and is listed above)"
	}
	if s.Snapshot != "" {
		verdict(w, line{"snapshot: ", s.Snapshot + state})
	} else if !s.DryRun {
		verdict(w, line{"no snapshot: ", "the backup of " + name + " was not finished"})
	}
	verdict(w,
		line{"base: ", s.Base},
		line{head, items(s.Files, s.Dirs, s.Symlinks, 0, s.Nodes)},
		line{read, s.readText()},
		line{"", text(counted{s.Resumed, "not read again, as the backup before had stored it|not read again, as the backup before had stored them"})},
		line{packed, s.repackedText()},
		line{"stored: ", s.storedText()},
		line{"read back: ", s.verifiedText()},
		line{"mended: ", text(counted{s.Mended, "object of the store that was missing or damaged|objects of the store that were missing or damaged"})},
		line{"different: ", text(counted{s.Differences, "file or other object that the store does not have as it was stored|files or other objects that the store does not have as they were stored"})},
		line{"", text(
			counted{s.Vanished, "vanished meanwhile"},
			counted{s.DirsChanged, changedDirs},
			counted{s.Changed, "changed each time it was read, and is marked|changed each time they were read, and are marked"},
			counted{s.Damaged, "object of an earlier snapshot that could not be used|objects of earlier snapshots that could not be used"},
		)},
		line{"left out: ", s.words()},
		line{"failed: ", text(counted{s.Errors, "item|items"})},
	)
}

// readText says how many files were read, how fast, and why.
func (s *backupSummary) readText() string {
	if s.Read == 0 {
		return ""
	}
	t := fmt.Sprintf("%s of %s", text(counted{s.Read, "file|files"}), progress.Size(s.ReadBytes))
	if !s.DryRun && s.Seconds > 0 {
		t += fmt.Sprintf(" in %.1f s (%s/s)", s.Seconds, progress.Size(uint64(float64(s.ReadBytes)/s.Seconds)))
	}
	var why []string
	for _, x := range whys {
		if n := s.Why[x[0]]; n > 0 {
			why = append(why, progress.Count(n)+" "+x[1])
		}
	}
	return t + ": " + strings.Join(why, ", ")
}

func (s *backupSummary) repackedText() string {
	if s.Repacked == 0 {
		return ""
	}
	return text(counted{s.Repacked, "file|files"}) + " of " + progress.Size(s.RepackedBytes) + " in packs of which most is in no use"
}

func (s *backupSummary) verifiedText() string {
	if s.Verified == 0 {
		return ""
	}
	return text(counted{s.Verified, "object|objects"}) + " of " + progress.Size(s.VerifiedBytes)
}

func (s *backupSummary) storedText() string {
	if s.DryRun || s.Stored+s.Had == 0 {
		return ""
	}
	t := progress.Size(uint64(s.Stored))
	if s.Had > 0 {
		t += ", and " + progress.Size(uint64(s.Had)) + " that the store had"
	}
	return t
}
