// Package s3 is an object store in a bucket of S3, or of what speaks its protocol. Package bucket makes its requests, and says what
// is trusted of the answers and what is sent again.
//
// # In the bucket
//
// Each object is one of S3, put by one request: its name is PREFIX/KEY!, its content the object's. The "!" sorts
// before whatever a key goes on with, so the bucket's order is that of the keys; and a gateway that keeps objects
// as files can have both "a" and "a/b". The metadata has two fields: nfsbox-sha256, the checksum, for stores that do
// not give theirs for a part; nfsbox-put, a number of the Put that made it.
//
// # Trust
//
//   - A checksum goes with each Put, which S3 compares (x-amz-checksum-sha256). A Put counts as done when the answer
//     has an ETag and no other checksum; otherwise the object is looked at.
//   - A store that writes has to honour If-None-Match. Open tries it, by two Puts of one name.
//
// # A Put whose answer was lost
//
// It may have been made, and its repetition be refused for that. The object that is there then says whose it is, by its
// nfsbox-put. So exactly one Put with IfAbsent succeeds, whatever is lost. If the tries run out behind a lost answer,
// that is [object.ErrUnknownOutcome].
package s3
