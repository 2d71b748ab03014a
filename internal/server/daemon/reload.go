package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
)

// preparation is the part of a reload that may take long, or for ever if a directory does
// not answer. A goroutine of its own makes it, and the server goes on meanwhile.
type preparation struct {
	c       *config.Config
	later   []string // keys that wait for the next start
	open    directories
	exports []export.Export
	secrets apiSecrets
	err     error // nothing else is there then
}

// reload begins to prepare the configuration as it is now. The preparation comes over the
// channel. There is one reload at a time.
func (d *daemon) reload() <-chan *preparation {
	d.notify("RELOADING=1\n" + monotonic())
	out, idle := make(chan *preparation), make(chan struct{})
	d.reloading = idle
	go func() {
		defer close(idle)
		if err := d.logs.Reopen(); err != nil {
			d.log.Error("reload: the files of the log", slog.Any("error", err))
		}
		p := d.prepare()
		select {
		case out <- p:
		case <-d.sites.ended.Done():
			if err := d.discard(p); err != nil {
				d.log.Error("reload: at the end", slog.Any("error", err))
			}
		}
	}()
	return out
}

// prepare reads the configuration and opens what is new in it.
func (d *daemon) prepare() *preparation {
	c, err := d.w.Reread()
	if err != nil {
		return &preparation{err: err}
	}
	p := &preparation{c: c, later: d.c.Keep(c)}
	c.SquashUnsaid(d.onlyKnown())
	if err = d.privateOutside(c); err == nil {
		p.secrets, err = readSecrets(&c.API)
	}
	if err == nil {
		p.open, p.exports, err = d.openSites(c)
	}
	if err != nil {
		return &preparation{err: err}
	}
	return p
}

// discard closes what a preparation has opened in vain.
func (d *daemon) discard(p *preparation) (err error) {
	for _, x := range p.open.without(d.sites.now()) {
		err = errors.Join(err, x.close())
	}
	return err
}

// reloaded puts what was prepared in force, or logs why not.
func (d *daemon) reloaded(p *preparation) {
	status := "Serving; reloaded"
	if err := d.replace(p); err != nil {
		status = "Serving; the last reload failed"
		d.log.Error("reload: nothing has changed", slog.Any("error", err))
	}
	d.notify("READY=1\nSTATUS=" + status)
}

// replace puts what was prepared in force. After an error nothing has changed.
func (d *daemon) replace(p *preparation) error {
	if p.err != nil {
		return p.err
	}
	before := d.table.Exports()
	if err := d.replaceExports(p); err != nil {
		return errors.Join(err, d.discard(p))
	}
	c := p.c
	defer d.warnTop(before)
	d.logs.Reload(&c.Log, time.Duration(c.Slow))
	d.api.renew(p.secrets)
	d.c = c
	if len(p.later) > 0 {
		d.log.Warn("reload: changes that wait for the next start", slog.String("keys", strings.Join(p.later, " ")))
	}
	d.log.Info("reload: done", slog.Int("exports", len(c.Exports)))
	d.warn()
	return nil
}

// warnTop says so if "/" stood for the only export, and no longer does.
func (d *daemon) warnTop(before []export.Export) {
	now := d.table.Exports()
	top := slices.ContainsFunc(now, func(e export.Export) bool { return e.Path == "/" })
	if len(before) == 1 && before[0].Path != "/" && len(now) > 1 && !top {
		d.log.Warn("reload: \"/\" stood for the only export, and cannot be mounted now that there are more: clients name the path",
			slog.String("export", before[0].Path))
	}
}

// abandonReload waits for a reload under way to close what it has opened, for reloadEnd at
// most. A reload that hangs ends with the process.
func (d *daemon) abandonReload() {
	if d.reloading == nil {
		return
	}
	limit := time.NewTimer(reloadEnd)
	defer limit.Stop()
	select {
	case <-d.reloading:
	case <-limit.C:
		d.log.Warn("a reload is still at work, perhaps in a directory that does not answer; the end does not wait for it")
	}
}

// replaceExports puts other exports in force, and retires directories that none of them has.
func (d *daemon) replaceExports(p *preparation) error {
	gone := d.sites.now().without(p.open)
	if left := int(d.sites.left.Load()); left+len(gone) > maxRetired {
		return fmt.Errorf("calls are still at work in %d directories that are served no longer: try again later", left)
	}
	if err := d.table.Replace(p.exports...); err != nil {
		return err
	}
	d.sites.open.Store(&p.open)
	for s, x := range gone {
		d.retire(s, x)
	}
	return nil
}
