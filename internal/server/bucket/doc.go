// Package bucket asks S3, or what speaks its protocol, about one bucket: requests, signatures, credentials, and the answers, which are
// proved.
//
// # Trust
//
// Little is taken for granted of the far end. It may be a proxy's page, or a store that leaves things out:
//
//   - A listing is proved: it is a ListBucketResult of this bucket and this prefix, with keys in order. All else is
//     [object.ErrForeign], and never an empty listing.
//   - Every answer has a bound, in bytes and in time.
//   - Of what it says, no message repeats more than a line, and never a credential.
//
// # What is sent again
//
// Requests that were refused for a while (503 SlowDown, 429, 500), and those whose answer was lost, are sent again,
// at most maxTries times, with pauses that double. One whose answer was lost may have been executed, and its repetition be
// refused for that: the answer, or the refusal, says so (Unsure). If the tries run out behind a lost answer, that
// is [object.ErrUnknownOutcome].
//
// # The library
//
// Credentials and signatures are those of minio-go, and nothing else of it is used (decision 0099): its client
// takes an empty page for an empty bucket, and lists without a context. No type of it leaves this package.
package bucket
