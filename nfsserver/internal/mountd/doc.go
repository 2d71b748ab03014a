// Package mountd is the MOUNT protocol, version 3 (RFC 1813, appendix I): it
// turns the path of an export into the handle with which a client begins.
//
// Of version 1 (RFC 1094, appendix A) it has the procedures that are the same in both,
// and that tools such as showmount still use. MNT is missing there: it is for NFSv2,
// whose handles have 32 bytes.
package mountd
