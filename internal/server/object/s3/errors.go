package s3

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"unicode"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// refusal is an answer that is no success.
type refusal struct {
	op      string // the method
	place   string
	bucket  string
	status  int
	code    string // of S3, such as "NoSuchKey"; "" where there is none
	message string
	region  string // where the bucket is, if the answer says so
	foreign string // what shows that S3 has not answered
	unsure  bool   // an earlier try may have been executed
}

// refuse reads an error.
func (s *Store) refuse(q *request, a *answer) *refusal {
	r := &refusal{op: q.method, place: s.place(), bucket: s.o.Bucket, status: a.status, region: a.header.Get("X-Amz-Bucket-Region")}
	var e struct {
		XMLName               xml.Name `xml:"Error"`
		Code, Message, Region string
	}
	switch err := xml.NewDecoder(bytes.NewReader(a.body)).Decode(&e); {
	case err == nil:
		r.code, r.message = s.show(e.Code), s.show(e.Message)
		if r.region == "" {
			r.region = e.Region
		}
	case q.method != http.MethodHead && len(bytes.TrimSpace(a.body)) > 0:
		r.foreign = "it is no error of S3, but " + s.show(a.header.Get("Content-Type"))
	}
	if checkRegion(r.region) != nil {
		r.region = ""
	}
	return r
}

// passes reports whether the same request may well succeed later.
func (r *refusal) passes() bool {
	switch r.code {
	case "SlowDown", "RequestTimeout", "InternalError", "OperationAborted", "ConditionalRequestConflict", "IncompleteBody",
		"ServiceUnavailable", "BadDigest", "XAmzContentSHA256Mismatch", "TooManyRequests":
		return true
	}
	switch r.status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return !r.full()
	}
	return false
}

func (r *refusal) expired() bool { return r.code == "ExpiredToken" || r.code == "TokenRefreshRequired" }

func (r *refusal) full() bool {
	return r.status == http.StatusInsufficientStorage || strings.Contains(r.code, "Quota") || strings.Contains(r.code, "StorageFull") ||
		r.code == "InsufficientCapacity"
}

// wrongRegion reports whether the bucket is somewhere else.
func (r *refusal) wrongRegion() bool {
	switch r.code {
	case "AuthorizationHeaderMalformed", "PermanentRedirect", "TemporaryRedirect", "IllegalLocationConstraintException", "InvalidRegion":
		return true
	}
	return r.status/100 == 3 || r.status == http.StatusBadRequest && r.code == "" && r.region != ""
}

// kind is the error of the contract, or of io/fs.
func (r *refusal) kind() error {
	switch {
	case r.foreign != "" && r.status < 500:
		return object.ErrForeign
	case r.full():
		return object.ErrNoSpace
	case r.code == "NoSuchBucket":
		return nil
	case r.code == "NoSuchKey" || r.status == http.StatusNotFound && r.op == http.MethodHead:
		return object.ErrNotExist
	case r.code == "EntityTooLarge" || r.status == http.StatusRequestEntityTooLarge:
		return object.ErrTooLarge
	case r.status == http.StatusForbidden || r.status == http.StatusUnauthorized || r.code == "XAdminUserNotFound":
		return fs.ErrPermission
	case r.passes():
		return object.ErrBusy
	}
	return nil
}

// Is finds a refusal under its kind.
func (r *refusal) Is(target error) bool {
	k := r.kind()
	return k != nil && errors.Is(k, target)
}

// advice is what to do.
func (r *refusal) advice() string {
	switch r.code {
	case "NoSuchBucket":
		return fmt.Sprintf("there is no bucket %q: make it, or correct its name or endpoint=", r.bucket)
	case "NoSuchKey":
		return "no such object"
	case "InvalidAccessKeyId", "XAdminUserNotFound":
		return "the store does not know the access key: are the credentials those of this store?"
	case "SignatureDoesNotMatch":
		return "the secret key is wrong"
	case "RequestTimeTooSkewed":
		return "this host's clock differs from the store's by too much: set it (NTP)"
	case "ExpiredToken", "InvalidToken", "TokenRefreshRequired":
		return "the credentials have expired: get new ones"
	case "NotImplemented":
		return "the store lacks something that is needed"
	case "AccountProblem", "AllAccessDisabled", "NotSignedUp":
		return "the account of these credentials is closed to S3"
	}
	switch {
	case r.foreign != "":
		return "what answers is not S3: correct endpoint=, or sign in at the network's portal or proxy: " + r.foreign
	case r.wrongRegion() && r.region != "":
		return "the bucket is in another region: say region=" + r.region
	case r.wrongRegion():
		return "the bucket is in another region, or at another endpoint: say region= or endpoint="
	case r.full():
		return "the store is full, or the quota is used up: free space, or raise the quota"
	case r.status == http.StatusForbidden && (r.op == http.MethodPut || r.op == http.MethodDelete):
		return "these credentials may not write there, or the store is read-only"
	case r.status == http.StatusForbidden:
		return "these credentials may not read or list there"
	case r.status == http.StatusMethodNotAllowed:
		return "the store is read-only, or no S3"
	case r.status == http.StatusNotFound:
		return "not found: is the bucket's name right, and endpoint=?"
	}
	return ""
}

func (r *refusal) Error() string {
	text := fmt.Sprintf("HTTP %d %s", r.status, r.code)
	if r.message != "" {
		text += ": " + r.message
	}
	if advice := r.advice(); advice != "" {
		return fmt.Sprintf("%s (%s answered %s)", advice, r.place, strings.TrimSpace(text))
	}
	return fmt.Sprintf("%s answered %s", r.place, strings.TrimSpace(text))
}

// show makes a stranger's text fit for a message: short, printable, and without our credentials.
func (s *Store) show(text string) string {
	text = s.hide(text)
	if len(text) > maxShown {
		text = text[:maxShown] + "..."
	}
	return strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) && c != unicode.ReplacementChar {
			return c
		}
		return ' '
	}, text)
}

// hide takes the credentials out of a text.
func (s *Store) hide(text string) string {
	v := s.keys.Load()
	if v == nil {
		return text
	}
	for _, secret := range []string{v.SecretAccessKey, v.SessionToken, v.AccessKeyID} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "(hidden)")
		}
	}
	return text
}

// clean is an error of the transport, without the credentials that a proxy's or a server's text could repeat.
func (s *Store) clean(err error) error {
	if text := err.Error(); s.hide(text) != text {
		return errors.New(s.hide(text))
	}
	return err
}
