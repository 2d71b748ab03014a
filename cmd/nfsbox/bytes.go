package main

import (
	"fmt"
	"os"
	"reflect"

	"github.com/alecthomas/kong"
)

// byteMappers has kong take arguments as the bytes that they are. Its own mappers take a string
// through encoding/json, which puts U+FFFD for bytes that are not UTF-8. The command would read
// or overwrite another file than the one that was named.
func byteMappers() []kong.Option {
	return []kong.Option{
		kong.KindMapper(reflect.String, kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
			s, err := argument(ctx, "string")
			if err == nil {
				target.SetString(s)
			}
			return err
		})),
		kong.NamedMapper("path", pathMapper(func(path string) (string, error) {
			if path == "-" {
				return path, nil
			}
			return kong.ExpandPath(path), nil
		})),
		kong.NamedMapper("existingfile", pathMapper(func(path string) (string, error) {
			if path == "-" {
				return path, nil
			}
			path = kong.ExpandPath(path)
			return path, mustBe(path, false)
		})),
		kong.NamedMapper("existingdir", pathMapper(func(path string) (string, error) {
			path = kong.ExpandPath(path)
			return path, mustBe(path, true)
		})),
	}
}

// argument takes the next argument of a value, which kind is, for messages.
func argument(ctx *kong.DecodeContext, kind string) (string, error) {
	t, err := ctx.Scan.PopValue(kind)
	if err != nil {
		return "", err
	}
	s, ok := t.Value.(string)
	if !ok {
		return "", fmt.Errorf("expected a %s but got %v", kind, t.Value)
	}
	return s, nil
}

// pathMapper takes a path as expand returns it. The paths are those of kong's own mappers:
// absolute, with ~/ as the user's directory.
func pathMapper(expand func(path string) (string, error)) kong.MapperFunc {
	return func(ctx *kong.DecodeContext, target reflect.Value) error {
		path, err := argument(ctx, "file")
		if err == nil {
			path, err = expand(path)
		}
		if err != nil {
			return err
		}
		target.SetString(path)
		return nil
	}
}

// mustBe refuses a path that is not there, or that is a directory where dir is false, or none
// where it is true.
func mustBe(path string, dir bool) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case dir && !info.IsDir():
		return fmt.Errorf("%q exists but is not a directory", path)
	case !dir && info.IsDir():
		return fmt.Errorf("%q exists but is a directory", path)
	}
	return nil
}
