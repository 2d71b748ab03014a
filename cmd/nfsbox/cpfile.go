package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/vfs"
)

// The copy of what is no directory has nothing to go on from. If it is killed, it leaves a
// temporary. So while it runs it keeps a record like that of a directory (unfinished.go), with
// nothing in it but the mark of the temporary. A run that finds the record, and can lock it, knows
// that the run before was killed, and removes the temporary. The record is not synced, which would
// cost more than the copy of a small file: after a loss of power it may be missing.

// markLen is how many digits of the record's nonce mark the temporary.
const markLen = 8

// mark makes or finds the record of the copy of source, which is no directory. Where there can be
// none, or another run has it, it is nil, and the copy is made without.
func (r *cpRun) mark(source string) *unfinished {
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
		return u
	}
	var nonce [16]byte
	r.e.rand(nonce[:])
	u.now = begun{Version: begunVersion, Nonce: hex.EncodeToString(nonce[:]), Source: jobPlace(source), Dest: jobPlace(r.to.Text)}
	text, err := json.Marshal(&u.now)
	if err == nil {
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
		u = r.mark(source)
	}
	if u == nil {
		return job.Copy(r.e.ctx, o)
	}
	o.Tag, o.Sweep = u.now.Nonce[:markLen], u.resumed
	r.attendSoon(u, source) // most copies have ended by the first writing
	s, err := job.Copy(r.e.ctx, o)
	r.marked = s.Left > 0
	// The next run finds one that stays.
	_ = errors.Join(r.leave(u, !r.marked, err), u.close(!r.marked))
	return s, err
}
