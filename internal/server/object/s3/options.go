package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/nfsbox/nfsbox/internal/base/near"
)

// Options say where a store is. They hold no secrets.
type Options struct {
	Bucket string
	Prefix string // of all names, without slashes at its ends; "" is the whole bucket

	// Endpoint is "https://HOST[:PORT]" or "http://...". Without a scheme it is https. "" is AWS_ENDPOINT_URL_S3,
	// AWS_ENDPOINT_URL, or else AWS.
	Endpoint string
	// Region is what signatures name. "" is AWS_REGION, AWS_DEFAULT_REGION, or what the store says.
	Region string
	// PathStyle has the bucket in the path and not in the host's name. nil: as is usual at Endpoint, in the
	// path but for AWS.
	PathStyle *bool

	// Write has Open try whether the store can be written to safely. Put and Delete work without that, too.
	Write bool

	// Rand numbers Puts; nil is crypto/rand. Pause waits between tries; nil does by the clock.
	Rand  io.Reader
	Pause func(ctx context.Context, d time.Duration) error

	creds *credentials.Credentials // of tests
}

// scheme is what every URL of a store begins with.
const scheme = "s3://"

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

// ParseURL reads "s3://BUCKET[/PREFIX][?endpoint=URL&region=NAME&path-style=true|false]". Its errors never
// repeat what might be a secret.
func ParseURL(text string) (Options, error) {
	rest, ok := strings.CutPrefix(text, scheme)
	if !ok {
		return Options{}, fmt.Errorf("s3: a store in S3 begins with %s", scheme)
	}
	rest, query, _ := strings.Cut(rest, "?")
	var o Options
	if strings.Contains(rest, "@") {
		return Options{}, errors.New("s3: the URL has credentials, which are never read from there: " + whereCredentials)
	}
	o.Bucket, o.Prefix, _ = strings.Cut(rest, "/")
	o.Prefix = strings.Trim(o.Prefix, "/")
	seen := make(map[string]bool)
	for one := range strings.SplitSeq(query, "&") {
		if one == "" {
			continue
		}
		name, value, _ := strings.Cut(one, "=")
		if seen[name] {
			return Options{}, fmt.Errorf("s3: %s= is given twice", name)
		}
		i := slices.IndexFunc(args, func(a arg) bool { return a.name == name })
		if i < 0 {
			return Options{}, unknown(name)
		}
		seen[name] = true
		value, err := url.QueryUnescape(value)
		if err == nil {
			err = args[i].set(&o, value)
		} else {
			err = errors.New("a wrong %-escape")
		}
		if err != nil {
			return Options{}, fmt.Errorf("s3: %s=: %w", name, err)
		}
	}
	return o, o.check()
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
	if checkName(name) != nil || len(name) > maxBucket {
		name = "one of its arguments"
	}
	return fmt.Errorf("s3: %s is not known; there are endpoint=, region= and path-style=. %s", name, whereCredentials)
}

// check is what is wrong with the options.
func (o *Options) check() error {
	if len(o.Bucket) < minBucket || len(o.Bucket) > maxBucket || checkName(o.Bucket) != nil || strings.ToLower(o.Bucket) != o.Bucket {
		return errors.New("s3: no bucket's name stands behind s3://: it has 3 to 63 characters of a-z, 0-9, '-' and '.'")
	}
	if len(o.Prefix) > maxPrefix {
		return fmt.Errorf("s3: the prefix is longer than %d bytes", maxPrefix)
	}
	for segment := range strings.SplitSeq(o.Prefix, "/") {
		if o.Prefix != "" && checkName(segment) != nil {
			return errors.New("s3: the prefix is made of names of A-Z, a-z, 0-9, '-', '_' and '.', with single slashes between them")
		}
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

// checkName wants a name that is the same in a URL, a path and a signature.
func checkName(s string) error {
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
	if s != "" && (checkName(s) != nil || len(s) > maxBucket) {
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
		return nil, errors.New("it has credentials, which are never read from there: " + whereCredentials)
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("it is https://HOST[:PORT] or http://HOST[:PORT]")
	case u.Hostname() == "":
		return nil, errors.New("it has no host")
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("it is a host, and a port: no path, and no arguments")
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}, nil
}
