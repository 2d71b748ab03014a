package config

import (
	"cmp"
	"path/filepath"
	"slices"
)

// fill completes what was left out and follows from the rest, but for Squash, which
// follows from who can reach the server.
func (c *Config) Fill() {
	for i := range c.Exports {
		e := &c.Exports[i]
		if e.Path == "" {
			e.Path = "/"
		}
		if e.Handles == "" {
			e.Handles = "auto"
		}
		if e.Dir != "" {
			e.Dir = filepath.Clean(e.Dir)
		}
		for j := range e.Clients {
			e.Clients[j].Rule.fill(&e.Rule)
		}
	}
}

// squash says whom to squash where nobody has: root, unless only this host can
// reach the server, and its users are known. That is told by the sockets and not by
// Listen: those of a service manager may be others, and a reload keeps them.
func (c *Config) SquashUnsaid(known bool) {
	whom := "root"
	if known {
		whom = "none"
	}
	for i := range c.Exports {
		e := &c.Exports[i]
		e.Squash = cmp.Or(e.Squash, whom)
		for j := range e.Clients {
			e.Clients[j].Squash = cmp.Or(e.Clients[j].Squash, e.Squash)
		}
	}
}

// fill takes from the export's rule what a client's does not say.
func (r *Rule) fill(of *Rule) {
	r.Squash = cmp.Or(r.Squash, of.Squash)
	for _, x := range []struct{ to, from **bool }{
		{&r.ReadOnly, &of.ReadOnly}, {&r.Secure, &of.Secure}, {&r.ManageGroups, &of.ManageGroups},
		{&r.TrustLocal, &of.TrustLocal},
	} {
		if *x.to == nil {
			*x.to = *x.from
		}
	}
	if r.AnonUID == nil {
		r.AnonUID = of.AnonUID
	}
	if r.AnonGID == nil {
		r.AnonGID = of.AnonGID
	}
}

// squashed is a copy in which Squash follows from Listen, where the configuration does
// not say it.
func (c *Config) Squashed() Config {
	out := *c
	out.Exports = slices.Clone(c.Exports)
	for i := range out.Exports {
		out.Exports[i].Clients = slices.Clone(c.Exports[i].Clients)
	}
	out.SquashUnsaid(!slices.ContainsFunc(c.Listen, Elsewhere))
	return out
}
