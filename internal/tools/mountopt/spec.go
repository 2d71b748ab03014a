package mountopt

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/nfsbox/nfsbox"
)

// errSpec says what is mounted.
var errSpec = errors.New("is neither HOST:/PATH, nor [ADDRESS]:/PATH, nor nfs://HOST/PATH")

// address is the URL of a spec with further arguments, which replace its own of the same name, and those that they
// contradict.
func address(spec string, args []string) (string, error) {
	text := spec
	if !strings.HasPrefix(spec, "nfs://") {
		host, path, ok := hostPath(spec)
		if !ok {
			return "", fmt.Errorf("%q %w", spec, errSpec)
		}
		text = (&nfsbox.URL{Host: host, Path: path}).String()
	}
	text, query, _ := strings.Cut(text, "?")
	for old := range strings.SplitSeq(query, "&") {
		if old != "" && !replaced(argName(old), args) {
			args = append(args, old)
		}
	}
	if len(args) > 0 {
		text += "?" + strings.Join(args, "&")
	}
	if _, err := nfsbox.ParseURL(text); err != nil {
		return "", err
	}
	return text, nil
}

// replaced reports whether an argument of the spec gives way to one of args.
func replaced(old string, args []string) bool {
	for _, arg := range args {
		name := argName(arg)
		if name == old {
			return true
		}
		for _, group := range [...][]string{{"hard", "soft", "softerr"}, {"resvport", "noresvport"}} {
			if contains(group, name) && contains(group, old) {
				return true
			}
		}
	}
	return false
}

func contains(list []string, s string) bool {
	for _, one := range list {
		if one == s {
			return true
		}
	}
	return false
}

// has reports whether a spec is a URL with one of these arguments.
func has(spec string, names ...string) bool {
	_, query, _ := strings.Cut(spec, "?")
	for arg := range strings.SplitSeq(query, "&") {
		if strings.HasPrefix(spec, "nfs://") && contains(names, argName(arg)) {
			return true
		}
	}
	return false
}

// hostPath divides HOST:/PATH and [ADDRESS]:/PATH, as nfs(5) has them.
func hostPath(spec string) (host, path string, ok bool) {
	if v6, rest, is := strings.Cut(spec, "]:/"); is && strings.HasPrefix(spec, "[") {
		addr, err := netip.ParseAddr(v6[1:])
		return v6[1:], "/" + rest, err == nil && addr.Is6()
	}
	host, path, ok = strings.Cut(spec, ":/")
	return host, "/" + path, ok && host != "" && !strings.HasPrefix(path, "/") && !strings.ContainsAny(host, "/ \t[]:")
}
