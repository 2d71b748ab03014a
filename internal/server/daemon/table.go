package daemon

import (
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
)

// tableOf is the export in the form that package export takes.
func tableOf(e *config.Export, of *directory) export.Export {
	x := export.Export{Path: e.Path, FS: of.fs, Tree: of.tree, ID: e.FSID, ReadOnly: e.AllReadOnly(), Async: e.Async,
		Remote: e.LocalIO != nil && !*e.LocalIO}
	for _, client := range e.Rules() {
		x.Clients = append(x.Clients, ruleOf(&client))
	}
	if everybody := (export.Rule{Match: "*", ReadOnly: x.ReadOnly}); len(x.Clients) == 1 && x.Clients[0] == everybody {
		x.Clients = nil // which says the same, to clients as well
	}
	return x
}

func ruleOf(c *config.Client) export.Rule {
	squash, err := export.ParseSquash(c.Squash)
	if err != nil { // check has seen it
		squash = export.SquashAll
	}
	return export.Rule{
		Match: c.Match, ReadOnly: config.IsSet(c.ReadOnly), Squash: squash, AnonUID: c.AnonUID, AnonGID: c.AnonGID,
		Secure: config.IsSet(c.Secure), ManyGroups: config.IsSet(c.ManageGroups), TrustLocal: config.IsSet(c.TrustLocal),
	}
}
