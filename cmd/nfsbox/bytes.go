package main

import (
	"fmt"
	"os"
	"reflect"

	"github.com/alecthomas/kong"
)

// byteMappers has kong take arguments as the bytes that they are. Its own mappers take a string
// through encoding/json, which puts U+FFFD for bytes that are not UTF-8: the command would read
// or overwrite another file than the one that was named.
func byteMappers() []kong.Option {
	return []kong.Option{
		kong.KindMapper(reflect.String, kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
			s, err := argument(ctx)
			if err == nil {
				target.SetString(s)
			}
			return err
		})),
		kong.NamedMapper("path", pathMapper(func(string) error { return nil })),
		kong.NamedMapper("existingfile", pathMapper(func(path string) error { return mustBe(path, false) })),
		kong.NamedMapper("existingdir", pathMapper(func(path string) error { return mustBe(path, true) })),
	}
}

// argument takes the next argument of a value.
func argument(ctx *kong.DecodeContext) (string, error) {
	t, err := ctx.Scan.PopValue("string")
	if err != nil {
		return "", err
	}
	s, ok := t.Value.(string)
	if !ok {
		return "", fmt.Errorf("expected a string but got %v", t.Value)
	}
	return s, nil
}

// pathMapper makes a path absolute, as kong's own mappers do, and has check look at it. "-"
// stays as it is.
func pathMapper(check func(path string) error) kong.MapperFunc {
	return func(ctx *kong.DecodeContext, target reflect.Value) error {
		path, err := argument(ctx)
		if err != nil || !ctx.Value.Active {
			return err
		}
		if path != "-" && path != "" {
			path = kong.ExpandPath(path)
			if err := check(path); err != nil {
				return err
			}
		}
		target.SetString(path)
		return nil
	}
}

// mustBe refuses a path that is not there, or not a directory if dir says so, or else one.
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
