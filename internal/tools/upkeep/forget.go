package upkeep

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
)

// ForgetOptions say which snapshots are kept. A snapshot is kept if one rule keeps it. The rules apply to each name by itself.
//
// A rule judges the complete snapshots as if there were no others: so it never drops one of them for an incomplete one, and always
// keeps the newest of them. Then it judges all: an incomplete one is kept if it is among the newest KeepLast of all; if it is the newest
// of a day and the like that has no complete one, among the newest Daily of those that have any; or if it is within Within of the newest
// of all.
type ForgetOptions struct {
	Name string   // the snapshots of one name; "" is all
	Tags []string // those that have all of these tags; others are kept, and do not count
	// Snapshots, NAME@ID each as [snapshot.Named] has it, are forgotten whatever the rules say, also those whose root is damaged.
	Snapshots []string

	KeepLast int // the newest ones
	Daily    int // the newest one of each day, for so many days that have one: a complete one before an incomplete one
	Weekly   int // likewise of each week (ISO 8601)
	Monthly  int
	Yearly   int
	// Within keeps all that are at most so much older than the newest one of their name.
	Within time.Duration
	Zone   *time.Location // whose days, weeks and months; nil: UTC

	Partial bool // what backups that were stopped have left to go on from is dropped, too
	DryRun  bool // nothing is forgotten

	// Item, if it is not nil, is called for each snapshot that the rules were asked about, by name, the oldest first: after it was
	// forgotten.
	Item func(ForgetItem)
}

// ForgetItem is what becomes of a snapshot.
type ForgetItem struct {
	Snapshot  string    `json:"snapshot"` // as NAME@ID; "partial NAME" for what a backup has left to go on from
	Time      time.Time `json:"time"`     // zero for what has left
	Complete  bool      `json:"complete"`
	Forgotten bool      `json:"forgotten"`
	// Why is which rules keep it: "last", "daily", "weekly", "monthly", "yearly", "within". Of one that is forgotten: "named", "no rule",
	// "incomplete" (no rule keeps it, and it is), "partial".
	Why []string `json:"why"`
	// Err is why it could not be read, or forgotten: it is there still.
	Err error `json:"-"`
}

// ForgetSummary is what was forgotten.
type ForgetSummary struct {
	DryRun    bool   `json:"dry_run"`
	Kept      uint64 `json:"kept"`
	Forgotten uint64 `json:"forgotten"`
	Judged    uint64 `json:"judged"`   // by rules: they have the name and the tags, if any were given
	Partials  uint64 `json:"partials"` // that were dropped
	Errors    uint64 `json:"errors"`   // snapshots that could not be read, or forgotten
}

// ErrNoRule says that no rule keeps anything: all would be forgotten.
var ErrNoRule = errors.New("no rule says what to keep: give one, such as --keep-last=7, or name the snapshots to forget as NAME@ID")

// Rules reports whether there is a rule that keeps anything.
func (o *ForgetOptions) Rules() bool {
	return o.KeepLast > 0 || o.Daily > 0 || o.Weekly > 0 || o.Monthly > 0 || o.Yearly > 0 || o.Within > 0
}

// Forget removes the roots of snapshots. What they had stays until [Prune]. A snapshot that cannot be read is kept, and counted as
// an error: it can be named in o.Snapshots. Items that failed are no error of Forget. If the store has nothing of o.Name it is
// [snapshot.ErrNoSnapshot].
func Forget(ctx context.Context, store object.Store, o ForgetOptions) (sum ForgetSummary, err error) {
	sum.DryRun = o.DryRun
	if !o.Rules() && len(o.Snapshots) == 0 && !o.Partial {
		return sum, ErrNoRule
	}
	f := &forget{store: store, o: &o, sum: &sum}
	if err := f.known(ctx); err != nil {
		return sum, err
	}
	if err := f.named(ctx); err != nil {
		return sum, err
	}
	if o.Rules() {
		if err := f.byRules(ctx); err != nil {
			return sum, err
		}
	}
	if o.Partial {
		err = f.partials(ctx)
	}
	return sum, err
}

// forget is a Forget under way.
type forget struct {
	store object.Store
	o     *ForgetOptions
	sum   *ForgetSummary
	gone  []string // NAME@ID of those that were named
}

// settle removes what is to be forgotten, and reports the item.
func (f *forget) settle(ctx context.Context, key string, i ForgetItem) error {
	if i.Forgotten && !f.o.DryRun {
		if i.Err = f.store.Delete(ctx, key); i.Err != nil {
			if err := ctx.Err(); err != nil {
				return err
			}
			i.Forgotten = false
		}
	}
	switch {
	case i.Err != nil:
		f.sum.Errors++
	case !i.Forgotten:
		f.sum.Kept++
	case i.Why[0] == whyPartial:
		f.sum.Partials++
	default:
		f.sum.Forgotten++
	}
	if f.o.Item != nil {
		f.o.Item(i)
	}
	return nil
}

// What ForgetItem.Why says.
const (
	whyNamed, whyNoRule, whyIncomplete, whyPartial = "named", "no rule", "incomplete", "partial"
	whyLast, whyWithin                             = "last", "within"
)

// known returns an error unless the store has something of the name that is to be judged.
func (f *forget) known(ctx context.Context) error {
	if f.o.Name == "" {
		return nil
	}
	next, stop := iter.Pull2(snapshot.EachRoot(ctx, f.store, f.o.Name))
	defer stop()
	switch _, err, there := next(); {
	case !there:
		return fmt.Errorf("%s: %w", f.o.Name, snapshot.ErrNoSnapshot)
	case !errors.Is(err, snapshot.ErrDamaged):
		return err
	}
	return nil
}

// named forgets the snapshots that were named. One that is not there, or that is not named clearly, is an error before anything is forgotten.
func (f *forget) named(ctx context.Context) error {
	roots := make([]snapshot.Ref, 0, len(f.o.Snapshots))
	for _, text := range f.o.Snapshots {
		r, err := snapshot.Named(ctx, f.store, text)
		if err != nil {
			return err
		}
		if _, err := f.store.Stat(ctx, r.Key()); errors.Is(err, object.ErrNotExist) {
			return fmt.Errorf("%s: %w", text, snapshot.ErrNoSnapshot)
		} else if err != nil && !errors.Is(err, object.ErrCorrupted) {
			return err
		}
		if !slices.Contains(f.gone, r.Text()) { // it may be named by its id, and by the beginning of that
			roots, f.gone = append(roots, r), append(f.gone, r.Text())
		}
	}
	for i := range roots {
		item := ForgetItem{Snapshot: roots[i].Text(), Forgotten: true, Why: []string{whyNamed}}
		if ref, err := snapshot.Find(ctx, f.store, item.Snapshot); err == nil {
			item.Time, item.Complete = ref.Time, ref.Complete
		}
		if err := f.settle(ctx, roots[i].Key(), item); err != nil {
			return err
		}
	}
	return nil
}

// byRules goes through the snapshots, those of one name after another.
func (f *forget) byRules(ctx context.Context) error {
	var group []snapshot.Ref
	flush := func() error {
		defer func() { group = nil }()
		return f.group(ctx, group)
	}
	for r, err := range snapshot.EachRoot(ctx, f.store, f.o.Name) {
		switch {
		case errors.Is(err, snapshot.ErrDamaged): // it is none, and others are judged
			if err := f.settle(ctx, "", ForgetItem{Snapshot: r.Text(), Err: err}); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		case r.Partial || slices.Contains(f.gone, r.Text()):
			continue
		}
		if len(group) > 0 && group[0].Name != r.Name {
			if err := flush(); err != nil {
				return err
			}
		}
		group = append(group, r)
	}
	return flush()
}

// group judges the snapshots of one name, the oldest first.
func (f *forget) group(ctx context.Context, roots []snapshot.Ref) error {
	items := make([]ForgetItem, 0, len(roots))
	keys := make([]string, 0, len(roots))
	for i := range roots {
		item := ForgetItem{Snapshot: roots[i].Text()}
		ref, err := snapshot.Find(ctx, f.store, item.Snapshot)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, snapshot.ErrNoSnapshot):
			continue // somebody else has forgotten it
		case err != nil:
			item.Err = err
		case !hasAll(ref.Tags, f.o.Tags):
			continue
		default:
			item.Time, item.Complete = ref.Time, ref.Complete
		}
		items, keys = append(items, item), append(keys, roots[i].Key())
	}
	f.sum.Judged += uint64(len(items))
	f.o.judge(items)
	for i := range items {
		if err := f.settle(ctx, keys[i], items[i]); err != nil {
			return err
		}
	}
	return nil
}

func hasAll(tags, want []string) bool {
	return !slices.ContainsFunc(want, func(t string) bool { return !slices.Contains(tags, t) })
}

// partials drops what stopped backups have left. What is none was told of, or stays.
func (f *forget) partials(ctx context.Context) error {
	for r, err := range snapshot.EachRoot(ctx, f.store, f.o.Name) {
		if errors.Is(err, snapshot.ErrDamaged) || err == nil && !r.Partial {
			continue
		}
		if err != nil {
			return err
		}
		if err := f.settle(ctx, r.Key(), ForgetItem{Snapshot: r.Text(), Forgotten: true, Why: []string{whyPartial}}); err != nil {
			return err
		}
	}
	return nil
}
