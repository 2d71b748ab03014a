package config

import (
	"cmp"
	"path/filepath"
	"slices"
)

// Fill fills in what was left out and follows from the rest. Squash is left to
// SquashUnsaid, since it depends on the addresses at which the server listens.
func (c *Config) Fill() {
	for i := range c.Exports {
		e := &c.Exports[i]
		e.Path = cmp.Or(e.Path, "/")
		e.Handles = cmp.Or(e.Handles, "auto")
		if e.Dir != "" {
			e.Dir = filepath.Clean(e.Dir)
		}
		for j := range e.Clients {
			e.Clients[j].Rule.fill(&e.Rule)
		}
	}
}

// SquashUnsaid fills in Squash where it was left out: root, or none if known, which says
// that only this host can reach the server and its users are known. The sockets decide
// that, not Listen: those of a service manager may have other addresses.
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

// fill takes from the export's rule what a client's leaves out.
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

// Squashed is a copy in which Squash is filled in by what Listen says.
func (c *Config) Squashed() Config {
	out := *c
	out.Exports = slices.Clone(c.Exports)
	for i := range out.Exports {
		out.Exports[i].Clients = slices.Clone(c.Exports[i].Clients)
	}
	out.SquashUnsaid(!slices.ContainsFunc(c.Listen, Elsewhere))
	return out
}
