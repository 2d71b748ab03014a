package upkeep

import (
	"context"
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
)

// StatsOptions say of which snapshots the numbers are.
type StatsOptions struct {
	Name     string            // those of one name, and what backups have left of it; "" is all
	Only     *snapshot.Ref     // this one alone; nil: Name says which
	Progress *progress.Tracker // nil: no reports. Files are names that were gone through.
	// Failed is called for what cannot be read: a snapshot, or the key of something else. It is left out of the numbers, as far as it was not
	// read.
	Failed func(what string, err error)
}

// StatsSummary is how much snapshots have, and what they need of their store.
type StatsSummary struct {
	Snapshots uint64 `json:"snapshots"` // complete or not
	Partials  uint64 `json:"partials"`  // left by backups that were stopped
	Trees     uint64 `json:"trees"`     // different names of snapshots
	Names     uint64 `json:"names"`     // gone through, in all snapshots
	// RestoreBytes is the size of all files in all snapshots, as their backups have counted: each name of a file counts, and holes do.
	RestoreBytes uint64 `json:"restore_bytes"`

	Objects   uint64 `json:"objects"` // different ones that the snapshots need, without their roots
	Bytes     uint64 `json:"bytes"`   // of these, as they are stored
	Packs     uint64 `json:"packs"`   // of these objects, those that files share
	PackBytes uint64 `json:"pack_bytes"`

	// Unused is what no snapshot needs; nil if not all snapshots of the store were gone through.
	Unused      *uint64 `json:"unused_objects,omitempty"`
	UnusedBytes *uint64 `json:"unused_bytes,omitempty"`

	Missing uint64 `json:"missing_objects"` // that are needed, and not there
}

// Stats goes through the manifests of snapshots, and counts what they have and what they need. No file is read. What is damaged is no
// error: see StatsOptions.Failed.
func Stats(ctx context.Context, store object.Store, o StatsOptions) (sum StatsSummary, err error) {
	s := &stats{store: store, o: &o, sum: &sum, failed: make(map[string]bool)}
	if err := s.list(ctx); err != nil {
		return sum, err
	}
	err = s.objects(ctx, roundObjects)
	if err == nil && o.Name == "" && o.Only == nil && !s.part {
		sum.Unused, sum.UnusedBytes = &s.unused, &s.unusedBytes
	}
	return sum, err
}

// stats is a Stats under way.
type stats struct {
	store  object.Store
	o      *StatsOptions
	sum    *StatsSummary
	roots  []snapshot.Ref
	failed map[string]bool // snapshots that were told
	part   bool            // something could not be read
	tree   string          // the name that was counted last

	unused, unusedBytes uint64
}

// fails tells of what cannot be read.
func (s *stats) fails(what string, err error) {
	s.part = true
	s.o.Failed(what, err)
}

// list lists the roots.
func (s *stats) list(ctx context.Context) error {
	if s.o.Only != nil {
		s.roots = []snapshot.Ref{*s.o.Only}
		return nil
	}
	for r, err := range snapshot.EachRoot(ctx, s.store, s.o.Name) {
		damage, junk := errors.AsType[*snapshot.DamagedError](err)
		switch {
		case junk:
			s.fails(damage.Key, err)
		case err != nil:
			return err
		case len(s.roots) == maxRoots:
			return fmt.Errorf("the store has more than %d snapshots: name one", maxRoots)
		default:
			s.roots = append(s.roots, r)
		}
	}
	if s.o.Name != "" && len(s.roots) == 0 && !s.part {
		return fmt.Errorf("%s: %w", s.o.Name, snapshot.ErrNoSnapshot)
	}
	return nil
}

// packed is the size of a need of a range: below that of what is an object of its own, so that it stays when the two are merged.
const packed = unneeded - 1

// objects compares what the snapshots need with what the store lists, in rounds of so many needs at most.
func (s *stats) objects(ctx context.Context, most int) error {
	needs := newNeeds(most)
	all := &listing{store: s.store, around: s.fails}
	for first := true; first || needs.next(); first = false {
		for i := range s.roots {
			if err := s.snapshot(ctx, &s.roots[i], needs, first); err != nil {
				return err
			}
		}
		needs.sort()
		if err := all.join(ctx, needs, s.have, s.lack); err != nil {
			return err
		}
	}
	return nil
}

// snapshot collects what one snapshot needs. first has it counted.
func (s *stats) snapshot(ctx context.Context, r *snapshot.Ref, needs *round[need], first bool) error {
	open, err := snapshot.Open(ctx, s.store, *r)
	if errors.Is(err, object.ErrNotExist) {
		return nil // it was forgotten, or its backup is done
	}
	var names uint64
	if err == nil {
		names, err = open.Uses(ctx, snapshot.UsesOptions{Use: func(u *snapshot.Use, _ *snapshot.Site) error {
			size := int64(packed)
			if u.Whole {
				size = unneeded
			}
			needs.add(need{u.Sum, size})
			return nil
		}})
	}
	if cerr := ctx.Err(); cerr != nil {
		return cerr
	}
	if err != nil && !snapshot.IsOwn(err) {
		return fmt.Errorf("%s: %w", r.Text(), err)
	}
	if err != nil && !s.failed[r.Text()] { // or in an earlier round
		s.failed[r.Text()] = true
		s.fails(r.Text(), err)
	}
	if first && open != nil {
		s.count(open, names)
	}
	return nil
}

// count counts a snapshot. Those of one name follow each other, and what backups have left comes behind them.
func (s *stats) count(open *snapshot.Snapshot, names uint64) {
	ref := open.Ref()
	s.sum.Names += names
	s.sum.RestoreBytes += ref.Counts["bytes"]
	s.o.Progress.Add(progress.Files, names)
	if ref.Partial {
		s.sum.Partials++
		return
	}
	s.sum.Snapshots++
	if ref.Name != s.tree {
		s.sum.Trees++
		s.tree = ref.Name
	}
}

// have counts an object of the store.
func (s *stats) have(info *object.Info, n *need) error {
	size := uint64(info.Size)
	if n == nil {
		s.unused++
		s.unusedBytes += size
		return nil
	}
	s.sum.Objects++
	s.sum.Bytes += size
	if n.size <= packed {
		s.sum.Packs++
		s.sum.PackBytes += size
	}
	return nil
}

// lack counts an object that is needed, and not there.
func (s *stats) lack(*need) error {
	s.sum.Missing++
	return nil
}
