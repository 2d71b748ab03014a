package queue

import (
	"fmt"
	"regexp"
)

var (
	names = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	runs  = regexp.MustCompile(`^[0-9a-f]{32}$`)
)

// Check says what is wrong with a job, whoever has made it: its name, its run, or the length of
// its Spec (ErrTooLong). What Spec says is left to its reader.
func (j Job) Check() error {
	switch {
	case !names.MatchString(j.Name):
		return fmt.Errorf("job %.80q: a name has 1 to 64 letters, digits, dots, dashes and underscores, and begins with a letter or digit", j.Name)
	case !runs.MatchString(j.Run):
		return fmt.Errorf("job %s, run %.80q: a run has 32 hexadecimal digits in lower case", j.Name, j.Run)
	case len(j.Spec) > MaxSpec:
		return fmt.Errorf("job %s: its description has %d bytes, and %d are possible: %w", j.Name, len(j.Spec), MaxSpec, ErrTooLong)
	}
	return nil
}

// Check says what is wrong with an item: its length (ErrTooLong).
func (it Item) Check() error {
	if len(it.Body) > MaxItem {
		return fmt.Errorf("item %d has %d bytes, and %d are possible: %w", it.ID, len(it.Body), MaxItem, ErrTooLong)
	}
	return nil
}

// CheckMessage says what is wrong with a question or an answer: its length (ErrTooLong).
func CheckMessage(m []byte) error {
	if len(m) > MaxMessage {
		return fmt.Errorf("a message has %d bytes, and %d are possible: %w", len(m), MaxMessage, ErrTooLong)
	}
	return nil
}
