// Package readahead reads ahead for sequential readers: a [vfs.FS] over another, with the
// next bytes of a file on their way before they are asked for. It stands below the owner of
// dirty bytes (internal/client/writeback), and so sees every WRITE that is sent.
//
// # When it reads ahead
//
// An open file is read in sequence at a few places at once (streams). After two reads in a
// row at one of them, one READ is sent ahead. From then on there are as many as pay (climb):
// their number grows while that brings more bytes a second, and while it is less than what
// has been read. That is little on a near server and much on a far one. Random reads cause
// none. Where sequences stop after a few reads, so that most of what was read ahead was in vain,
// more reads in a row are needed the next time, up to lastRun.
//
// What is read ahead is copied once more. Reading ahead pauses where that costs more than
// it saves: for large reads from a near server, whose reader does nothing in between. To
// know, this package measures the delay of the server (readCost): now and then it divides a
// READ, and sends a small one first (a look). Where every READ takes long (farRead) it does
// not measure. There the number of READs ahead doubles with each round trip at first.
//
// A read of which nothing was read ahead goes straight into the caller's buffer. If it is larger
// than a READ, it becomes several at once.
//
// A file that is [vfs.Near] is read below as it is asked, without a lock. What was read
// ahead before it became near is dropped.
//
// # What readers may rely on
//
// Bytes that were read ahead belong to one open file: another open never gets them, so that
// close-to-open holds. They are dropped
//
//   - where a write passes through, in any view, and all of them with a change of size, or of
//     attributes,
//   - where a lock on the file is taken, in any view,
//   - when the attributes that come with a READ say that another client has changed the
//     file, and
//   - when they are old (maxFresh).
//
// From before a WRITE is sent until it is answered, nothing is read ahead of the bytes that
// it writes. A READ that was sent before a WRITE and answered after it is dropped. The layer
// above answers for bytes that it has accepted and not yet sent: it does not ask
// for them here. If they are read ahead all the same, that is in vain, and dropped when they
// are sent.
//
// Nothing is read behind the end of the file, as far as that is known. An end of file that
// a READ ahead met is believed only if no change was under way when it was sent, and none
// has begun since.
//
// # How it works
//
// A node stands for an object with open files. An open file has a few streams, each with
// chunks: what one READ ahead has brought, or will bring.
//
// Locks: node.mu before shared.mu. Neither is held over a call to the FS below, or while
// bytes are copied out.
package readahead
