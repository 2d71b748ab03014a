package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

const (
	magic   = "nfsbox snapshot"
	version = 1
	// rootPrefix is where the root objects are, under the name of the snapshot and its id.
	rootPrefix = "snapshots/"
	// idLayout is a time as an id, in UTC. Ids of one name are in the order of their times.
	idLayout = "20060102t150405.000z"
	// maxSameTime is how many milliseconds later than its time an id may be, because others had those before.
	maxSameTime = 1000
)

// rootObject is the object by which a snapshot exists: a line of JSON, and a line with the SHA-256 of the first.
type rootObject struct {
	Magic   string          `json:"magic"`
	Version int             `json:"version"`
	Meta    Meta            `json:"snapshot"`
	Objects int64           `json:"objects"` // how many parts and packs are numbered
	Tables  []Piece         `json:"tables"`  // objects with their sums, in order
	Root    json.RawMessage `json:"root"`    // the line of the top directory

	Packs []PackUse `json:"packs,omitempty"` // what is used of the packs; it may be missing
}

// store puts r under the first id that is free, from the one of its time on, or of least if that is later.
func (r *rootObject) store(ctx context.Context, s object.Store, least time.Time) (id string, err error) {
	b, err := r.encode()
	if err != nil {
		return "", err
	}
	at := r.Meta.Time.UTC()
	if at.Before(least) {
		at = least
	}
	for range maxSameTime {
		id = strings.ToLower(at.Format(idLayout))
		_, err = s.Put(ctx, rootKey(r.Meta.Name, id), bytes.NewReader(b), object.PutOptions{Size: int64(len(b)), IfAbsent: true})
		if !errors.Is(err, object.ErrExist) {
			return id, err
		}
		at = at.Add(time.Millisecond)
	}
	return "", err
}

// encode is r as it is stored.
func (r *rootObject) encode() ([]byte, error) {
	if err := r.Meta.Check(); err != nil {
		return nil, err
	}
	r.Root = bytes.TrimSuffix(r.Root, []byte{'\n'})
	line, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	b := append(append(line, '\n'), object.SumOf(line).String()+"\n"...)
	if len(b) > maxRoot {
		return nil, fmt.Errorf("%w: its root has %d bytes", ErrTooLong, len(b))
	}
	return b, nil
}

// timeOf is the time that an id says.
func timeOf(id string) (time.Time, error) { return time.Parse(idLayout, id) }

// Later reports whether id says a later time than t by more than a second: when it was given, there was a snapshot
// of the name that the clock had put behind t.
func Later(id string, t time.Time) bool {
	at, err := timeOf(id)
	return err == nil && at.Sub(t) > maxSameTime*time.Millisecond
}

func rootKey(name, id string) string { return rootPrefix + name + "/" + id }

// decodeRoot reads a root object.
func decodeRoot(b []byte) (*rootObject, error) {
	line, rest, err := cutLine(b)
	if err != nil {
		return nil, err
	}
	if string(rest) != object.SumOf(line).String()+"\n" {
		return nil, errors.New("it does not have the SHA-256 that it is sealed with")
	}
	r := new(rootObject)
	if err := json.Unmarshal(line, r); err != nil {
		return nil, err
	}
	switch {
	case r.Magic != magic:
		return nil, errors.New("it is no root of a snapshot")
	case r.Version != version:
		return nil, fmt.Errorf("%w: its format is %d, and this one reads %d", ErrVersion, r.Version, version)
	case r.Objects < 0 || r.Objects > maxObjects || int64(len(r.Tables)) != (r.Objects+tableObjects-1)/tableObjects:
		return nil, fmt.Errorf("%d objects in %d tables", r.Objects, len(r.Tables))
	}
	for i := range r.Tables {
		t := &r.Tables[i]
		sums := min(tableObjects, r.Objects-int64(i)*tableObjects)
		if err := t.checkOwn(); err != nil || t.Size != sums*int64(len(object.Sum{})) {
			return nil, errors.New("a table that cannot be")
		}
	}
	if err := checkPackUses(r.Packs, r.Objects); err != nil {
		return nil, err
	}
	return r, r.Meta.Check()
}

// CheckName returns nil if name can be that of a snapshot: lower-case letters, digits, '-', '_' and '.', of
// which the first is a letter or a digit, at most MaxName. So it is a segment of a key.
func CheckName(name string) error {
	if err := object.CheckKey(name); err != nil || strings.Contains(name, "/") || len(name) > MaxName {
		return fmt.Errorf("%q is %w: give up to %d of a-z, 0-9, '-', '_' and '.', beginning with a letter or digit", name, ErrName, MaxName)
	}
	return nil
}

// Check returns nil if the name and the tags can be those of a snapshot, or an error that is [ErrName] if one is none.
func (m *Meta) Check() error {
	if len(m.Tags) > maxTags {
		return fmt.Errorf("%d tags are more than %d", len(m.Tags), maxTags)
	}
	for _, t := range m.Tags {
		if t == "" || len(t) > maxTag {
			return fmt.Errorf("%q is %w: a tag has 1 to %d bytes", t[:min(len(t), maxTag)], ErrName, maxTag)
		}
	}
	return CheckName(m.Name)
}

// Ref is a snapshot of a store.
type Ref struct {
	ID string `json:"id"` // of its name; empty if it is a checkpoint
	Meta

	Partial bool `json:"-"` // it is the checkpoint of a backup that was stopped, or is under way
}

// Text is how the snapshot is named: NAME@ID; and a checkpoint "partial NAME".
func (r *Ref) Text() string {
	if r.Partial {
		return "partial " + r.Name
	}
	return r.Name + "@" + r.ID
}

// key is that of the root object.
func (r *Ref) key() string {
	if r.Partial {
		return partialPrefix + r.Name
	}
	return rootKey(r.Name, r.ID)
}

// maxListed bounds how many snapshots [Snapshots] returns. More are an error.
const maxListed = 1 << 16

// Snapshots returns the snapshots of a store, sorted by name and then by time; of one name, or if that is
// empty of all. A root that cannot be read ends it, as a [DamagedError].
func Snapshots(ctx context.Context, s object.Store, name string) (refs []Ref, err error) {
	prefix := rootPrefix
	if name != "" {
		if err := CheckName(name); err != nil {
			return nil, err
		}
		prefix = rootKey(name, "")
	}
	for info, err := range object.All(ctx, s, prefix) {
		if err != nil {
			return nil, err
		}
		if len(refs) == maxListed {
			return nil, fmt.Errorf("the store has more than %d snapshots: name one", maxListed)
		}
		_, ref, err := readRoot(ctx, s, info.Key)
		if err != nil {
			return nil, err
		}
		refs = append(refs, ref)
	}
	slices.SortStableFunc(refs, func(a, b Ref) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return refs, nil
}

// readRoot reads the root object of a key.
func readRoot(ctx context.Context, s object.Store, key string) (*rootObject, Ref, error) {
	r, info, err := s.Get(ctx, key, 0, -1)
	if err != nil {
		return nil, Ref{}, lost(key, err)
	}
	defer r.Close() //nolint:errcheck // nothing is written
	if info.Size > maxRoot {
		return nil, Ref{}, damaged(key, fmt.Errorf("a root of %d bytes", info.Size))
	}
	b, err := io.ReadAll(io.LimitReader(r, maxRoot+1))
	if err != nil {
		return nil, Ref{}, lost(key, err)
	}
	o, err := decodeRoot(b)
	if err != nil {
		return nil, Ref{}, damaged(key, err)
	}
	ref := Ref{ID: path.Base(key), Meta: o.Meta}
	if strings.HasPrefix(key, partialPrefix) {
		ref.ID, ref.Partial = "", true
	}
	if key != ref.key() {
		return nil, Ref{}, damaged(key, fmt.Errorf("it is of a snapshot of %s", o.Meta.Name))
	}
	return o, ref, nil
}

// Find finds the snapshot that text names: NAME@ID as [Named] has it, or NAME for the newest complete one of that name. If there is none,
// or none that is complete, it is [ErrNoSnapshot]; of the latter an [IncompleteError].
func Find(ctx context.Context, s object.Store, text string) (Ref, error) {
	name, _, given := strings.Cut(text, "@")
	if given {
		ref, err := Named(ctx, s, text)
		if err == nil {
			_, ref, err = readRoot(ctx, s, ref.key())
		}
		if errors.Is(err, object.ErrNotExist) {
			err = fmt.Errorf("%s: %w", text, ErrNoSnapshot)
		}
		return ref, err
	}
	if err := CheckName(name); err != nil {
		return Ref{}, err
	}
	all, err := ids(ctx, s, name)
	if err != nil {
		return Ref{}, err
	}
	for _, id := range slices.Backward(all) {
		_, ref, err := readRoot(ctx, s, rootKey(name, id))
		if err != nil || ref.Complete {
			return ref, err
		}
	}
	if len(all) > 0 {
		return Ref{}, &IncompleteError{Name: name, Newest: name + "@" + all[len(all)-1]}
	}
	return Ref{}, fmt.Errorf("%s: %w", text, ErrNoSnapshot)
}

// afterAll is the first time that is later than those of all ids of a name; zero: it has none.
func afterAll(ctx context.Context, s object.Store, name string) (time.Time, error) {
	all, err := ids(ctx, s, name)
	if err != nil {
		return time.Time{}, err
	}
	for _, id := range slices.Backward(all) {
		if last, err := timeOf(id); err == nil {
			return last.Add(time.Millisecond), nil
		}
	}
	return time.Time{}, nil
}

// ids are the ids of a name, in the order of their times.
func ids(ctx context.Context, s object.Store, name string) (all []string, err error) {
	for key, err := range keysOf(ctx, s, rootKey(name, "")) {
		if err != nil {
			return nil, err
		}
		if len(all) == maxListed {
			return nil, fmt.Errorf("there are more than %d snapshots of %s", maxListed, name)
		}
		all = append(all, path.Base(key))
	}
	return all, nil
}

// Latest opens the newest complete snapshot of a name; nil: there is none. One that is damaged, or of another version, is
// told, and the one before it is taken.
func Latest(ctx context.Context, s object.Store, name string, damaged func(text string, err error)) (*Snapshot, error) {
	all, err := ids(ctx, s, name)
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Backward(all) {
		snap, err := Open(ctx, s, Ref{ID: id, Meta: Meta{Name: name}})
		switch {
		case errors.Is(err, ErrDamaged):
			damaged(name+"@"+id, err)
		case err != nil:
			return nil, err
		case snap.ref.Complete:
			return snap, nil
		}
	}
	return nil, nil
}
