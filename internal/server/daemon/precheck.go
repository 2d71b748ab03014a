package daemon

import (
	"errors"
	"log/slog"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/vfs"
)

// Check finds what Serve would find wrong with c, and with the files and directories
// that it names, before it listens. It changes nothing, and says to w.Log whom the rules of
// an export keep out, or let in by way of another, where that may surprise.
func Check(c Config, w World) error {
	if err := c.complete(); err != nil {
		return err
	}
	d := &daemon{w: w, c: &c, log: slog.New(slog.DiscardHandler)}
	err := d.privateOutside(&c)
	if err == nil {
		err = d.checkState()
	}
	table, e := c.tryExports()
	err = errors.Join(err, e, c.Log.checkFiles())
	if c.API.on() {
		_, e := c.API.read()
		err = errors.Join(err, e)
	}
	if w.Log == nil {
		return err
	}
	d.startLog()
	for i := range c.Exports {
		d.warnClients(&c.Exports[i])
	}
	if err != nil {
		return err
	}
	var all []exported
	for i := range c.Exports {
		s, err := siteOf(&c.Exports[i])
		if err != nil {
			return err
		}
		all = append(all, exported{c.Exports[i].Path, s})
	}
	d.warnWithin(all, table)
	return nil
}

// unopened stands for a directory that is not opened.
type unopened struct{ vfs.FS }

// tryExports makes a table of exports, as far as that goes without opening them.
func (c *Config) tryExports() (*export.Table, error) {
	var all []export.Export
	likely := c.squashed()
	for i := range likely.Exports {
		one := likely.Exports[i].table(&directory{})
		one.FS = &unopened{}
		all = append(all, one)
	}
	return export.New(export.Options{}, all...)
}
