package daemon

import (
	"errors"
	"log/slog"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/vfs"
)

// Check finds what Serve would find wrong with c, and with the files and directories
// that it names, before it listens. It changes nothing, and says to w.Log whom the rules of
// an export keep out where that may surprise.
func Check(c Config, w World) error {
	if err := c.complete(); err != nil {
		return err
	}
	d := &daemon{w: w, c: &c, log: slog.New(slog.DiscardHandler)}
	err := errors.Join(d.privateOutside(&c), c.tryExports(), c.Log.checkFiles())
	if c.API.on() {
		_, e := c.API.read()
		err = errors.Join(err, e)
	}
	if w.Log != nil {
		d.startLog()
		for i := range c.Exports {
			d.warnClients(&c.Exports[i])
		}
	}
	return err
}

// unopened stands for a directory that is not opened.
type unopened struct{ vfs.FS }

// tryExports makes a table of exports, as far as that goes without opening them.
func (c *Config) tryExports() error {
	var all []export.Export
	for i := range c.Exports {
		one := c.Exports[i].table(&directory{})
		one.FS = &unopened{}
		all = append(all, one)
	}
	_, err := export.New(export.Options{}, all...)
	return err
}
