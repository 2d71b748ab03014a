//go:build linux

package conformance

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// kernelPackage is the package of Debian that depends on the one with the kernel.
const kernelPackage = "linux-image-amd64"

// kernel is an unpacked kernel package.
type kernel struct {
	image   string            // vmlinuz
	modules map[string]string // paths by names, with '_' for '-'
}

func cacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(base, "nfsbox-conformance")
	return dir, os.MkdirAll(dir, 0o755)
}

func run(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var out, diag bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diag
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %.1000s", name, strings.Join(args, " "), err, diag.Bytes())
	}
	return out.String(), nil
}

// unpacked is the directory with the contents of a Debian package, which is
// downloaded if it has not been yet.
func unpacked(ctx context.Context, name string) (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, name)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	tmp, err := os.MkdirTemp(cache, "fetch-")
	if err != nil {
		return "", err
	}
	return dir, errors.Join(fetch(ctx, name, tmp, dir), os.RemoveAll(tmp))
}

// fetch downloads a package into tmp, unpacks it there and, if all went well,
// moves it to dir.
func fetch(ctx context.Context, name, tmp, dir string) error {
	if _, err := run(ctx, tmp, "apt-get", "download", name); err != nil {
		return err
	}
	debs, err := filepath.Glob(filepath.Join(tmp, "*.deb"))
	if err != nil || len(debs) != 1 {
		return fmt.Errorf("apt-get download %s left %q (%w)", name, debs, err)
	}
	tree := filepath.Join(tmp, "tree")
	if _, err := run(ctx, tmp, "dpkg-deb", "-x", debs[0], tree); err != nil {
		return err
	}
	return os.Rename(tree, dir)
}

func findKernel(ctx context.Context) (*kernel, error) {
	depends, err := run(ctx, "", "apt-cache", "depends", kernelPackage)
	if err != nil {
		return nil, err
	}
	name := regexp.MustCompile(`Depends: (linux-image-[0-9]\S+)`).FindStringSubmatch(depends)
	if name == nil {
		return nil, fmt.Errorf("%s depends on no kernel that apt-cache knows of (apt-get update?)", kernelPackage)
	}
	dir, err := unpacked(ctx, name[1])
	if err != nil {
		return nil, err
	}
	k := &kernel{modules: make(map[string]string)}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch base := filepath.Base(path); {
		case err != nil:
			return err
		case strings.HasPrefix(base, "vmlinuz-"):
			k.image = path
		case d.Type().IsRegular() && strings.Contains(base, ".ko"):
			module, _, _ := strings.Cut(base, ".ko")
			k.modules[strings.ReplaceAll(module, "-", "_")] = path
		}
		return nil
	})
	if err == nil && k.image == "" {
		err = fmt.Errorf("%s has no kernel in it", name[1])
	}
	return k, err
}

// module is one to be loaded.
type module struct {
	name string
	data []byte
}

// load returns modules in the order in which they load, each behind what it
// depends on. What the package does not have is built into the kernel.
func (k *kernel) load(ctx context.Context, names ...string) ([]module, error) {
	var all []module
	seen := make(map[string]bool)
	var visit func(name string) error
	visit = func(name string) error {
		name = strings.ReplaceAll(name, "-", "_")
		path := k.modules[name]
		if seen[name] || path == "" {
			return nil
		}
		seen[name] = true
		data, err := readModule(ctx, path)
		if err != nil {
			return err
		}
		needs, err := dependencies(data)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for _, need := range needs {
			if err := visit(need); err != nil {
				return err
			}
		}
		all = append(all, module{name + ".ko", data})
		return nil
	}
	for _, name := range names {
		if err := visit(name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// readModule reads a module, which newer packages compress.
func readModule(ctx context.Context, path string) ([]byte, error) {
	if !strings.HasSuffix(path, ".xz") {
		return os.ReadFile(path)
	}
	out, err := run(ctx, "", "xz", "-dc", path)
	return []byte(out), err
}

// dependencies are what a module says that it wants to be loaded before it.
func dependencies(data []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	section := f.Section(".modinfo")
	if section == nil {
		return nil, errors.New("it is no module")
	}
	info, err := section.Data()
	if err != nil {
		return nil, err
	}
	var names []string
	for field := range strings.SplitSeq(string(info), "\x00") {
		if list, ok := strings.CutPrefix(field, "depends="); ok {
			names = append(names, strings.FieldsFunc(list, func(r rune) bool { return r == ',' })...)
		}
		if list, ok := strings.CutPrefix(field, "softdep=pre: "); ok {
			names = append(names, strings.Fields(list)...)
		}
	}
	return names, nil
}
