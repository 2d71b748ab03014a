package export

import (
	"slices"
	"strings"
)

// Beyond compares what the rules of two exports give, which are named by their paths.
// It finds a client to which outer gives something that inner does not. client is the
// Match of outer's rule, and more says in plain words what it gets. Both are empty if
// there is no such client, or no such export. Of names only what is written is
// compared: two rules that may be of one client are taken to be.
func (t *Table) Beyond(outer, inner string) (client, more string) {
	st := t.state.Load()
	a, b := st.byPath[outer], st.byPath[inner]
	if a == nil || b == nil {
		return "", ""
	}
	wide, narrow := a.given(), b.given()
	for i := range wide {
		w := &wide[i]
		if !slices.ContainsFunc(narrow, func(n rule) bool { return n.covers(w) }) {
			return w.Match, "a way in"
		}
		for j := range narrow {
			n := &narrow[j]
			more := w.more(n)
			// A client that an earlier rule of either export matches is not theirs.
			if more != "" && w.meets(n) && !anyCovers(wide[:i], n) && !anyCovers(narrow[:j], w) {
				return w.Match, more
			}
		}
	}
	return "", ""
}

// given are the rules as they hold, with what the export says for all.
func (e *entry) given() []rule {
	rules := slices.Clone(e.rules)
	if len(rules) == 0 {
		rules = []rule{{Rule: Rule{Match: "*"}, all: true}}
	}
	for i := range rules {
		r := &rules[i]
		r.ReadOnly, r.Remote = r.ReadOnly || e.ReadOnly, r.Remote || e.Remote
	}
	return rules
}

func anyCovers(rules []rule, r *rule) bool {
	return slices.ContainsFunc(rules, func(x rule) bool { return x.covers(r) })
}

// more is something that w gives and n does not, or "".
func (w *rule) more(n *rule) string {
	all := w.Squash == SquashAll && n.Squash == SquashAll
	switch {
	case n.ReadOnly && !w.ReadOnly:
		return "changes"
	case n.Squash > w.Squash:
		return "users who are squashed otherwise"
	case all && (anon(n.AnonUID) != anon(w.AnonUID) || anon(n.AnonGID) != anon(w.AnonGID)):
		return "another anonymous user"
	case n.Secure && !w.Secure:
		return "ports of all users"
	case n.ManyGroups && !w.ManyGroups:
		return "groups that the client names"
	case w.TrustLocal && !n.TrustLocal:
		return "users that programs of this host name"
	case n.Remote && !w.Remote:
		return "descriptors"
	}
	return ""
}

// meets reports whether one client may be matched by both. Two names are taken for those
// of two clients, unless one is in the other's domain.
func (r *rule) meets(o *rule) bool {
	switch {
	case r.all || o.all:
		return true
	case r.prefix.IsValid() && o.prefix.IsValid():
		return r.prefix.Overlaps(o.prefix)
	case r.prefix.IsValid() || o.prefix.IsValid():
		return true // a name may have an address in the network
	}
	a, b := r.host+r.domain, o.host+o.domain
	return a == b || r.domain != "" && strings.HasSuffix(b, a) || o.domain != "" && strings.HasSuffix(a, b)
}
