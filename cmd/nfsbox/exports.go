package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

type exportsCmd struct {
	Server string `arg:"" place:"" name:"SERVER" help:"A host name, nfs://host[:port]/, or host:/."`
	JSON   bool   `help:"Print one line of JSON for each export, then a summary."`
}

func (*exportsCmd) Help() string {
	return `Asks the server's MOUNT service for its exports, and prints each path with the clients that may
mount it, or "(everyone)". Exports that nobody can mount, without a path or with one of more than 1024 bytes,
are counted, and are a failure.

  nfsbox exports filer
  nfsbox exports nfs://127.0.0.1:2049/`
}

// exportRow is an export in JSON.
type exportRow struct {
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
	out := newOutput(e, c.JSON)
	exports, err := nfsbox.Exports(e.ctx, url, watched(e, out.onSilence())...)
	left, odd := errors.AsType[*nfsbox.ExportsError](err)
	if err != nil && !odd {
		return out.fail(e, url, &exitError{status: exitUnreachable, err: fmt.Errorf("%s: %w", url, place.Reached(err))})
	}
	for _, x := range exports {
		if err := printExport(out, x); err != nil {
			return err
		}
	}
	if odd {
		return out.fail(e, url, fmt.Errorf("%s: %w", url, left))
	}
	return out.end(nil)
}

func printExport(out *output, x nfsbox.Export) error {
	if out.json {
		return out.event("export", exportRow{x.Path, append([]string{}, x.Groups...)})
	}
	who := "(everyone)"
	if len(x.Groups) > 0 {
		who = strings.Join(x.Groups, ",")
	}
	return out.text(progress.Clean(x.Path) + " " + progress.Clean(who) + "\n")
}
