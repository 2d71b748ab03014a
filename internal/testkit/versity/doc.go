// Package versity starts versitygw for tests: a gateway that speaks S3 and keeps objects as files, on a free port
// of loopback.
//
// The program is found in PATH, or where go install puts it; the version that is tested with stands in
// .ci/versitygw.version.
package versity
