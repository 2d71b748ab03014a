// Package fileapi is the server of the file API: files of a server's exports over
// HTTP. A path is a file, with the methods and conditions of HTTP (RFC 9110), or a
// directory, as a page or as JSON. Below one path are the calls of proto/fileapi, as
// protobuf or JSON, by Connect, gRPC or gRPC-Web. The calls' client for Go is package
// fileapi at the module's root, and docs/file-api.md is the manual of all.
//
// # Whose rights
//
// A request is a caller's: by a bearer token, by a client certificate, or, on loopback
// and only if so configured, by nothing ([Callers], Options.Loopback). Everything that
// it does it does on the export.View of that caller and of the address that it calls
// from, as NFS does: one set of rules holds whichever way a caller came in. Paths are
// resolved within one export, whose root is as far up as "..", and links to "/", lead.
//
// # Whole or not at all
//
// An upload is written under a temporary name in the file's own directory, where a
// rename is one step whatever is mounted, held against the size and checksum that its
// client has sent, synced if asked, and renamed. Whatever ends it before that has it
// removed, by the program's own view, since its caller may have lost the right. What a
// crash leaves is swept at the next start: the ledger knows the directories in which
// uploads were under way, and temporaries bear the number of their run.
//
// A file that comes in one message, to be stored without sync under a name that nobody
// has, needs no temporary where the file system can make it with all its bytes
// (vfs.Putter).
//
// A range is written in place, and therefore comes in one message, whole and checked
// before the first byte is written.
//
// # What clients can make the server hold
//
// [Limits] bounds calls and their memory, of all clients and of each, so that one
// client cannot use up what the others need. Nothing waits for room: at a bound a call
// is refused. For bytes that a client has only announced, the server holds no memory
// but the first 64 KiB of a message. A client that sends or receives too slowly is cut
// off; waits for the disk do not count (pace.go).
//
// # What browsers may do
//
// No page of another site can read what is here, nor change it by the password or
// certificate that the browser shows for it. What a file holds is not run: it comes with a
// type that is not guessed at, and a policy without scripts.
//
// A search runs on its call's own goroutine: it has one file open, a page of entries of each
// directory above it in memory, and neither a listing nor a read under way while it sends. It
// yields the processor before each block, and looks whether its client is still there before
// each line that its expression sees, and each name.
//
// # Locks
//
// A request for a path with conditions holds its name's lock (conditions.go) from looking at what has the
// name until the name is changed; without conditions it shares the lock.
//
// admission.mu and ledger.mu guard counters and maps, and are never held together.
// The ledger's is held over a write and a sync of its file, when a directory gets its
// first upload, and over the syncs of directories besides when the file is written anew.
//
// # Layout
//
// procedures.go has the calls, which package connect answers. http.go has requests for paths, with httpget.go, httpput.go and
// page.go (directories); conditions.go has their tags, and digest.go the checksums of what
// is put. server.go has what comes before all, and served.go what comes
// after: there each request's outcome is counted and observed. incoming.go and
// outgoing.go move the bytes of a file, search.go judges a search, searchwalk.go lists and searching.go reads
// and sends for it, store.go and content.go store them, temporary.go
// and ledger.go make that atomic. path.go finds the view for a path, auth.go the caller
// of a request.
package fileapi
