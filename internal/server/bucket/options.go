package bucket

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/near"
)

// Options say where a bucket is.
type Options struct {
	Bucket string

	// Endpoint is "https://HOST[:PORT]" or "http://...". Without a scheme it is https. "" is AWS_ENDPOINT_URL_S3,
	// AWS_ENDPOINT_URL, or else AWS.
	Endpoint string
	// Region is what signatures name. "" is AWS_REGION, AWS_DEFAULT_REGION, or what the store says.
	Region string
	// PathStyle has the bucket in the path and not in the host's name. nil: as is usual at Endpoint, in the
	// path but for AWS.
	PathStyle *bool

	// Credentials are used instead of those that are found; zero: they are looked for.
	Credentials Credentials
	// Pause waits between tries; nil does by the clock.
	Pause func(ctx context.Context, d time.Duration) error
	// Silent is told of a store that answers no request for silentTime, or refuses all for a while, and that it answers again. Requests
	// wait for it: it is called by one goroutine at a time. nil: nobody is told.
	Silent func(Silence)
}

// Scheme is what every URL of a bucket begins with.
const Scheme = "s3://"

// arg is an argument of a URL.
type arg struct {
	name string
	set  func(o *Options, value string) error
}

var args = []arg{
	{"endpoint", func(o *Options, v string) error { o.Endpoint = v; _, err := parseEndpoint(v); return err }},
	{"region", func(o *Options, v string) error { o.Region = v; return checkRegion(v) }},
	{"path-style", func(o *Options, v string) error {
		on, err := strconv.ParseBool(v)
		if o.PathStyle = &on; err != nil && v != "" {
			return errors.New("it is true or false")
		}
		*o.PathStyle = on || v == ""
		return nil
	}},
}

// ParseURL reads "s3://BUCKET[/PATH][?endpoint=URL&region=NAME&path-style=true|false]". path is as it is written, with the slash
// that it begins with. Errors never repeat what might be a secret.
func ParseURL(text string) (o Options, path string, err error) {
	rest, ok := strings.CutPrefix(text, Scheme)
	if !ok {
		return Options{}, "", fmt.Errorf("s3: a bucket begins with %s", Scheme)
	}
	rest, query, _ := strings.Cut(rest, "?")
	if o.Bucket = rest; strings.Contains(rest, "/") {
		o.Bucket, path, _ = strings.Cut(rest, "/")
		path = "/" + path
	}
	if strings.Contains(o.Bucket, "@") {
		return Options{}, "", errors.New("s3: the URL has credentials, which are never read from there: " + WhereCredentials)
	}
	if err := o.parseArgs(query); err != nil {
		return Options{}, "", err
	}
	return o, path, o.check()
}

// parseArgs reads the arguments of a URL.
func (o *Options) parseArgs(query string) error {
	seen := make(map[string]bool)
	for one := range strings.SplitSeq(query, "&") {
		if one == "" {
			continue
		}
		name, value, _ := strings.Cut(one, "=")
		if seen[name] {
			return fmt.Errorf("s3: %s= is given twice", name)
		}
		i := slices.IndexFunc(args, func(a arg) bool { return a.name == name })
		if i < 0 {
			return unknown(name)
		}
		seen[name] = true
		value, err := url.QueryUnescape(value)
		if err == nil {
			err = args[i].set(o, value)
		} else {
			err = errors.New("a wrong %-escape")
		}
		if err != nil {
			return fmt.Errorf("s3: %s=: %w", name, err)
		}
	}
	return nil
}

// unknown is the error of an argument that is none. Its name is repeated only if it is like one.
func unknown(name string) error {
	names := func(yield func(string) bool) {
		for _, a := range args {
			if !yield(a.name) {
				return
			}
		}
	}
	if meant := near.Of(name, names); meant != "" {
		return fmt.Errorf("s3: no argument %q: did you mean %s=?", name, meant)
	}
	if CheckName(name) != nil || len(name) > maxBucket {
		name = "one of its arguments"
	}
	return fmt.Errorf("s3: %s is not known; there are endpoint=, region= and path-style=. %s", name, WhereCredentials)
}

// noBucket says why there is no bucket's name. One with other characters is not repeated, as it may be a secret.
func (o *Options) noBucket() string {
	switch {
	case o.Bucket == "":
		return "no bucket's name stands behind s3://"
	case CheckName(o.Bucket) != nil || strings.ToLower(o.Bucket) != o.Bucket:
		return "what stands behind s3:// is no bucket's name"
	case len(o.Bucket) < minBucket:
		return fmt.Sprintf("%q is too short for a bucket's name", o.Bucket)
	}
	return "what stands behind s3:// is too long for a bucket's name"
}

// check is what is wrong with the options.
func (o *Options) check() error {
	if len(o.Bucket) < minBucket || len(o.Bucket) > maxBucket || CheckName(o.Bucket) != nil || strings.ToLower(o.Bucket) != o.Bucket {
		return fmt.Errorf("s3: %s: it has %d to %d characters of a-z, 0-9, '-' and '.'", o.noBucket(), minBucket, maxBucket)
	}
	if err := checkRegion(o.Region); err != nil {
		return fmt.Errorf("s3: region: %w", err)
	}
	_, err := parseEndpoint(o.Endpoint)
	if err != nil {
		return fmt.Errorf("s3: endpoint: %w", err)
	}
	return nil
}

// CheckName wants a name that is the same in a URL, a path and a signature.
func CheckName(s string) error {
	for i := range len(s) {
		c := s[i]
		if ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || i > 0 && (c == '-' || c == '.' || c == '_') {
			continue
		}
		return errors.New("not a plain name")
	}
	if s == "" {
		return errors.New("no name")
	}
	return nil
}

func checkRegion(s string) error {
	if s != "" && (CheckName(s) != nil || len(s) > maxBucket) {
		return errors.New("a region is a name such as eu-central-1")
	}
	return nil
}

// parseEndpoint reads an endpoint; nil is AWS.
func parseEndpoint(s string) (*url.URL, error) {
	if s == "" {
		return nil, nil
	}
	if !strings.Contains(s, "://") {
		s = "https://" + s
	}
	u, err := url.Parse(s)
	switch {
	case err != nil: // whose text has all of it
		return nil, errors.New("no URL: it is https://HOST[:PORT] or http://HOST[:PORT]")
	case u.User != nil || strings.Contains(s, "@"):
		return nil, errors.New("it has credentials, which are never read from there: " + WhereCredentials)
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("it is https://HOST[:PORT] or http://HOST[:PORT]")
	case u.Hostname() == "":
		return nil, errors.New("it has no host")
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("it is a host, and a port: no path, and no arguments")
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}, nil
}
