package bucketfs

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/nfsbox/nfsbox/internal/server/bucket"
	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/vfs"
)

// A process that is killed when its upload has become an object, and before it has noted that, leaves the mark of an upload that is not
// there. The object has the upload's number, and the checksum of all parts. So nothing has to be sent: the parts are read from the source
// and put nowhere, and Publish compares.

// made is the checksum that the object of an upload has, if it is there. "" says that it is not, or has none.
func (m *parted) made(ctx context.Context, u *upload) (sum string, err error) {
	a, err := m.f.c.Do(ctx, &bucket.Request{Method: http.MethodHead, Name: u.full, Header: map[string]string{"X-Amz-Checksum-Mode": "ENABLED"}})
	switch {
	case errors.Is(err, object.ErrNotExist):
		return "", nil
	case err != nil:
		return "", told(err, vfs.ErrNoEnt)
	}
	sum = a.Header.Get(bucket.SumHeader)
	if a.Header.Get(metaPut) != u.number || !strings.HasSuffix(sum, ofParts(len(m.done))) {
		return "", nil
	}
	return sum, nil
}

// ofParts ends the checksum of an object of n parts.
func ofParts(n int) string { return fmt.Sprintf("-%d", n) }

// sumOf is the checksum of an object of these parts, as S3 has it: that of their checksums.
func sumOf(parts []bucket.Part) string {
	h := sha256.New()
	for i := range parts {
		_, _ = h.Write(parts[i].Sum[:]) // a hash takes all
	}
	return base64.StdEncoding.EncodeToString(h.Sum(nil)) + ofParts(len(parts))
}

// confirm compares the object that is there with the file. After an error the copy is begun anew: its mark is not kept.
func (m *parted) confirm(ctx context.Context, parts []bucket.Part) error {
	sum, err := m.made(ctx, &m.upload)
	if err == nil && sum != sumOf(parts) {
		err = fmt.Errorf("the object that an earlier run has made is another one than the file: the same command copies it again: %w", vfs.ErrIO)
	}
	return err
}
