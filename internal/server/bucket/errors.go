package bucket

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

// Refusal is an answer that is no success. errors.Is finds it under its kind: an error of package object, or fs.ErrPermission.
type Refusal struct {
	Status int
	Code   string // of S3, such as "NoSuchKey"; "" where there is none
	Unsure bool   // an earlier try may have been executed

	op      string // the method
	place   string
	bucket  string
	message string
	region  string // where the bucket is, if the answer says so
	foreign string // what shows that S3 has not answered
}

// refuse reads an error.
func (c *Client) refuse(q *Request, a *Answer) *Refusal {
	r := &Refusal{op: q.Method, place: c.Place(), bucket: c.o.Bucket, Status: a.Status, region: a.Header.Get("X-Amz-Bucket-Region")}
	var e struct {
		XMLName               xml.Name `xml:"Error"`
		Code, Message, Region string
	}
	switch err := xml.NewDecoder(bytes.NewReader(a.Body)).Decode(&e); {
	case err == nil:
		r.Code, r.message = c.Show(e.Code), c.Show(e.Message)
		if r.region == "" {
			r.region = e.Region
		}
	case q.Method != http.MethodHead && len(bytes.TrimSpace(a.Body)) > 0:
		r.foreign = "it is no error of S3, but " + c.Show(a.Header.Get("Content-Type"))
	}
	if checkRegion(r.region) != nil {
		r.region = ""
	}
	return r
}

// passes reports whether the same request may well succeed later.
func (r *Refusal) passes() bool {
	switch r.Code {
	case "SlowDown", "RequestTimeout", "InternalError", "OperationAborted", "ConditionalRequestConflict", "IncompleteBody",
		"ServiceUnavailable", "BadDigest", "XAmzContentSHA256Mismatch", "TooManyRequests":
		return true
	}
	switch r.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return !r.full()
	}
	return false
}

func (r *Refusal) expired() bool { return r.Code == "ExpiredToken" || r.Code == "TokenRefreshRequired" }

func (r *Refusal) full() bool {
	return r.Status == http.StatusInsufficientStorage || strings.Contains(r.Code, "Quota") || strings.Contains(r.Code, "StorageFull") ||
		r.Code == "InsufficientCapacity"
}

// wrongRegion reports whether the bucket is somewhere else.
func (r *Refusal) wrongRegion() bool {
	switch r.Code {
	case "AuthorizationHeaderMalformed", "PermanentRedirect", "TemporaryRedirect", "IllegalLocationConstraintException", "InvalidRegion":
		return true
	}
	return r.Status/100 == 3 || r.Status == http.StatusBadRequest && r.Code == "" && r.region != ""
}

// kind is the error of the contract, or of io/fs.
func (r *Refusal) kind() error {
	switch {
	case r.foreign != "" && r.Status < 500:
		return object.ErrForeign
	case r.full():
		return object.ErrNoSpace
	case r.Code == "NoSuchBucket":
		return nil
	case r.Code == "NoSuchKey" || r.Code == "NoSuchUpload" || r.Status == http.StatusNotFound && r.op == http.MethodHead:
		return object.ErrNotExist
	case r.Code == "EntityTooLarge" || r.Status == http.StatusRequestEntityTooLarge:
		return object.ErrTooLarge
	case r.Status == http.StatusForbidden || r.Status == http.StatusUnauthorized || r.Code == "XAdminUserNotFound":
		return fs.ErrPermission
	case r.passes():
		return object.ErrBusy
	}
	return nil
}

// Is finds a refusal under its kind.
func (r *Refusal) Is(target error) bool {
	k := r.kind()
	return k != nil && errors.Is(k, target)
}

// advice is what to do.
func (r *Refusal) advice() string {
	switch r.Code {
	case "NoSuchBucket":
		return fmt.Sprintf("there is no bucket %q: make it, or correct its name or endpoint=", r.bucket)
	case "NoSuchKey":
		return "no such object"
	case "NoSuchUpload":
		return "the upload is not there any more"
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
	case r.Status == http.StatusForbidden && (r.op == http.MethodPut || r.op == http.MethodDelete):
		return "these credentials may not write or delete there, or the store is read-only"
	case r.Status == http.StatusForbidden:
		return "these credentials may not read or list there"
	case r.Status == http.StatusMethodNotAllowed:
		return "the store is read-only, or no S3"
	case r.Status == http.StatusNotFound:
		return "not found: is the bucket's name right, and endpoint=?"
	}
	return ""
}

// Error says what to do, and what was answered.
func (r *Refusal) Error() string {
	text := fmt.Sprintf("HTTP %d %s", r.Status, r.Code)
	if r.message != "" {
		text += ": " + r.message
	}
	if advice := r.advice(); advice != "" {
		return fmt.Sprintf("%s (%s answered %s)", advice, r.place, strings.TrimSpace(text))
	}
	return fmt.Sprintf("%s answered %s", r.place, strings.TrimSpace(text))
}

// Show makes a stranger's text fit for a message: short, printable, and without our credentials.
func (c *Client) Show(text string) string {
	text = c.hide(text)
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
func (c *Client) hide(text string) string {
	v := c.keys.Load()
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
func (c *Client) clean(err error) error {
	if text := err.Error(); c.hide(text) != text {
		return errors.New(c.hide(text))
	}
	return err
}
