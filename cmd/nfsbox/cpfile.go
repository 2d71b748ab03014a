package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/jobs"
	"github.com/nfsbox/nfsbox/vfs"
)

// The copy of what is no directory leaves a temporary if it is killed, and has nothing to go on from but
// the part of a large file. So while it runs it keeps a record like that of a directory (unfinished.go), with
// nothing in it but the mark of the temporary, and that part. A run that finds the record, and can lock it,
// knows that the run before was killed, and goes on, or removes the temporary. The record is not synced,
// which would cost more than the copy of a small file: after a loss of power it may be missing. That of a
// large file is synced.

// markLen is how many digits of the record's nonce mark the temporary.
const markLen = 8

// mark makes or finds the record of the copy of source, which is no directory. Where there can be
// none, or another run has it, it is nil, and the copy is made without.
func (r *cpRun) mark(source string, large bool) *unfinished {
	if r.Job != "" || r.DryRun || !job.Locks {
		return nil
	}
	name, err := r.recordName(source, r.to.Text)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(r.e.ctx)
	cancel() // another run is not waited for
	u, err := openNamed(ctx, name+"-file", true)
	if err != nil {
		return nil
	}
	if u.was != nil {
		u.now, u.resumed = *u.was, true
		if r.NoResume {
			_ = u.dir.Remove(job.PartsFile) // then its temporary is removed
		}
		return u
	}
	var nonce [16]byte
	r.e.rand(nonce[:])
	u.now = begun{Version: begunVersion, Nonce: hex.EncodeToString(nonce[:]), Source: jobPlace(source), Dest: jobPlace(r.to.Text)}
	text, err := json.Marshal(&u.now)
	if large {
		err = errors.Join(err, jobs.WriteSynced(u.dir, begunFile, string(text)+"\n"))
	} else if err == nil {
		err = u.dir.WriteFile(begunFile, append(text, '\n'), 0o600)
	}
	if err != nil {
		_ = u.close(true) // the copy is made without
		return nil
	}
	return u
}

// copy is job.Copy, and removes the temporary of a run that was killed.
func (r *cpRun) copy(source string, from *vfs.Attr, o job.CopyOptions) (job.Summary, error) {
	var u *unfinished
	if from.Type != vfs.TypeDir {
		u = r.mark(source, from.Size > job.DefaultLarge)
	}
	if u == nil {
		return job.Copy(r.e.ctx, o)
	}
	o.Tag, o.Sweep, o.Parts = u.now.Nonce[:markLen], u.resumed, u.dir
	r.attendSoon(u, source) // most copies have ended by the first writing
	s, err := job.Copy(r.e.ctx, o)
	r.marked, r.recorded = s.Left > 0, s.Kept > 0
	// The next run finds what stays.
	goes := !r.marked && !r.recorded
	_ = errors.Join(r.leave(u, goes, err), u.close(goes))
	return s, err
}
