package main

import (
	"flag"
	"fmt"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/nfsbox/nfsbox/cmd/xdrgen/internal/emit"
	"github.com/nfsbox/nfsbox/cmd/xdrgen/internal/xdrlang"
)

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

// run is main with its surroundings handed in. It returns the exit code: 0 done,
// 1 a usage error or a specification that cannot be compiled.
func run(args []string, stderr io.Writer) int {
	flags := flag.NewFlagSet("xdrgen", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		_, _ = fmt.Fprint(stderr, "usage: xdrgen [flags] spec.x\n\nWrites Go for a specification in the XDR language (RFC 4506, RFC 5531).\n\n")
		flags.PrintDefaults()
	}
	pkg := flags.String("pkg", "", "package `name` of the generated files (default: the name of the directory they go to)")
	out := flags.String("o", "", "`file` to write (default: <spec>_xdr.go beside spec.x); the tests go beside it, to ..._test.go")
	bulk := flags.String("bulk", "", "comma-separated opaques that travel outside the codec, as `type.field`")
	once := flags.String("once", "", "comma-separated `procedures` that are not safe to repeat")
	open := flags.String("open", "", "comma-separated `enums` that are decoded whatever their value is")
	if err := flags.Parse(args); err != nil {
		return 1
	}
	if flags.NArg() != 1 {
		flags.Usage()
		return 1
	}
	opt := emit.Options{Package: *pkg, Bulk: list(*bulk), Once: list(*once), Open: list(*open)}
	if err := compile(flags.Arg(0), *out, opt); err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

func list(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}

func compile(spec, out string, opt emit.Options) error {
	if out == "" {
		out = strings.TrimSuffix(spec, filepath.Ext(spec)) + "_xdr.go"
	}
	if opt.Package == "" {
		dir, err := filepath.Abs(filepath.Dir(out))
		if err != nil {
			return err
		}
		opt.Package = filepath.Base(dir)
	}
	if !token.IsIdentifier(opt.Package) {
		return fmt.Errorf("%s is no name of a package; give one with -pkg", opt.Package)
	}
	src, err := read(spec)
	if err != nil {
		return err
	}
	parsed, err := xdrlang.Parse(spec, src)
	if err != nil {
		return err
	}
	files, err := emit.Generate(parsed, opt)
	if err != nil {
		return err
	}
	if err := os.WriteFile(out, files.Code, 0o644); err != nil {
		return err
	}
	return os.WriteFile(strings.TrimSuffix(out, ".go")+"_test.go", files.Test, 0o644)
}

// read reads a specification, no more of it than the parser takes.
func read(name string) (src string, err error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	data, err := io.ReadAll(io.LimitReader(f, xdrlang.MaxSource+1))
	return string(data), err
}
