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
// An upload is there whole or not at all: the server writes it under a name of its
// own, compares size and checksum with what was sent, and renames it then. Unless
// UploadOptions.NoSync, it is on the disk when Upload returns. A download returns
// without an error only if all bytes have come and have the checksum that the server
// computed, and if the file was not changed meanwhile as far as its size and time
// tell; until then what has been written to the caller's writer proves nothing.
//
// Rights are those that the server gives to the token or certificate, and the same as
// over NFS. Nothing is tried twice: an error that Is [vfs.ErrUnknownOutcome] says that
// a change may have been made or not, any other that it has not.
//
// # Errors
//
// Errors are an [Error], which errors.Is finds under the server's vfs.Status and so
// under fs.ErrNotExist, fs.ErrExist and fs.ErrPermission, and whose Code is the
// protocol's.
//
// The protocol itself is package proto/fileapi; docs/file-api.md describes it.
package fileapi
