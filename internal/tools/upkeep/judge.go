package upkeep

import (
	"fmt"
	"slices"
	"time"
)

// rule is one that keeps snapshots.
type rule struct {
	why string
	// keeps returns those of a list that the rule keeps. The list is of one name, the newest first, and not empty.
	keeps func(list []*ForgetItem) []*ForgetItem
}

// judge says what becomes of the snapshots of one name, the oldest first. Those that could not be read are kept.
func (o *ForgetOptions) judge(items []ForgetItem) {
	var complete, all []*ForgetItem // the newest first
	for i := range slices.Backward(items) {
		if items[i].Err != nil {
			continue
		}
		all = append(all, &items[i])
		if items[i].Complete {
			complete = append(complete, &items[i])
		}
	}
	for _, r := range o.rulesInForce() {
		// A complete one is kept as if there were no incomplete ones. So what is incomplete, however new, drops none.
		for _, list := range [][]*ForgetItem{complete, all} {
			if len(list) == 0 {
				continue
			}
			for _, item := range r.keeps(list) {
				if !slices.Contains(item.Why, r.why) {
					item.Why = append(item.Why, r.why)
				}
			}
		}
	}
	for _, item := range all {
		if item.Forgotten = len(item.Why) == 0; !item.Forgotten {
			continue
		}
		item.Why = []string{whyNoRule}
		if !item.Complete {
			item.Why = []string{whyIncomplete}
		}
	}
}

// rulesInForce are the rules that keep anything. Each keeps the newest of a list of complete ones.
func (o *ForgetOptions) rulesInForce() (rules []rule) {
	zone := o.Zone
	if zone == nil {
		zone = time.UTC
	}
	if o.KeepLast > 0 {
		rules = append(rules, rule{whyLast, func(list []*ForgetItem) []*ForgetItem { return list[:min(o.KeepLast, len(list))] }})
	}
	for _, p := range []struct {
		why  string
		keep int
		of   func(t time.Time) string
	}{
		{"daily", o.Daily, func(t time.Time) string { return t.Format("2006-01-02") }},
		{"weekly", o.Weekly, func(t time.Time) string { y, w := t.ISOWeek(); return fmt.Sprintf("%d week %d", y, w) }},
		{"monthly", o.Monthly, func(t time.Time) string { return t.Format("2006-01") }},
		{"yearly", o.Yearly, func(t time.Time) string { return t.Format("2006") }},
	} {
		if p.keep > 0 {
			rules = append(rules, rule{p.why, func(list []*ForgetItem) []*ForgetItem {
				return newestOf(list, p.keep, func(i *ForgetItem) string { return p.of(i.Time.In(zone)) })
			}})
		}
	}
	if o.Within > 0 {
		rules = append(rules, rule{whyWithin, func(list []*ForgetItem) (kept []*ForgetItem) {
			for _, item := range list { // a clock that was set back makes later ones older
				if list[0].Time.Sub(item.Time) <= o.Within {
					kept = append(kept, item)
				}
			}
			return kept
		}})
	}
	return rules
}

// newestOf returns of each of the first keep periods the newest complete one; of a period without any, the newest.
func newestOf(list []*ForgetItem, keep int, of func(*ForgetItem) string) (kept []*ForgetItem) {
	at := make(map[string]int) // of a period, in kept
	for _, item := range list {
		period := of(item)
		switch n, met := at[period]; {
		case met && !kept[n].Complete && item.Complete:
			kept[n] = item
		case !met && len(kept) < keep:
			at[period] = len(kept)
			kept = append(kept, item)
		}
	}
	return kept
}
