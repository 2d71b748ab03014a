package snapshot

import (
	"context"
	"fmt"
	"strings"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// Key is that of the snapshot's root object.
func (r *Ref) Key() string { return r.key() }

// Roots lists the roots of a store without reading them, so also those that are damaged: of each Ref the name, the ID and Partial are
// set. Those of one name are together, by time; checkpoints come last. If name is empty it lists all. A key among them that can be none of a
// root is a [DamagedError]: something may be hidden by it.
func Roots(ctx context.Context, s object.Store, name string) (roots []Ref, err error) {
	snapshots, partials := rootPrefix, partialPrefix
	if name != "" {
		if err := CheckName(name); err != nil {
			return nil, err
		}
		snapshots, partials = rootKey(name, ""), partialPrefix+name
	}
	for _, prefix := range []string{snapshots, partials} {
		for info, err := range object.All(ctx, s, prefix) {
			if err != nil {
				return nil, err
			}
			r, err := rootOf(info.Key)
			if err != nil {
				return nil, damaged(info.Key, err)
			}
			if name != "" && r.Name != name {
				continue
			}
			if len(roots) == maxListed {
				return nil, fmt.Errorf("the store has more than %d snapshots: name one", maxListed)
			}
			roots = append(roots, r)
		}
	}
	return roots, nil
}

// rootOf is what the key of a root says of it.
func rootOf(key string) (Ref, error) {
	if rest, ok := strings.CutPrefix(key, partialPrefix); ok {
		return Ref{Meta: Meta{Name: rest}, Partial: true}, CheckName(rest)
	}
	name, id, _ := strings.Cut(strings.TrimPrefix(key, rootPrefix), "/")
	if id == "" || strings.Contains(id, "/") {
		return Ref{}, fmt.Errorf("%q is %w", id, ErrName)
	}
	return Ref{ID: id, Meta: Meta{Name: name}}, CheckName(name)
}

// ParseRoot reads NAME@ID, as [Ref.Text] has it of a snapshot. Whether there is such a one is not asked.
func ParseRoot(text string) (Ref, error) {
	name, id, given := strings.Cut(text, "@")
	if err := CheckName(name); err != nil {
		return Ref{}, err
	}
	if !given || object.CheckKey(rootKey(name, id)) != nil || strings.Contains(id, "/") {
		return Ref{}, fmt.Errorf("%q is %w: give NAME@ID", text, ErrName)
	}
	return Ref{ID: id, Meta: Meta{Name: name}}, nil
}
