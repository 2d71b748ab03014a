package snapshot

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

const (
	// minID is how much of an id has to be given. Less is refused: it would soon be that of another snapshot.
	minID = 4
	// maxCandidates bounds how many snapshots an [AmbiguousError] names. Of more it says that there are.
	maxCandidates = 16
)

// Named is the snapshot that NAME@ID names: ID is a whole id, as [Ref.Text] has it, or at least minID bytes with which one id alone
// begins. No root is read. Whether one is there that a whole id names is not asked; of a beginning that none has, it
// is [ErrNoSnapshot], and of one that several have an [AmbiguousError].
func Named(ctx context.Context, s object.Store, text string) (Ref, error) {
	name, id, _ := strings.Cut(text, "@")
	if err := CheckName(name); err != nil {
		return Ref{}, err
	}
	key := rootKey(name, id)
	if id == "" || object.CheckPrefix(key) != nil || strings.Contains(id, "/") {
		return Ref{}, fmt.Errorf("%q is %w: give NAME@ID", text, ErrName)
	}
	ref := Ref{ID: id, Meta: Meta{Name: name}}
	if _, err := timeOf(id); err == nil {
		return ref, nil // and never the beginning of another
	}
	if _, err := s.Stat(ctx, key); !errors.Is(err, object.ErrNotExist) {
		if errors.Is(err, object.ErrCorrupted) {
			err = nil // it is there
		}
		return ref, err
	}
	if len(id) < minID {
		return Ref{}, fmt.Errorf("%q is %w: give an ID, or at least the first %d characters of one", text, ErrName, minID)
	}
	return begun(ctx, s, text, ref)
}

// begun is the snapshot whose id alone begins with that of ref.
func begun(ctx context.Context, s object.Store, text string, ref Ref) (Ref, error) {
	several := &AmbiguousError{Text: text}
	for key, err := range keysOf(ctx, s, ref.key()) {
		if err != nil {
			return Ref{}, err
		}
		r, err := rootOf(key)
		if err != nil {
			continue // it is none of a snapshot
		}
		if several.More = len(several.Some) == maxCandidates; several.More {
			break
		}
		several.Some = append(several.Some, r.Text())
		ref = r
	}
	switch len(several.Some) {
	case 0:
		return Ref{}, fmt.Errorf("%s: %w", text, ErrNoSnapshot)
	case 1:
		return ref, nil
	}
	return Ref{}, several
}
