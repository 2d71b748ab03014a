// Package s3 is an object store in a bucket of S3, or of what speaks its protocol.
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
// Little is taken for granted of the far end. It may be a proxy's page, or a store that leaves things out:
//
//   - A checksum goes with each Put, which S3 compares (x-amz-checksum-sha256). A Put counts as done when the answer
//     has an ETag and no other checksum; otherwise the object is looked at.
//   - A listing is proved: it is a ListBucketResult of this bucket and this prefix, with keys in order. All else is
//     [object.ErrForeign], and never an empty listing.
//   - A store that writes has to honour If-None-Match. Open tries it, by two Puts of one name.
//   - Every answer has a bound, in bytes and in time.
//
// # What is sent again
//
// Requests that were refused for a while (503 SlowDown, 429, 500), and those whose answer was lost, are sent again,
// at most maxTries times, with pauses that double. A Put whose answer was lost may have been made, and its repetition be
// refused for that. The object that is there then says whose it is, by its nfsbox-put. So exactly one Put with
// IfAbsent succeeds, whatever is lost. If the tries run out behind a lost answer, that is [object.ErrUnknownOutcome].
//
// # The library
//
// Credentials and signatures are those of minio-go, and nothing else of it is used (decision 0099): its client
// takes an empty page for an empty bucket, and lists without a context.
package s3
