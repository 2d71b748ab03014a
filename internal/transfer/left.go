package transfer

import "fmt"

// LeftError says that a temporary could not be removed, so that it may still be there.
type LeftError struct {
	Name string // in the directory of the copy
	Err  error
}

func (e *LeftError) Error() string {
	return fmt.Sprintf("the temporary %s is left behind: %v", e.Name, e.Err)
}

func (e *LeftError) Unwrap() error { return e.Err }
