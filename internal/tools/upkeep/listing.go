package upkeep

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// contentPrefix is where all content is.
const contentPrefix = "sha256/"

// listing goes through the content of a store once, a round of needs at a time.
type listing struct {
	store object.Store
	// around, if not nil, is told what has the place of an object, or which ones cannot be listed, by what their keys begin with: the
	// listing goes on behind that. Else it is its error.
	around func(key string, err error)

	after string // the key that was met last
	page  []object.Info
	end   bool
}

// join goes through the objects of a round, and those of its needs. have is called with each object, and what is needed of it, nil
// if nothing; lack with each need whose object is not listed.
func (l *listing) join(ctx context.Context, r *round[need], have func(info *object.Info, n *need) error, lack func(n *need) error) error {
	needs := r.items
	for {
		info, err := l.next(ctx)
		if err != nil {
			return err
		}
		var sum object.Sum
		if info != nil {
			var ok bool
			if sum, ok = object.ContentSum(info.Key); !ok { // something else, which is nobody's here
				l.take()
				continue
			}
			if r.to != nil && bytes.Compare(sum[:], r.to.sum[:]) >= 0 {
				info = nil // for the next round
			}
		}
		for len(needs) > 0 && (info == nil || bytes.Compare(needs[0].sum[:], sum[:]) < 0) {
			if err := lack(&needs[0]); err != nil {
				return err
			}
			needs = needs[1:]
		}
		if info == nil {
			return nil
		}
		var n *need
		if len(needs) > 0 && needs[0].sum == sum {
			n, needs = &needs[0], needs[1:]
		}
		l.take()
		if err := have(info, n); err != nil {
			return err
		}
	}
}

// next is the object at hand; nil: there is none.
func (l *listing) next(ctx context.Context) (*object.Info, error) {
	for len(l.page) == 0 && !l.end {
		p, err := l.store.List(ctx, contentPrefix, l.after, 0)
		if l.past(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		l.page, l.end = p.Objects, !p.More || len(p.Objects) == 0
	}
	if len(l.page) == 0 {
		return nil, nil
	}
	return &l.page[0], nil
}

// past goes on behind what err is about, if that can be told.
func (l *listing) past(err error) bool {
	key, after := "", ""
	if foreign, ok := errors.AsType[*object.ForeignError](err); ok {
		key, after = foreign.Key, foreign.Key
	}
	if hidden, ok := errors.AsType[*object.HiddenError](err); ok {
		key, after = hidden.Prefix, hidden.After
	}
	if l.around == nil || after <= l.after {
		return false
	}
	l.after = after
	l.around(key, err)
	return true
}

// take goes on behind the object at hand.
func (l *listing) take() {
	l.after = strings.Clone(l.page[0].Key)
	l.page = l.page[1:]
}
