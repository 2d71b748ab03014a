// Package demotree has the trees that nfsbox demo serves: that of the Go installation, or one that is generated.
package demotree

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// GoSource is the source tree of the Go installation, or "" where there is none.
func GoSource(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return ""
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "src")
	if info, err := os.Stat(dir); err != nil || !info.IsDir() || !filepath.IsAbs(dir) {
		return ""
	}
	return dir
}

// The generated tree, for hosts without a Go installation.
const (
	treeDirs     = 60
	filesPerDir  = 100
	maxTreeFile  = 64 << 10 // bytes
	treeSeed     = 1813     // the same tree every time
	treeModified = 1_700_000_000
)

// Make makes the tree in dir: the same one each time.
func Make(dir string) error {
	random := rand.New(rand.NewPCG(treeSeed, treeSeed))
	buf := make([]byte, maxTreeFile)
	for i := range buf {
		buf[i] = byte(random.Uint32())
	}
	for i := range treeDirs {
		sub := filepath.Join(dir, fmt.Sprintf("dir-%02d", i%8), fmt.Sprintf("sub-%02d", i))
		if err := os.MkdirAll(sub, 0o755); err != nil {
			return err
		}
		for j := range filesPerDir {
			from := random.IntN(len(buf))
			if err := makeFile(filepath.Join(sub, fmt.Sprintf("file-%03d", j)), buf[from:from+random.IntN(len(buf)-from)]); err != nil {
				return err
			}
		}
		if err := os.Symlink("file-000", filepath.Join(sub, "symlink")); err != nil {
			return err
		}
		if err := os.Link(filepath.Join(sub, "file-001"), filepath.Join(sub, "hardlink")); err != nil {
			return err
		}
	}
	return nil
}

func makeFile(path string, contents []byte) error {
	if err := os.WriteFile(path, contents, 0o644); err != nil {
		return err
	}
	at := time.Unix(treeModified+int64(len(contents)), 0)
	return os.Chtimes(path, at, at)
}
