// Package fileapi is the client of the file API that "nfsbox serve --api" offers: a
// server's exports without NFS, over HTTP, with checksums from end to end.
//
// A [Client] moves whole files, ranges and listings:
//
//	c, err := fileapi.New("https://nas.example:9999", fileapi.Options{Token: token})
//	...
//	stored, err := c.Upload(ctx, "/backup/today.tar", file, fileapi.UploadOptions{})
//
// # Names
//
// A file's name is its path in the server's exports, which begins with "/", or its
// content: "sha256:" and 64 hexadecimal digits, an object of the server's store. Paths
// are bytes and need not be UTF-8.
//
// # What can be relied on
//
// An upload is stored whole or not at all. The server writes it under a temporary name,
// compares size and checksum with what was sent, and then renames it. Unless
// UploadOptions.NoSync is set, it is on the disk when Upload returns. A download
// succeeds only if all bytes have come with the checksum that the server computed, and
// if the file's size and time have not changed meanwhile. Until it has returned, the
// bytes in the caller's writer are not verified.
//
// Rights are those that the server gives to the token or certificate, the same as over
// NFS. No call is repeated. After an error that Is [vfs.ErrUnknownOutcome] a change may
// have been made or not; after any other it was not made.
//
// # Errors
//
// Errors are an [Error]. errors.Is finds it under the server's vfs.Status, and so under
// fs.ErrNotExist, fs.ErrExist and fs.ErrPermission. Its Code is the protocol's.
//
// The protocol itself is package proto/fileapi; docs/file-api.md describes it.
package fileapi
