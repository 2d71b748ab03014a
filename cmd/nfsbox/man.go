package main

import (
	"io"
	"os"
	"path/filepath"

	"github.com/nfsbox/nfsbox/internal/tools/manual"
)

type manCmd struct {
	Dir string `arg:"" optional:"" name:"DIR" help:"Where to write a file for each page; it is made if it is not there. Without it all pages are printed."`
}

func (*manCmd) Help() string {
	return `Makes the manual: nfsbox(1), and a page for each command, such as nfsbox-serve(1). Their text is what
--help prints, so that they fit this very program.

  nfsbox man | man -l -
  nfsbox man ~/.local/share/man/man1 && man nfsbox-serve
  nfsbox man /usr/local/share/man/man1

Pages are roff, in the macros of man(7), for man-db (groff) and mandoc. They bear the
version and the date of its commit, if the program knows it: the same program makes the same pages. Files of
these names in DIR are replaced.`
}

func (c *manCmd) Run(e *env) error {
	app, err := whole()
	if err != nil {
		return err
	}
	program := manual.Of(app)
	pages := manual.Pages(&program, version(), commitDate())
	if c.Dir == "" {
		return printPages(e.stdout, pages)
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	for i := range pages {
		if err := os.WriteFile(filepath.Join(c.Dir, pages[i].File), []byte(pages[i].Text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// printPages prints pages one after the other; man reads them as one page.
func printPages(w io.Writer, pages []manual.Page) error {
	for i := range pages {
		if _, err := io.WriteString(w, pages[i].Text); err != nil {
			return &outputError{err}
		}
	}
	return nil
}

type completionCmd struct {
	Shell string `arg:"" name:"SHELL" enum:"bash,zsh,fish,powershell" help:"bash, zsh, fish or powershell."`
}

func (*completionCmd) Help() string {
	return `Prints a script by which a shell completes commands, flags, and those of their values that can be
listed. It is made from what this very program understands. Names on a server, its exports and your aliases are
completed, too: the script asks this program, which asks the server, for a second at most.

  nfsbox completion bash >~/.local/share/bash-completion/completions/nfsbox
  nfsbox completion fish >~/.config/fish/completions/nfsbox.fish
  nfsbox completion zsh >~/.zfunc/_nfsbox  # in $fpath, before compinit
  nfsbox completion powershell >>$PROFILE

For all users they belong in /usr/share/bash-completion/completions/nfsbox,
/usr/share/fish/vendor_completions.d/nfsbox.fish and /usr/share/zsh/vendor-completions/_nfsbox.

For this shell alone, in bash: eval "$(nfsbox completion bash)"`
}

func (c *completionCmd) Run(e *env) error {
	app, err := whole()
	if err != nil {
		return err
	}
	program := manual.Of(app)
	scripts := map[string]func(*manual.Command) string{"bash": manual.Bash, "zsh": manual.Zsh, "fish": manual.Fish, "powershell": manual.PowerShell}
	if _, err := io.WriteString(e.stdout, scripts[c.Shell](&program)); err != nil {
		return &outputError{err}
	}
	return nil
}
