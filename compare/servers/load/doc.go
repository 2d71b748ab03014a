// Package load loads an NFSv3 server with calls whose cost to the caller does
// not matter: what is measured is the server. It writes calls that were encoded
// once, keeps a fixed number of them in flight on each connection, and looks at
// no more of a reply than its status.
package load
