package s3

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/nfsbox/nfsbox/internal/server/bucket"
)

// Options say where a store is.
type Options struct {
	bucket.Options
	Prefix string // of all names, without slashes at its ends; "" is the whole bucket

	// Write has Open try whether the store can be written to safely. Put and Delete work without that, too.
	Write bool
	// Rand numbers Puts; nil is crypto/rand.
	Rand io.Reader
}

// ParseURL reads "s3://BUCKET[/PREFIX][?endpoint=URL&region=NAME&path-style=true|false]". Its errors never
// repeat what might be a secret.
func ParseURL(text string) (Options, error) {
	at, path, err := bucket.ParseURL(text)
	if err != nil {
		return Options{}, err
	}
	if strings.Contains(path, "@") {
		return Options{}, errors.New("s3: the URL has credentials, which are never read from there: " + bucket.WhereCredentials)
	}
	o := Options{Options: at, Prefix: strings.Trim(path, "/")}
	return o, o.check()
}

// check is what is wrong with the prefix.
func (o *Options) check() error {
	if len(o.Prefix) > maxPrefix {
		return fmt.Errorf("s3: the prefix is longer than %d bytes", maxPrefix)
	}
	for segment := range strings.SplitSeq(o.Prefix, "/") {
		if o.Prefix != "" && bucket.CheckName(segment) != nil {
			return errors.New("s3: the prefix is made of names of A-Z, a-z, 0-9, '-', '_' and '.', with single slashes between them")
		}
	}
	return nil
}
