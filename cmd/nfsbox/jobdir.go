package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/place"
)

// jobNames matches names of jobs: they become names of directories.
var jobNames = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// jobName is the name of a job; "" if there is none.
type jobName string

// Decode takes the name from the command line. It refuses an empty one: a script with an empty
// variable would run without a record.
func (n *jobName) Decode(ctx *kong.DecodeContext) error {
	var name string
	if err := ctx.Scan.PopValueInto("name", &name); err != nil {
		return err
	}
	if !jobNames.MatchString(name) {
		return fmt.Errorf("%q: a name has 1 to 64 letters, digits, dots, dashes and underscores, and begins with a letter or digit", name)
	}
	*n = jobName(name)
	return nil
}

// openJob opens, or makes, the directory of a job, and locks the record in it. Without a name, or
// with an error, both are nil.
func openJob(ctx context.Context, name jobName) (root *os.Root, locked *os.File, err error) {
	if name == "" {
		return nil, nil, nil
	}
	state, err := stateDir()
	if err != nil {
		return nil, nil, fmt.Errorf("--job: %w", err)
	}
	dir := filepath.Join(state, "nfsbox", "jobs", string(name))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("--job: %w", err)
	}
	if root, err = os.OpenRoot(dir); err != nil {
		return nil, nil, fmt.Errorf("--job: %w", err)
	}
	if locked, err = job.LockRecord(ctx, root); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("--job %s: %w", name, err), root.Close())
	}
	return root, locked, nil
}

// stateDir is the directory for state of programs (XDG Base Directory Specification).
func stateDir() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".local", "state"), nil
}

// The file in a job's directory that says how its destination was understood.
const (
	targetFile   = "target"
	targetInside = "nfsbox-target-1 inside\n" // DEST was a directory, and the copy is in it
	targetItself = "nfsbox-target-1 itself\n" // DEST is the copy
)

// remembered returns the decision of the job's first run; known is false if this is the first
// run, or there is no job.
func remembered(record *os.Root) (inside, known bool, err error) {
	if record == nil {
		return false, false, nil
	}
	switch b, err := job.ReadSmall(record, targetFile); {
	case err == nil && string(b) == targetInside:
		return true, true, nil
	case err == nil && string(b) == targetItself:
		return false, true, nil
	case err == nil:
		return false, false, fmt.Errorf("--job: %s: not a file of ours; remove the job's directory to begin anew", filepath.Join(record.Name(), targetFile))
	case !errors.Is(err, fs.ErrNotExist):
		return false, false, fmt.Errorf("--job: %w", err)
	}
	return false, false, nil
}

// remember stores inside for later runs. The file is written before anything is copied, and is
// whole or absent.
func remember(record *os.Root, inside bool) error {
	text := targetItself
	if inside {
		text = targetInside
	}
	if err := writeSynced(record, targetFile, text); err != nil {
		return fmt.Errorf("--job: %w", err)
	}
	return nil
}

// The file in a job's directory that tells people what the job copies: after the first line, one
// line each for SOURCE and DEST, quoted. The record itself decides which job it is. A job from
// before this file existed gets one when it is resumed.
const (
	placesFile  = "places"
	placesMagic = "nfsbox-places-1\n"
	placesLines = placesMagic + "%q\n%q\n"
)

// jobID identifies a job: the same command, whatever the working directory.
func jobID(source, dest string) string {
	return strings.Join([]string{"cp", jobPlace(source), jobPlace(dest)}, "\x00")
}

// belongs returns an error if the job called name has another source or destination. It is called
// before DEST is looked up: otherwise a mistyped DEST would look like one that is gone.
func belongs(record *os.Root, name jobName, source, dest string) error {
	was, err := job.ReadSmall(record, placesFile)
	known := err == nil && strings.HasPrefix(string(was), placesMagic)
	if !job.OfAnother(record, jobID(source, dest)) && (!known || string(was) == places(source, dest)) {
		return nil
	}
	what := "copies another SOURCE, or to another DEST; these need"
	var from, to string
	if n, err := fmt.Sscanf(string(was), placesLines, &from, &to); n == 2 && err == nil {
		what = fmt.Sprintf("copies %s to %s; another SOURCE or DEST needs", quoteArg(from), quoteArg(to))
	}
	return fmt.Errorf("the job %s %s another --job NAME. Nothing has been copied", name, what)
}

func places(source, dest string) string {
	return fmt.Sprintf(placesLines, jobPlace(source), jobPlace(dest))
}

// notePlaces writes placesFile, if the job has none. The caller has called belongs.
func notePlaces(record *os.Root, source, dest string) error {
	if record == nil {
		return nil
	}
	if _, err := record.Stat(placesFile); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := writeSynced(record, placesFile, places(source, dest)); err != nil {
		return fmt.Errorf("--job: %w", err)
	}
	return nil
}

// writeSynced writes a file, whole or not at all, and makes it stable.
func writeSynced(dir *os.Root, name, text string) error {
	f, err := dir.OpenFile(name+".tmp", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := dir.Rename(name+".tmp", name); err != nil {
		return err
	}
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// jobPlace is a place in the form that identifies a job: paths are absolute.
func jobPlace(arg string) string {
	if place.IsURL(arg) {
		return arg
	}
	if abs, err := filepath.Abs(arg); err == nil {
		return abs
	}
	return arg
}
