//go:build !unix

package job

import "os"

// lockFile does nothing: on this system a second run of the job is not kept out.
func lockFile(*os.File) error { return nil }
