package main

import (
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

// byteArgs has one value of each kind that byteMappers takes.
type byteArgs struct {
	Places []string `arg:"" optional:""`
	Name   string
	Out    string `type:"path"`
	File   string `type:"existingfile"`
	Dir    string `type:"existingdir"`
}

// TestByteMappers: names that are not UTF-8 are taken as they are, and all others as kong's own
// mappers take them, with the same refusals.
func TestByteMappers(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	parse := func(args []string, options ...kong.Option) (got byteArgs, refusal string) {
		p, err := kong.New(&got, append(options, kong.Writers(io.Discard, io.Discard))...)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Parse(args); err != nil {
			refusal = err.Error()
		}
		return got, refusal
	}
	if err := os.WriteFile("file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("dir", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"a", "b,c", "\u00fc"}, {"--name=x"}, {"--name", ""}, {"--name"}, {"--out=x"}, {"--out=-"}, {"--out=~/x"}, {"--out="},
		{"--file=file"}, {"--file=-"}, {"--file=dir"}, {"--file=none"}, {"--file"},
		{"--dir=dir"}, {"--dir=file"}, {"--dir=none"}, {"--dir=-"}, {"--dir="},
	} {
		want, why := parse(args)
		got, refusal := parse(args, byteMappers()...)
		if refusal != why || refusal == "" && !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %q, want %+v, %q", args, got, refusal, want, why)
		}
	}
}

// TestByteMappersNotUTF8 is of hosts whose names are bytes.
func TestByteMappersNotUTF8(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	const odd = "x\xff"
	if err := os.Mkdir(odd, 0o700); err != nil {
		need.Missing(t, "names that are not UTF-8", err.Error())
	}
	file := filepath.Join(odd, "f\xfe")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var got byteArgs
	p, err := kong.New(&got, byteMappers()...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Parse([]string{odd, "--name=" + odd, "--out", odd, "--file", file, "--dir", odd}); err != nil {
		t.Fatal(err)
	}
	want := byteArgs{[]string{odd}, odd, filepath.Join(dir, odd), filepath.Join(dir, file), filepath.Join(dir, odd)}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+q, want %+q", got, want)
	}
}
