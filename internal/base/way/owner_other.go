//go:build !unix

package way

import "io/fs"

// SharedWith knows of nobody here.
func SharedWith(string, fs.FileInfo) string { return "" }

// ReplacedBy knows of nobody here.
func ReplacedBy(Step, fs.FileInfo) (who, mend string) { return "", "" }
