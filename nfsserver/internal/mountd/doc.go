// Package mountd is the MOUNT protocol, version 3 (RFC 1813, appendix I): it
// turns the path of an export into the handle with which a client begins.
//
// Of version 1 (RFC 1094, appendix A) it has what both have alike, and tools
// such as showmount still ask for. MNT is missing there, since it is for NFSv2,
// whose handles have 32 bytes.
package mountd
