package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// imageSize is that of an ext4 of a turn's own, in bytes: sparse, it takes what is
// written to it.
const imageSize = 8 << 30

// ground makes the directory that a turn serves, and returns how to leave nothing of it
// for those who come after.
func (o *options) ground(ctx context.Context, home string) (string, func() error, error) {
	dir, err := os.MkdirTemp(home, "turn-")
	if err != nil || !o.fresh {
		return dir, func() error { return empty(dir) }, err
	}
	image := dir + ".ext4"
	gone := func() error { return errors.Join(os.Remove(dir), os.Remove(image)) }
	if err := mount(ctx, image, dir); err != nil {
		return "", nil, errors.Join(err, gone())
	}
	return filepath.Join(dir, "files"), func() error {
		return errors.Join(command(context.WithoutCancel(ctx), "umount", dir), gone())
	}, nil
}

// mount makes a file system in the file image, and mounts it on dir.
func mount(ctx context.Context, image, dir string) error {
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(image, imageSize); err != nil {
		return err
	}
	if err := command(ctx, "mkfs.ext4", "-q", "-E", "lazy_itable_init=0", image); err != nil {
		return err
	}
	if err := command(ctx, "mount", "-o", "loop", image, dir); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(dir, "files"), 0o755); err != nil {
		return errors.Join(err, command(ctx, "umount", dir))
	}
	return nil
}

func command(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

// empty removes what is in dir. The directory itself stays until the end, so that the
// next one is made elsewhere on the disk (scatter).
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}
