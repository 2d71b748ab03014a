package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/internal/tools/hands/wire"
	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// maxSwept is of how many attempts before this one temporaries are looked for.
const maxSwept = 64

// spot is where a batch is worked at.
type spot struct {
	src, dst vfs.Handle // directories
	tag      string     // of the batch's temporaries, behind the job's
}

// find finds the directories of a batch. What earlier attempts have left there is removed.
func (r *run) find(ctx context.Context, id uint64, b *wire.Batch, attempt uint32) (s spot, err error) {
	if b.Work != wire.REMOVE {
		if r.src == nil {
			return s, errors.New("the job has no source")
		}
		if s.src, err = r.src.dir(ctx, b.Path, &b.Source); err != nil {
			return s, fmt.Errorf("source: %w", err)
		}
	}
	if s.dst, err = r.dst.dir(ctx, b.Path, &b.Destination); err != nil {
		return s, fmt.Errorf("destination: %w", err)
	}
	s.tag = tag(id, attempt)
	if b.Work == wire.COPY && attempt > 1 {
		err = r.sweep(ctx, s.dst, id, attempt)
	}
	return s, err
}

// tag marks the temporaries of an attempt at a batch.
func tag(id uint64, attempt uint32) string { return fmt.Sprintf("%x-%x-", id, attempt) }

// sweep removes the temporaries of earlier attempts.
func (r *run) sweep(ctx context.Context, dir vfs.Handle, id uint64, attempt uint32) error {
	for e, err := range walk.List(ctx, r.dst.fs, dir, 0) {
		if err != nil {
			return fmt.Errorf("look for temporaries: %w", err)
		}
		name := string(e.Name)
		for n := range min(attempt-1, maxSwept) {
			if !transfer.IsTemp(name, r.spec.Tag+tag(id, attempt-1-n)) {
				continue
			}
			if _, err := r.dst.fs.Remove(ctx, dir, name, false); err != nil && !errors.Is(err, vfs.ErrNoEnt) {
				return fmt.Errorf("remove the temporary %s: %w", name, err)
			}
			break
		}
	}
	return nil
}

// file does to a file what the batch says. What has no answer is left to the coordinator: it knows
// whether the server is silent, or only this worker cannot reach it.
func (r *run) file(ctx context.Context, work wire.Work, s *spot, f *wire.File) wire.Outcome {
	if err := vfs.CheckName(string(f.Name)); err != nil {
		return wire.OfError(fmt.Errorf("name %q: %w", f.Name, err))
	}
	var out wire.Outcome
	var err error
	switch work {
	case wire.COPY:
		out, err = r.copy(ctx, s, f)
	case wire.COMPARE:
		out, err = r.compare(ctx, s, f)
	case wire.REMOVE:
		_, err = r.dst.fs.Remove(ctx, s.dst, string(f.Name), false)
		out = wire.OfRemoval(err)
	}
	if errors.Is(err, vfs.ErrNoAnswer) {
		return wire.Declined(err.Error())
	}
	return out
}

// copy copies a file. It finds it by its name, as handles say nothing about where an object lies.
func (r *run) copy(ctx context.Context, s *spot, f *wire.File) (wire.Outcome, error) {
	name := string(f.Name)
	h, a, err := lookup(ctx, r.from, s.src, name)
	switch {
	case errors.Is(err, vfs.ErrNoEnt), errors.Is(err, vfs.ErrStale):
		err = fmt.Errorf("the file %w: %w", transfer.ErrVanished, err)
	case err != nil:
		err = fmt.Errorf("look the source up: %w", err)
	case a.Type != vfs.TypeReg:
		err = fmt.Errorf("%w: its name is that of a %v now", transfer.ErrChanged, a.Type)
	}
	if err != nil {
		return wire.OfError(err), err
	}
	src := transfer.Source{FS: r.from, Handle: h, Attr: a, Fresh: true, Dir: s.src, Name: name}
	dst := transfer.Target{FS: r.dst.fs, Dir: s.dst, Name: name, Tag: s.tag, Listed: func() bool { return f.Lists }}
	res, err := transfer.File(ctx, src, dst, &r.t)
	return wire.OfCopy(&res, err), err
}

// compare compares two files. What is not what the coordinator has met is left to it.
func (r *run) compare(ctx context.Context, s *spot, f *wire.File) (wire.Outcome, error) {
	var both [2]transfer.Source
	for i, at := range [...]struct {
		fs  vfs.FS
		dir vfs.Handle
	}{{r.from, s.src}, {r.dst.fs, s.dst}} {
		h, a, err := lookup(ctx, at.fs, at.dir, string(f.Name))
		if err != nil {
			return wire.Declined(err.Error()), err
		}
		if a.Type != vfs.TypeReg || a.Size != f.Size {
			return wire.Declined("it has changed"), nil
		}
		both[i] = transfer.Source{FS: at.fs, Handle: h, Attr: a}
	}
	cmp, err := transfer.Compare(ctx, both[0], both[1], f.Size, &r.t)
	return wire.OfComparison(cmp, err), err
}
