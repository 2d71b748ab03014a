package daemon

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/server/fileapi"
	"github.com/nfsbox/nfsbox/oncrpc"
)

// What the log says of the server's life, and of those whom it refuses.

// tellBegun says what begins to serve, and where.
func (d *daemon) tellBegun() {
	d.log.Info("nfsbox begins", slog.String("version", cmp.Or(d.w.Version, "unknown")), slog.String("go", runtime.Version()),
		slog.Int("pid", os.Getpid()), slog.Int("uid", os.Geteuid()), slog.String("state", d.own))
	for i := range d.listeners {
		x := &d.listeners[i]
		d.log.Info("listening", slog.String("network", x.addr().Network()), slog.String("address", x.addr().String()), slog.String("serves", x.serves(d.c.Locks)))
	}
	for _, l := range d.api.listeners {
		serves := "file API over HTTP"
		if d.api.tls != nil {
			serves = "file API over HTTPS"
		}
		d.log.Info("listening", slog.String("network", l.Addr().Network()), slog.String("address", l.Addr().String()), slog.String("serves", serves))
	}
}

// serves names the programs that a listener answers.
func (x *listener) serves(locks bool) string {
	if x.portmap {
		return "portmap"
	}
	programs := []string{"MOUNT"}
	if x.l != nil {
		programs = []string{"NFS", "NFSACL", "MOUNT"}
	}
	if locks {
		programs = append(programs, "NLM", "NSM")
	}
	return strings.Join(append(programs, "portmap"), " ")
}

// squashes are the values of squash as exports(5) has them.
var squashes = map[string]string{"none": "no_root_squash", "root": "root_squash", "all": "all_squash"}

// rulesOf are the rules of an export in short, maxToldRules of them.
func rulesOf(e *config.Export) string {
	var all []string
	rules := e.Rules()
	for i := range rules {
		if i == maxToldRules {
			all = append(all, fmt.Sprintf("and %d more", len(rules)-i))
			break
		}
		c, access := &rules[i], "rw"
		if config.IsSet(c.ReadOnly) {
			access = "ro"
		}
		words := []string{access, squashes[c.Squash]}
		if config.IsSet(c.Secure) {
			words = append(words, "secure")
		}
		all = append(all, fmt.Sprintf("%s(%s)", c.Match, strings.Join(words, ",")))
	}
	return strings.Join(all, " ")
}

// refused is told of each call that the rules of an export refuse.
func (d *daemon) refused(r export.Refusal) {
	client := nameOf(r.Client.Addr(), r.User)
	attrs := []slog.Attr{slog.String("export", r.Export), slog.String("rule", cmp.Or(r.Rule, "none")), slog.String("why", r.Why.String())}
	if r.Path != "" {
		attrs = append(attrs, slog.String("path", cut(r.Path)))
	}
	if r.Client.Port() != 0 {
		attrs = append(attrs, slog.Int("port", int(r.Client.Port())))
	}
	if r.HasUID {
		attrs = append(attrs, slog.Uint64("claimed_uid", uint64(r.UID)))
	}
	d.refusals.Tell(slog.LevelInfo, "refused by the rules", client, r.Export+"\x00"+r.Path+"\x00"+r.Why.String(), attrs...)
}

// nameOf names a client as the rest of the log does: a user of this host before its address.
func nameOf(at netip.Addr, user *uint32) string {
	name := "local"
	if at.IsValid() {
		name = at.Unmap().String()
	}
	if user != nil {
		name = (&oncrpc.UserAddr{UID: *user}).User() + "@" + name
	}
	return name
}

// denied is told of each request that the file API denies before it looks at any export.
func (d *daemon) denied(x fileapi.Denied) {
	client := nameOf(x.Client.Addr(), nil)
	d.refusals.Tell(slog.LevelInfo, "refused by the file API", client, x.Err.Error(),
		slog.String("method", cut(x.Method)), slog.String("path", cut(x.Path)), slog.Any("why", x.Err))
}

// cut is what a stranger has sent, as long as the log has it.
func cut(s string) string { return s[:min(len(s), maxTold)] }

// left is what is under way: connections, and calls that have no answer yet.
func (d *daemon) left() (conns, calls int) {
	for _, c := range d.srv.Clients() {
		conns, calls = conns+c.Conns, calls+c.UnderWay
	}
	if api, _ := d.api.snapshots(); api != nil {
		conns, calls = conns+api.Conns, calls+api.InProgress
	}
	return conns, calls
}

// unanswered counts calls whose clients have got no answer.
func (d *daemon) unanswered() uint64 {
	s := d.srv.Stats()
	return s.RPC.Dropped + s.RPC.Late + s.UDP.Dropped + s.UDP.Late
}

// tellDrain says that the end begins, and why. What it returns says how it has ended.
func (d *daemon) tellDrain(why error) (ended func(error)) {
	conns, calls := d.left()
	d.log.Info("the end begins: calls under way finish", slog.Any("why", why), slog.Int("connections", conns), slog.Int("calls", calls),
		slog.Duration("most", time.Duration(d.c.DrainTimeout)))
	start, before := d.w.Now(), d.unanswered()
	return func(err error) {
		attrs := []slog.Attr{slog.Duration("took", d.w.Now().Sub(start)), slog.Uint64("unanswered", d.unanswered()-before)}
		level := slog.LevelInfo
		if err != nil {
			level, attrs = slog.LevelError, append(attrs, slog.Any("error", err))
		}
		d.log.LogAttrs(context.Background(), level, "the end: no client is served any more", attrs...)
	}
}
