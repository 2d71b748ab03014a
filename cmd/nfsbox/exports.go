package main

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

type exportsCmd struct {
	Server string `arg:"" name:"SERVER" help:"A host name, or nfs://host[:port]/."`
	JSON   bool   `help:"Print one line of JSON for each export, then a summary."`
}

func (*exportsCmd) Help() string {
	return `Asks the server's MOUNT service for its exports and prints each path with the clients that it
names: "(everyone)" if it names none.

  nfsbox exports filer
  nfsbox exports nfs://127.0.0.1:2049/`
}

// exportRow is an export in JSON.
type exportRow struct {
	Type   string   `json:"type"` // "export"
	Path   string   `json:"path"`
	Groups []string `json:"groups"`
}

func (c *exportsCmd) Run(e *env) error {
	url := c.Server
	if !place.IsURL(url) {
		url = "nfs://" + strings.TrimSuffix(url, "/") + "/"
	}
	if _, err := nfsbox.ParseURL(url); err != nil {
		return &exitError{status: exitUsage, err: err}
	}
	out := &output{w: bufio.NewWriter(e.stdout), json: c.JSON, stderr: e.stderr}
	exports, err := nfsbox.Exports(e.ctx, url, watched(e, out.onSilence())...)
	if err != nil {
		return c.failed(out, url, err)
	}
	for _, x := range exports {
		if err := printExport(out, x, c.JSON); err != nil {
			return err
		}
	}
	if c.JSON {
		if err := out.event(listSummary{"summary", out.entries, 0}); err != nil {
			return err
		}
	}
	return out.flush()
}

// failed ends the command without a list; in JSON that has an error and a summary.
func (c *exportsCmd) failed(out *output, url string, err error) error {
	err = &exitError{status: exitUnreachable, err: fmt.Errorf("%s: %w", url, err)}
	if !c.JSON {
		return err
	}
	out.failed(url, err)
	return errors.Join(out.event(listSummary{"summary", 0, out.errors}), out.flush(), &exitError{status: exitUnreachable})
}

func printExport(out *output, x nfsbox.Export, asJSON bool) error {
	if asJSON {
		return out.event(exportRow{"export", x.Path, append([]string{}, x.Groups...)})
	}
	who := "(everyone)"
	if len(x.Groups) > 0 {
		who = strings.Join(x.Groups, ",")
	}
	return out.text(progress.Clean(x.Path) + " " + progress.Clean(who) + "\n")
}
