package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/server/daemon/ops"
	"github.com/nfsbox/nfsbox/internal/server/daemon/paths"
	"github.com/nfsbox/nfsbox/vfs"
)

// Check finds what Serve would find wrong with c, and with the files and directories
// that it names, before it listens. It changes nothing, and says to w.Log whom the rules of
// an export keep out, or let in by way of another, where that may surprise.
func Check(c config.Config, w World) error {
	if err := c.Complete(); err != nil {
		return err
	}
	d := &daemon{w: w, c: &c, log: slog.New(slog.DiscardHandler)}
	table, err := tryExports(&c)
	private := d.privateOutside(&c)
	if _, none := d.stateBase(); none != nil {
		private = nil // checkState says it
	}
	all := []error{private, d.checkState(), err, checkNamed(&c, &w)}
	if w.Log != nil {
		d.log = ops.NewLogs(&c.Log, w.Log, time.Now).Logger()
	}
	all = append(all, d.checkMounted(), d.checkUpstreams())
	err = errors.Join(all...)
	if w.Log == nil {
		return err
	}
	d.log = ops.NewLogs(&c.Log, w.Log, time.Now).Logger()
	d.warnGrace()
	likely := c.Squashed()
	for i := range likely.Exports {
		e := &likely.Exports[i]
		d.warnClients(e)
		for _, client := range e.Rules() {
			d.warnAnon(e, &client)
		}
	}
	if err != nil {
		return err
	}
	var trees []paths.Tree
	for i := range c.Exports {
		s, err := siteOf(&c.Exports[i])
		if err != nil {
			return err
		}
		if s.from != "" {
			continue
		}
		trees = append(trees, s.treeOf(c.Exports[i].Path))
	}
	d.warnWithin(trees, table)
	return nil
}

// CheckFiles finds what is wrong with the files and directories that c names, whatever else
// is wrong with it. It is for a configuration that Load has returned with an error.
func CheckFiles(c *config.Config, w World) error {
	all := []error{checkNamed(c, &w)}
	for i := range c.Exports {
		dir := c.Exports[i].Dir
		if dir == "" || config.Misplaced(dir) != "" {
			continue // Load has said it
		}
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is no directory", dir)
		}
		if err != nil {
			all = append(all, w.at(i, err))
		}
	}
	return errors.Join(all...)
}

// checkNamed looks at the files that the logs and the file API need.
func checkNamed(c *config.Config, w *World) error {
	all := []error{w.located(ops.CheckFiles(&c.Log))}
	if c.API.On() {
		_, err := readSecrets(&c.API)
		all = append(all, w.located(err))
	}
	return errors.Join(all...)
}

// checkMounted finds what unmounted will leave out. It is an error if nothing remains.
func (d *daemon) checkMounted() error {
	left := len(d.c.Exports)
	for i := range d.c.Exports {
		// privateOutside has named a directory that is not there.
		if out, err := d.unmounted(&d.c.Exports[i]); err == nil && out {
			left--
		}
	}
	if left == 0 {
		return errNoneMounted
	}
	return nil
}

// unopened stands for a directory that is not opened.
type unopened struct{ vfs.FS }

// tryExports makes a table of exports, as far as that goes without opening them.
func tryExports(c *config.Config) (*export.Table, error) {
	var all []export.Export
	likely := c.Squashed()
	for i := range likely.Exports {
		one := tableOf(&likely.Exports[i], &directory{})
		one.FS = &unopened{}
		all = append(all, one)
	}
	return export.New(export.Options{}, all...)
}

// checkState finds what a start would find wrong with what lies in the state directory,
// and makes nothing there.
func (d *daemon) checkState() error {
	base, own, err := d.folders()
	if err != nil {
		return err
	}
	if err := d.unshared(base); err != nil {
		return err
	}
	d.own = own
	folders := []string{own, filepath.Join(own, locksName)}
	for i := range d.c.Exports {
		s, err := siteOf(&d.c.Exports[i])
		if err != nil || s.from != "" {
			continue // privateOutside has named it, or it has no folder
		}
		of, err := d.siteFolder(&s)
		if err != nil {
			return err
		}
		folders = append(folders, of)
	}
	for _, dir := range folders {
		if err := paths.Private(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("state directory: %w", err)
		}
	}
	if _, err := readKey(filepath.Join(own, keyName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("key of the handles: %w", err)
	}
	if err := d.regularState(); err != nil {
		return err
	}
	if err := paths.TakesFiles(own); err != nil {
		return d.notMade(err)
	}
	return nil
}
