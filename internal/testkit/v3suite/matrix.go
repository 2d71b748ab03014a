package v3suite

import (
	"slices"
	"strings"

	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// pair is a procedure and one of the statuses that it may answer.
type pair struct {
	proc   string // "LOOKUP"
	status nfs3.Nfsstat3
}

func (p pair) String() string { return p.proc + " " + p.status.String() }

// row is the statuses of one procedure, without the NFS3ERR_ of their names.
type row struct{ proc, statuses string }

// rfc is what sections 3.3.0 to 3.3.21 of RFC 1813 list as the errors of each
// procedure.
var rfc = []row{
	{"NULL", ""},
	{"GETATTR", "IO STALE BADHANDLE SERVERFAULT"},
	{"SETATTR", "PERM IO ACCES INVAL NOSPC ROFS DQUOT NOT_SYNC STALE BADHANDLE SERVERFAULT"},
	{"LOOKUP", "IO NOENT ACCES NOTDIR NAMETOOLONG STALE BADHANDLE SERVERFAULT"},
	{"ACCESS", "IO STALE BADHANDLE SERVERFAULT"},
	{"READLINK", "IO INVAL ACCES STALE BADHANDLE NOTSUPP SERVERFAULT"},
	{"READ", "IO NXIO ACCES INVAL STALE BADHANDLE SERVERFAULT"},
	{"WRITE", "IO ACCES FBIG DQUOT NOSPC ROFS INVAL STALE BADHANDLE SERVERFAULT"},
	{"CREATE", "IO ACCES EXIST NOTDIR NOSPC ROFS NAMETOOLONG DQUOT STALE BADHANDLE NOTSUPP SERVERFAULT"},
	{"MKDIR", "IO ACCES EXIST NOTDIR NOSPC ROFS NAMETOOLONG DQUOT STALE BADHANDLE NOTSUPP SERVERFAULT"},
	{"SYMLINK", "IO ACCES EXIST NOTDIR NOSPC ROFS NAMETOOLONG DQUOT STALE BADHANDLE NOTSUPP SERVERFAULT"},
	{"MKNOD", "IO ACCES EXIST NOTDIR NOSPC ROFS NAMETOOLONG DQUOT STALE BADHANDLE NOTSUPP SERVERFAULT BADTYPE"},
	{"REMOVE", "NOENT IO ACCES NOTDIR NAMETOOLONG ROFS STALE BADHANDLE SERVERFAULT"},
	{"RMDIR", "NOENT IO ACCES INVAL EXIST NOTDIR NAMETOOLONG ROFS NOTEMPTY STALE BADHANDLE NOTSUPP SERVERFAULT"},
	{"RENAME", "NOENT IO ACCES EXIST XDEV NOTDIR ISDIR INVAL NOSPC ROFS MLINK NAMETOOLONG NOTEMPTY DQUOT STALE BADHANDLE NOTSUPP SERVERFAULT"},
	{"LINK", "IO ACCES EXIST XDEV NOTDIR INVAL NOSPC ROFS MLINK NAMETOOLONG DQUOT STALE BADHANDLE NOTSUPP SERVERFAULT"},
	{"READDIR", "IO ACCES NOTDIR BAD_COOKIE TOOSMALL STALE BADHANDLE SERVERFAULT"},
	{"READDIRPLUS", "IO ACCES NOTDIR BAD_COOKIE TOOSMALL STALE BADHANDLE NOTSUPP SERVERFAULT"},
	{"FSSTAT", "IO STALE BADHANDLE SERVERFAULT"},
	{"FSINFO", "STALE BADHANDLE SERVERFAULT"},
	{"PATHCONF", "STALE BADHANDLE SERVERFAULT"},
	{"COMMIT", "IO STALE BADHANDLE SERVERFAULT"},
}

// covered is what the suite provokes. Where the RFC leaves a choice of statuses,
// each of them is here.
var covered = []row{
	{"NULL", ""},
	{"GETATTR", "STALE BADHANDLE"},
	{"SETATTR", "PERM ACCES INVAL ROFS NOT_SYNC STALE BADHANDLE"},
	{"LOOKUP", "NOENT ACCES NOTDIR NAMETOOLONG STALE BADHANDLE"},
	{"ACCESS", "STALE BADHANDLE"},
	{"READLINK", "INVAL STALE BADHANDLE"},
	{"READ", "ACCES INVAL STALE BADHANDLE"},
	{"WRITE", "ACCES FBIG NOSPC ROFS INVAL STALE BADHANDLE"},
	{"CREATE", "ACCES EXIST NOTDIR ROFS NAMETOOLONG STALE BADHANDLE"},
	{"MKDIR", "ACCES EXIST NOTDIR ROFS NAMETOOLONG STALE BADHANDLE"},
	{"SYMLINK", "ACCES EXIST NOTDIR ROFS NAMETOOLONG STALE BADHANDLE"},
	{"MKNOD", "ACCES EXIST NOTDIR ROFS NAMETOOLONG STALE BADHANDLE BADTYPE"},
	{"REMOVE", "NOENT ACCES NOTDIR NAMETOOLONG ROFS STALE BADHANDLE"},
	{"RMDIR", "NOENT ACCES INVAL EXIST NOTDIR NAMETOOLONG ROFS NOTEMPTY STALE BADHANDLE"},
	{"RENAME", "NOENT ACCES EXIST XDEV NOTDIR ISDIR INVAL ROFS NAMETOOLONG NOTEMPTY STALE BADHANDLE"},
	{"LINK", "ACCES EXIST XDEV NOTDIR INVAL ROFS NAMETOOLONG STALE BADHANDLE"},
	{"READDIR", "ACCES NOTDIR BAD_COOKIE TOOSMALL STALE BADHANDLE"},
	{"READDIRPLUS", "ACCES NOTDIR BAD_COOKIE TOOSMALL STALE BADHANDLE"},
	{"FSSTAT", "STALE BADHANDLE"},
	{"FSINFO", "STALE BADHANDLE"},
	{"PATHCONF", "STALE BADHANDLE"},
	{"COMMIT", "STALE BADHANDLE"},
}

// exempt is why a status is not provoked, whatever the procedure.
var exempt = map[nfs3.Nfsstat3]string{
	nfs3.NFS3ERR_IO:          "the disk fails when it fails; sim's disks make ours fail",
	nfs3.NFS3ERR_SERVERFAULT: "it stands for faults of the server that nobody knows beforehand",
	nfs3.NFS3ERR_DQUOT:       "quotas are set up by an administrator, on some file systems",
	nfs3.NFS3ERR_NOTSUPP:     "a server that has the operation never answers it, and all that we know have all",
	nfs3.NFS3ERR_NOSPC:       "filled up with data a file system has room for names; only WRITE meets it for certain",
	nfs3.NFS3ERR_MLINK:       "file systems allow from 65,000 links to 4 billion; tried only where PATHCONF says at most 1,024",
	nfs3.NFS3ERR_NXIO:        "it wants a device without a driver, and READ of a device is INVAL before",
}

// exemptPairs are single ones, with their reasons.
var exemptPairs = map[pair]string{
	{"READLINK", nfs3.NFS3ERR_ACCES}: "symbolic links have no rights of their own",
}

// Statuses that RFC 1813 defines in section 2.6 and lists for no procedure:
// NODEV and REMOTE are remains of version 2; JUKEBOX means "later" for any
// procedure, and is what env.call waits out.

// expand makes pairs of rows. Statuses are found by their names.
func expand(rows []row) []pair {
	var all []pair
	for _, r := range rows {
		for name := range strings.FieldsSeq(r.statuses) {
			all = append(all, pair{r.proc, statusNamed(name)})
		}
	}
	return all
}

// statuses are all of section 2.6.
var statuses = []nfs3.Nfsstat3{
	nfs3.NFS3_OK, nfs3.NFS3ERR_PERM, nfs3.NFS3ERR_NOENT, nfs3.NFS3ERR_IO, nfs3.NFS3ERR_NXIO,
	nfs3.NFS3ERR_ACCES, nfs3.NFS3ERR_EXIST, nfs3.NFS3ERR_XDEV, nfs3.NFS3ERR_NODEV,
	nfs3.NFS3ERR_NOTDIR, nfs3.NFS3ERR_ISDIR, nfs3.NFS3ERR_INVAL, nfs3.NFS3ERR_FBIG,
	nfs3.NFS3ERR_NOSPC, nfs3.NFS3ERR_ROFS, nfs3.NFS3ERR_MLINK, nfs3.NFS3ERR_NAMETOOLONG,
	nfs3.NFS3ERR_NOTEMPTY, nfs3.NFS3ERR_DQUOT, nfs3.NFS3ERR_STALE, nfs3.NFS3ERR_REMOTE,
	nfs3.NFS3ERR_BADHANDLE, nfs3.NFS3ERR_NOT_SYNC, nfs3.NFS3ERR_BAD_COOKIE,
	nfs3.NFS3ERR_NOTSUPP, nfs3.NFS3ERR_TOOSMALL, nfs3.NFS3ERR_SERVERFAULT,
	nfs3.NFS3ERR_BADTYPE, nfs3.NFS3ERR_JUKEBOX,
}

func statusNamed(name string) nfs3.Nfsstat3 {
	i := slices.IndexFunc(statuses, func(s nfs3.Nfsstat3) bool { return s.String() == "NFS3ERR_"+name })
	if i < 0 {
		return -1 // no status; the test of the matrix fails on it
	}
	return statuses[i]
}

// provoked are the pairs that a run without skips must show, and the success of
// every procedure with them.
func provoked() []pair {
	all := expand(covered)
	for _, r := range covered {
		if r.proc != "NULL" {
			all = append(all, pair{r.proc, nfs3.NFS3_OK})
		}
	}
	return all
}
