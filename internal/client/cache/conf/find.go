package conf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nfsbox/nfsbox/internal/client/cache/store"
)

// Find is the configuration of a cache of this process's user: that of a file, or if none is named and the user
// is root, of cachefilesd's, if there is one. A dir that is named comes before the file's. Without any
// dir it is a default, which is made if it is missing.
func Find(file, dir string) (*Config, error) {
	root := os.Geteuid() == 0
	if file == "" && root {
		if _, err := os.Stat(File); err == nil {
			file = File
		}
	}
	c := &Config{Limits: store.DefaultLimits}
	if file != "" {
		read, err := Read(file)
		if err != nil {
			return nil, fmt.Errorf("configuration of the cache: %w", err)
		}
		c = read
	}
	if dir != "" {
		c.Dir = dir
	}
	if c.Dir != "" {
		return c, nil
	}
	c.Dir = "/var/cache/nfsbox"
	if !root {
		home, err := os.UserCacheDir()
		if err != nil {
			return nil, notMade(err)
		}
		c.Dir = filepath.Join(home, "nfsbox")
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, notMade(err)
	}
	return c, nil
}

// notMade says that there is no place for the default directory, and how another one is named.
func notMade(err error) error {
	hint := "name one with cache=DIR in the URL, or with --dir of nfsbox cache"
	if os.Geteuid() != 0 {
		hint += ", or set XDG_CACHE_HOME to a directory that can be written"
	}
	return fmt.Errorf("directory of the cache: %w: %s", err, hint)
}
