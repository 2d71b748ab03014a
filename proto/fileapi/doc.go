// Package fileapi is the file API on the wire: the messages and the service of
// fileapi.proto, generated, and the notation of checksums that both sides share.
//
// It is published so that anyone can speak to a server of nfsbox: in Go with this
// package (or, with less ado, with package fileapi at the module's root), elsewhere
// with what a generator makes of fileapi.proto. Every call goes by
//
//	POST http://HOST:PORT/nfsbox.fileapi.v1.FileService/CALL
//
// as JSON or protobuf, by Connect, gRPC or gRPC-Web; docs/file-api.md has a session
// with curl.
//
// # What stays as it is
//
// The protobuf package is nfsbox.fileapi.v1. Within v1 fields and calls are added,
// and none is removed, renumbered or given another meaning.
package fileapi

//go:generate go run github.com/bufbuild/buf/cmd/buf@v1.75.0 generate --path fileapi.proto
