//go:build !unix

package daemon

import (
	"io/fs"
	"os"
)

// owned cannot tell, and takes it as given.
func owned(fs.FileInfo) bool { return true }

// sharedWith and replacedBy cannot tell.
func sharedWith(string, fs.FileInfo) string { return "" }

func replacedBy(mark, fs.FileInfo) (who, mend string) { return "", "" }

// hold cannot lock files here.
func hold(*os.File) (bool, error) { return true, nil }
