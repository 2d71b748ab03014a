package main

import (
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

// jobNames are what a job may be called: its name becomes that of a directory.
var jobNames = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// jobName is the name of a job; "" if there is none.
type jobName string

// Decode takes the name from the command line. An empty one is refused, as others are that
// none can have: a script whose variable is empty would go without a record.
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

// openJob opens, or makes, the directory in which the job called name keeps its
// record. Without a name there is none.
func openJob(name jobName) (*os.Root, error) {
	if name == "" {
		return nil, nil
	}
	state, err := stateDir()
	if err != nil {
		return nil, fmt.Errorf("--job: %w", err)
	}
	dir := filepath.Join(state, "nfsbox", "jobs", string(name))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("--job: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("--job: %w", err)
	}
	return root, nil
}

// stateDir is where programs keep what shall outlast them (XDG Base Directory
// Specification).
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

// The file in a job's directory that says how its target was understood.
const (
	targetFile   = "target"
	targetInside = "nfsbox-target-1 inside\n" // DEST was a directory, and the copy is in it
	targetItself = "nfsbox-target-1 itself\n" // DEST is the copy
)

// remembered returns what the job decided when it began; known is false if it begins
// now, or is none.
func remembered(record *os.Root) (inside, known bool, err error) {
	if record == nil {
		return false, false, nil
	}
	switch b, err := record.ReadFile(targetFile); {
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

// remember keeps inside for the next time. The file is written before anything is
// copied, and is whole or absent.
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

// The file in a job's directory that says, for people, what the job copies: a line each for
// SOURCE and DEST, quoted, behind the first. What the job is, its record knows. Jobs of before
// there was this file get it when they go on.
const (
	placesFile  = "places"
	placesMagic = "nfsbox-places-1\n"
	placesLines = placesMagic + "%q\n%q\n"
)

// jobID says what a job is: the same command, from wherever it is given.
func jobID(source, dest string) string {
	return strings.Join([]string{"cp", jobPlace(source), jobPlace(dest)}, "\x00")
}

// belongs is an error if the job called name copies another source, or to another place, than
// these. Nothing has been looked at yet: a DEST that was mistyped is not one that has gone.
func belongs(record *os.Root, name jobName, source, dest string) error {
	was, err := record.ReadFile(placesFile)
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

// places is what placesFile holds.
func places(source, dest string) string {
	return fmt.Sprintf(placesLines, jobPlace(source), jobPlace(dest))
}

// notePlaces writes placesFile, if the job has none. belongs has found that it is the job's.
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

// writeSynced makes the file name with this text, whole or not at all.
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

// jobPlace is a place as a job knows it: a path means the same from every
// working directory.
func jobPlace(arg string) string {
	if place.IsURL(arg) {
		return arg
	}
	if abs, err := filepath.Abs(arg); err == nil {
		return abs
	}
	return arg
}
