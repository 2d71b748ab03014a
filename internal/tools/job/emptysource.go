package job

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// maxTried is how many names of the destination are looked up in the source before a sync that deletes
// begins.
const maxTried = 64

// refuseEmpty refuses to delete where the source is empty, or has none of the first maxTried names
// that the destination lists.
func (j *copyJob) refuseEmpty(ctx context.Context) error {
	if !j.deletes() || j.o.Sync.Delete.FromEmpty || j.o.Name != "" {
		return nil
	}
	names, err := j.firstNames(ctx, j.o.Dest, maxTried)
	if err != nil {
		return fmt.Errorf("list the destination: %w", err)
	}
	if len(names) == 0 {
		return nil
	}
	has, err := j.firstNames(ctx, j.o.Source, 1)
	if err != nil {
		return fmt.Errorf("list the source: %w", err)
	}
	if len(has) == 0 {
		return fmt.Errorf("the source is empty, and the destination is not: %w. Is something not mounted? "+
			"--delete-from-empty deletes all that the destination has", ErrEmpty)
	}
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { _, _, _, errs[i] = j.o.Source.FS.Lookup(ctx, j.o.Source.Handle, name) })
	}
	all.Wait()
	for _, err := range errs {
		if err == nil {
			return nil
		}
		if !errors.Is(err, vfs.ErrNoEnt) {
			return fmt.Errorf("look up in the source: %w", err)
		}
	}
	return fmt.Errorf("the source has none of %d names that the destination has, such as %q: %w. Is it another directory? "+
		"--delete-from-empty deletes what the source lacks all the same", len(names), names[0], ErrEmpty)
}

// firstNames are up to n names of a directory that the job's filter chooses. Those that cannot be names
// are left out.
func (j *copyJob) firstNames(ctx context.Context, at Place, n int) (names []string, err error) {
	for e, err := range at.FS.ReadDir(ctx, at.Handle, vfs.Pos{}, vfs.MaskType|vfs.MaskSize|vfs.MaskMtime|vfs.MaskHandle, 0) {
		if err != nil {
			return nil, err
		}
		if walk.CheckName(e.Name) != nil {
			continue
		}
		_, chosen, err := j.wanted(ctx, &walk.Dir{}, at, e)
		if err != nil && !errors.Is(err, vfs.ErrNoEnt) {
			return nil, err
		}
		if chosen {
			names = append(names, string(e.Name))
		}
		if len(names) == n {
			break
		}
	}
	return names, nil
}
