package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"
)

// onTheFly are the keys that a reload changes.
var onTheFly = map[string]bool{"export": true, "slow": true, "log-level": true}

// reload reads the configuration anew and goes over to it, or says why not.
func (d *daemon) reload() {
	if d.w.Reread == nil {
		return
	}
	d.notify("RELOADING=1\n" + monotonic())
	status := "Serving; reloaded"
	if err := d.replace(); err != nil {
		status = "Serving; the last reload failed"
		d.log.Error("reload: nothing has changed", slog.Any("error", err))
	}
	d.notify("READY=1\nSTATUS=" + status)
}

// replace goes over to the configuration as it is now. After an error nothing
// has changed.
func (d *daemon) replace() error {
	c, err := d.w.Reread()
	if err != nil {
		return err
	}
	later := d.c.keep(c)
	c.squash(d.onLoopback())
	if err := d.replaceExports(c); err != nil {
		return err
	}
	d.level.Set(c.level())
	d.slow.set(time.Duration(c.Slow))
	d.c = c
	if len(later) > 0 {
		d.log.Warn("reload: changes that wait for the next start", slog.String("keys", strings.Join(later, " ")))
	}
	d.log.Info("reload: done", slog.Int("exports", len(c.Exports)))
	d.warn()
	return nil
}

// keep puts the values in force into n where they cannot be changed under way,
// and names those that differ.
func (c *Config) keep(n *Config) (differ []string) {
	now, next := reflect.ValueOf(c).Elem(), reflect.ValueOf(n).Elem()
	for field, v := range next.Fields() {
		key, old := field.Tag.Get("toml"), now.FieldByIndex(field.Index)
		if onTheFly[key] || reflect.DeepEqual(v.Interface(), old.Interface()) {
			continue
		}
		differ = append(differ, key)
		v.Set(old)
	}
	return differ
}

// replaceExports opens what is new, goes over to it, and retires what is old.
func (d *daemon) replaceExports(c *Config) error {
	base, err := d.stateBase()
	if err == nil {
		err = d.stateOutside(base, c)
	}
	if err != nil {
		return err
	}
	now := d.sites.now()
	open, exports, err := d.openSites(c)
	if err != nil {
		return err
	}
	gone, fresh := now.without(open), open.without(now)
	if left := int(d.sites.left.Load()); left+len(gone) > maxRetired {
		err = fmt.Errorf("calls are still at work in %d directories that are served no longer: try again later", left)
	} else {
		err = d.table.Replace(exports...)
	}
	if err != nil {
		for _, x := range fresh {
			err = errors.Join(err, x.close())
		}
		return err
	}
	d.sites.open.Store(&open)
	for s, x := range gone {
		d.retire(s, x)
	}
	return nil
}

// without are the directories of a that are not in b.
func (a directories) without(b directories) directories {
	out := make(directories)
	for s, x := range a {
		if b[s] == nil {
			out[s] = x
		}
	}
	return out
}
