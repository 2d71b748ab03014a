package export

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// Resolver is the name service: the part of [net.Resolver] that is used.
type Resolver interface {
	// LookupAddr returns names of an address. They prove nothing.
	LookupAddr(ctx context.Context, addr string) ([]string, error)
	// LookupNetIP returns the addresses of a name; network is "ip".
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// maxNames is how many names of an address are looked at. Further ones are ignored.
const maxNames = 8

// clients knows the names of addresses, the addresses of names and the groups of
// users, as far as the rules of exports need them.
type clients struct {
	addrs  memo[string, netip.Addr] // of a name
	names  memo[netip.Addr, string] // of an address, confirmed
	groups memo[uint32, uint32]     // of a user
}

func (c *clients) init(o *Options) {
	c.addrs = newMemo(o, func(ctx context.Context, host string) ([]netip.Addr, error) {
		return addrsOf(ctx, o.Resolver, host)
	})
	c.names = newMemo(o, func(ctx context.Context, a netip.Addr) ([]string, error) {
		return namesOf(ctx, o.Resolver, a)
	})
	c.groups = newMemo(o, func(ctx context.Context, uid uint32) ([]uint32, error) {
		groups, err := o.Groups(ctx, uid)
		if err != nil {
			return nil, fmt.Errorf("export: groups of uid %d: %w", uid, err)
		}
		return groups, nil
	})
}

// addrsOf returns the addresses of a name, and none if it does not exist.
func addrsOf(ctx context.Context, r Resolver, host string) ([]netip.Addr, error) {
	// The dot at the end keeps the resolver from trying domains of its own.
	addrs, err := r.LookupNetIP(ctx, "ip", host+".")
	if err != nil {
		return nil, found(err, "addresses of "+host)
	}
	for i, a := range addrs {
		addrs[i] = plain(a)
	}
	return addrs, nil
}

// namesOf returns the names of an address that lead back to it. Others prove nothing:
// the owner of an address can give it any name.
func namesOf(ctx context.Context, r Resolver, a netip.Addr) ([]string, error) {
	names, err := r.LookupAddr(ctx, a.String())
	if err != nil {
		return nil, found(err, "names of "+a.String())
	}
	var confirmed []string
	for _, name := range names[:min(len(names), maxNames)] {
		name = strings.ToLower(strings.TrimSuffix(name, "."))
		if checkHost(name) != nil {
			continue
		}
		addrs, err := addrsOf(ctx, r, name)
		if err != nil {
			return nil, err
		}
		if slices.Contains(addrs, a) {
			confirmed = append(confirmed, name)
		}
	}
	return confirmed, nil
}

// found is nil if err says that no such name or address exists.
func found(err error, what string) error {
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return nil
	}
	return fmt.Errorf("export: %s: %w", what, err)
}

// plain is a in the form that rules use: IPv4 unmapped, and no zone.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// haveNames reports whether a rule matches by a name, which takes a look-up.
func haveNames(rules []rule) bool {
	return slices.ContainsFunc(rules, func(r rule) bool { return r.host != "" || r.domain != "" })
}

// match returns the first rule that matches the address, or nil. If names were looked
// up, until is when to look again. It is vfs.ErrBusy if an earlier rule may match, by
// a name that is not known yet, and gives other rights than the one found. A refusal
// instead would make the client discard what it has not written yet.
func (c *clients) match(ctx context.Context, rules []rule, a netip.Addr) (r *rule, until time.Time, err error) {
	if a.IsValid() && haveNames(rules) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, lookupWait)
		defer cancel()
		c.prepare(rules, a)
	}
	var unknown []*rule
	for i := range rules {
		ok, known, good := c.matches(ctx, &rules[i], a)
		if !good.IsZero() && (until.IsZero() || good.Before(until)) {
			until = good
		}
		if !known {
			unknown = append(unknown, &rules[i])
		}
		if ok {
			r = &rules[i]
			break
		}
	}
	if slices.ContainsFunc(unknown, func(u *rule) bool { return r == nil || !u.gives(r) }) {
		return nil, until, vfs.ErrBusy
	}
	return r, until, nil
}

// gives reports whether r and o give the same rights.
func (r *rule) gives(o *rule) bool {
	a, b := r.Rule, o.Rule
	a.Match, b.Match = "", ""
	return reflect.DeepEqual(a, b)
}

// prepare starts all look-ups that may be needed, so that they run at the same time.
func (c *clients) prepare(rules []rule, a netip.Addr) {
	for i := range rules {
		switch r := &rules[i]; {
		case r.prefix.IsValid() && r.prefix.Contains(a):
			return // no later rule is looked at
		case r.host != "":
			c.addrs.prepare(r.host)
		case r.domain != "":
			c.names.prepare(a)
		}
	}
}

// matches reports whether r matches a, and whether that is known.
func (c *clients) matches(ctx context.Context, r *rule, a netip.Addr) (ok, known bool, until time.Time) {
	switch {
	case r.all:
		return true, true, time.Time{}
	case !a.IsValid():
		return false, true, time.Time{}
	case r.prefix.IsValid():
		return r.prefix.Contains(a), true, time.Time{}
	case r.host != "":
		addrs, until, known := c.addrs.get(ctx, r.host)
		return slices.Contains(addrs, a), known, until
	}
	names, until, known := c.names.get(ctx, a)
	ok = slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, r.domain) })
	if ok {
		c.names.hold(a)
	}
	return ok, known, until
}
