//go:build !unix

package paths

import (
	"io/fs"
	"os"
)

// Owned takes it as given here.
func Owned(fs.FileInfo) bool { return true }

// SharedWith knows of nobody here.
func SharedWith(string, fs.FileInfo) string { return "" }

// ReplacedBy knows of nobody here.
func ReplacedBy(Step, fs.FileInfo) (who, mend string) { return "", "" }

// Hold cannot lock files here.
func Hold(*os.File) (bool, error) { return true, nil }
