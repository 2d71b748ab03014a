package daemon

import (
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
)

// warnRoot logs that a rule believes clients that say that they are root.
func (d *daemon) warnRoot(e *config.Export, c *config.Client) {
	if c.Squash != "none" || os.Geteuid() != 0 {
		return
	}
	switch {
	case config.IsSet(c.TrustLocal) || d.users == nil && d.onLoopback():
		d.log.Warn("squash is none: every user of this host who says that it is root is root in the export",
			slog.String("export", e.Path), slog.String("client", c.Match))
	case !d.onLoopback() && !config.IsSet(c.Secure):
		d.log.Warn("squash is none: every program of a client that says that it is root's is root in the export; secure asks for a port that takes root there",
			slog.String("export", e.Path), slog.String("client", c.Match))
	}
}

// warnAnon logs that nobody, as a rule has it, is root or in the group of root.
func (d *daemon) warnAnon(e *config.Export, c *config.Client) {
	if os.Geteuid() != 0 {
		return
	}
	who := map[string]string{
		"all":  "every caller",
		"root": "root of a client, and a caller who does not say who it is,",
		"none": "a caller who does not say who it is",
	}[c.Squash]
	if c.AnonUID != nil && *c.AnonUID == 0 {
		d.log.Warn("anonuid is 0: "+who+" is root in the export", slog.String("squash", c.Squash),
			slog.String("export", e.Path), slog.String("client", c.Match))
	}
	if c.AnonGID != nil && *c.AnonGID == 0 {
		d.log.Warn("anongid is 0: "+who+" is in the group of root in the export", slog.String("squash", c.Squash),
			slog.String("export", e.Path), slog.String("client", c.Match))
	}
}

// warnClients logs that an export with rules for some clients keeps out all others.
func (d *daemon) warnClients(e *config.Export) {
	everybody := slices.ContainsFunc(e.Clients, func(c config.Client) bool { return c.Match == "*" })
	if len(e.Clients) > 0 && len(e.Allow) == 0 && !everybody {
		d.log.Warn("the export has clients and no allow: only those may mount it; allow = [\"*\"] lets others in",
			slog.String("export", e.Path))
	}
}

// warnGrace logs that the grace may end before clients have noticed the restart.
func (d *daemon) warnGrace() {
	if g := time.Duration(d.c.Grace); d.c.Locks && g < config.LeastGrace {
		d.log.Warn("grace is short: after a restart a lock may go to another client while its owner, who has not noticed, still relies on it",
			slog.Duration("grace", g), slog.Duration("least", config.LeastGrace))
	}
}

func (d *daemon) warn() {
	d.warnGrace()
	for s, x := range d.sites.now() {
		if x.local != nil && x.local.Squashed() {
			d.log.Warn("not running as root: whatever callers do is done, and owned, by this user; what they may is judged by the mode bits",
				slog.String("dir", s.dir))
		}
	}
	for i := range d.c.Exports {
		e := &d.c.Exports[i]
		if e.Async {
			d.log.Warn("async: clients are told that their data is safe before it is; a crash of this host loses it, and no client will know",
				slog.String("export", e.Path))
		}
		if open := len(e.Clients)+len(e.Allow) == 0 && !d.onLoopback(); open {
			d.log.Warn("everybody who can reach the address may mount the export", slog.String("export", e.Path))
		}
		d.warnClients(e)
		for _, client := range e.Rules() {
			d.warnRoot(e, &client)
			d.warnAnon(e, &client)
		}
		d.log.Info("export", slog.String("path", e.Path), slog.String("dir", e.Dir+e.From), slog.String("squash", e.Squash), slog.Bool("ro", config.IsSet(e.ReadOnly)),
			slog.Int("clients", len(e.Clients)), slog.String("rules", rulesOf(e)))
	}
	d.warnWithin(d.trees(), d.table)
	d.warnAPI()
}
