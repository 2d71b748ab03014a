package export

import (
	"slices"
	"strings"
)

// Beyond compares what the rules of two exports give; outer and inner are paths. It
// looks for a client to which outer gives something that inner does not. client is
// the Match of outer's rule, and more says in plain words what it gives. Both are
// empty if there is no such client, or no such export. Names are compared as they are
// written: a name and a network may be one client, two different names are two.
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
			// Clients that an earlier rule of either export matches do not count.
			if more != "" && w.meets(n) && !anyCovers(wide[:i], n) && !anyCovers(narrow[:j], w) {
				return w.Match, more
			}
		}
	}
	return "", ""
}

// given are the rules of the export, with what it says for all clients applied.
func (e *entry) given() []rule {
	rules := slices.Clone(e.rules)
	if len(rules) == 0 {
		rules = []rule{{Rule: Rule{Match: "*"}, all: true}}
	}
	for i := range rules {
		r := &rules[i]
		r.ReadOnly, r.NoHostFiles = r.ReadOnly || e.ReadOnly, r.NoHostFiles || e.NoHostFiles
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
	case n.NoHostFiles && !w.NoHostFiles:
		return "descriptors"
	}
	return ""
}

// meets reports whether both may match the same client. Two different names are taken
// for two clients, unless one is a domain that the other lies in.
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
