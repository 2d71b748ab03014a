//go:build !unix

package job

import (
	"context"
	"os"
)

// Locks says whether this system has locks that keep a second run of a job out.
const Locks = false

// Lock does nothing.
func Lock(context.Context, *os.File) error { return nil }

// Held knows of no run.
func Held(*os.File) (by string, held bool, err error) { return "", false, nil }

// lockFile does nothing: on this system a second run of the job is not kept out.
func lockFile(context.Context, *os.File) error { return nil }
