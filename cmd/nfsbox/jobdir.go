package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/nfsbox/nfsbox/internal/place"
)

// jobName is what a job may be called: it becomes the name of a directory.
var jobName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// openJob opens, or makes, the directory in which the job called name keeps its
// record. Without a name there is none.
func openJob(name string) (*os.Root, error) {
	if name == "" {
		return nil, nil
	}
	if !jobName.MatchString(name) {
		return nil, fmt.Errorf("--job %q: a name has 1 to 64 letters, digits, dots, dashes and underscores, and begins with a letter or digit", name)
	}
	state, err := stateDir()
	if err != nil {
		return nil, fmt.Errorf("--job: %w", err)
	}
	dir := filepath.Join(state, "nfsbox", "jobs", name)
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
