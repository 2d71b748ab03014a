package main

import (
	"errors"
	"io/fs"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
)

// causes is a renderer that notes of which kinds the failures of a task were, for what is said once at its end.
type causes struct {
	damaged bool // an object of a store
	denied  bool // something may not be read
}

// Interval implements progress.Renderer.
func (*causes) Interval() time.Duration { return time.Hour }

// Progress implements progress.Renderer.
func (*causes) Progress(*progress.Snapshot) error { return nil }

// Summary implements progress.Renderer.
func (*causes) Summary(*progress.Snapshot, any) error { return nil }

// Event implements progress.Renderer.
func (c *causes) Event(_ time.Time, e *progress.Event) error {
	if e.Type == "error" {
		c.damaged = c.damaged || errors.Is(e.Err, snapshot.ErrDamaged)
		c.denied = c.denied || errors.Is(e.Err, fs.ErrPermission)
	}
	return nil
}

// afterDamage says what can be done about a damaged store, of which check has named what is hurt.
const afterDamage = "nfsbox backup --verify mends what its tree still has; then forget the snapshots that remain hurt (nfsbox snapshots forget STORE NAME@ID)"
