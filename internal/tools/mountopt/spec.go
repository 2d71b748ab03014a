package mountopt

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/nfsbox/nfsbox"
)

// errSpec says what is mounted.
var errSpec = errors.New("is neither HOST:/PATH, nor [ADDRESS]:/PATH, nor nfs://HOST/PATH, nor STORE::NAME with a store that is there")

// errBucket says what is done with a bucket instead.
var errBucket = errors.New("is a bucket, and none is mounted: copy from it and to it with nfsbox cp or sync, or mount it with rclone mount; " +
	"a snapshot in a bucket is mounted as STORE::NAME")

// address is the URL of a spec with further arguments, which replace its own of the same name, and those that they
// contradict.
func address(spec string, args []string) (string, error) {
	text := spec
	if strings.HasPrefix(spec, "s3://") {
		return "", fmt.Errorf("%q %w", spec, errBucket)
	}
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

// attributeArgs are the arguments of URLs that say how long attributes are kept, and which names.
var attributeArgs = [...]string{"ac", "noac", "actimeo", "acregmin", "acregmax", "acdirmin", "acdirmax", "lookupcache"}

// attributes takes what a spec says of the keeping of attributes and names for options, unless there are others of this
// kind: of a mount the kernel keeps them. It returns the spec without.
func (p *parser) attributes(spec string) (string, error) {
	if !has(spec, attributeArgs[:]...) {
		return spec, nil
	}
	if _, err := nfsbox.ParseURL(spec); err != nil {
		return "", err
	}
	times, names := false, false
	for _, name := range attributeArgs {
		_, said := p.said[name]
		times, names = times || said && name != "lookupcache", names || said && name == "lookupcache"
	}
	at, query, _ := strings.Cut(spec, "?")
	var rest []string
	for arg := range strings.SplitSeq(query, "&") {
		name := argName(arg)
		over := times
		if name == "lookupcache" {
			over = names
		}
		switch {
		case !contains(attributeArgs[:], name):
			rest = append(rest, arg)
		case !over:
			if err := p.option(arg); err != nil {
				return "", fmt.Errorf("argument %s: %w", arg, err)
			}
		}
	}
	if len(rest) > 0 {
		at += "?" + strings.Join(rest, "&")
	}
	return at, nil
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
