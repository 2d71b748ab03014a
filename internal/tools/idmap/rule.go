package idmap

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

const (
	// MaxRules is the most rules of users, and of groups. More are refused.
	MaxRules = 1024
	// maxID is the largest user or group: the one above it means "as it is" to chown(2).
	maxID = 1<<32 - 2
)

// Rule gives the ids from From to Last the ids from To on.
type Rule struct{ From, Last, To uint32 }

// ParseRule reads FROM:TO, or FROM-LAST:TO for a range, in decimal.
func ParseRule(s string) (r Rule, err error) {
	from, to, ok := strings.Cut(s, ":")
	if !ok {
		return r, fmt.Errorf("%q is not FROM:TO or FROM-LAST:TO", s)
	}
	last := from
	if first, end, ok := strings.Cut(from, "-"); ok {
		from, last = first, end
	}
	for _, n := range [...]struct {
		text string
		id   *uint32
	}{{from, &r.From}, {last, &r.Last}, {to, &r.To}} {
		id, err := strconv.ParseUint(n.text, 10, 32)
		if err != nil || id > maxID {
			return r, fmt.Errorf("%q: an id is a number from 0 to %d, and %q is none", s, uint32(maxID), n.text)
		}
		*n.id = uint32(id)
	}
	switch {
	case r.Last < r.From:
		return r, fmt.Errorf("%q: the range ends before it begins", s)
	case r.Last-r.From > maxID-r.To:
		return r, fmt.Errorf("%q: the last of the range would become an id above %d", s, uint32(maxID))
	}
	return r, nil
}

// table is rules sorted by From, of which no two have an id in common.
type table []Rule

// parse reads rules.
func parse(texts []string) (table, error) {
	if len(texts) > MaxRules {
		return nil, fmt.Errorf("%d rules are too many: %d are possible; a range is one rule", len(texts), MaxRules)
	}
	t := make(table, 0, len(texts))
	for _, s := range texts {
		r, err := ParseRule(s)
		if err != nil {
			return nil, err
		}
		t = append(t, r)
	}
	slices.SortFunc(t, func(a, b Rule) int { return int(int64(a.From) - int64(b.From)) })
	for i := 1; i < len(t); i++ {
		if t[i].From <= t[i-1].Last {
			return nil, fmt.Errorf("two rules are for the id %d", t[i].From)
		}
	}
	return t, nil
}

// of is what becomes of id.
func (t table) of(id uint32) uint32 {
	i := sort.Search(len(t), func(i int) bool { return t[i].Last >= id })
	if i < len(t) && t[i].From <= id {
		return t[i].To + (id - t[i].From)
	}
	return id
}

// Map says what becomes of users and groups. The zero Map leaves them as they are. It is not
// changed, and may be used concurrently.
type Map struct{ users, groups table }

// Parse reads the rules of users and of groups, as ParseRule has them. Two rules for one id are
// an error.
func Parse(users, groups []string) (m Map, err error) {
	var uerr, gerr error
	m.users, uerr = parse(users)
	m.groups, gerr = parse(groups)
	if uerr != nil {
		uerr = fmt.Errorf("users: %w", uerr)
	}
	if gerr != nil {
		gerr = fmt.Errorf("groups: %w", gerr)
	}
	return m, errors.Join(uerr, gerr)
}

// Empty reports whether there is no rule.
func (m *Map) Empty() bool { return len(m.users)+len(m.groups) == 0 }
