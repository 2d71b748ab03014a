// Package upstream is an export of another server, as the file system of one of ours: what a proxy exports. It is a
// [vfs.FS] over one that a dialler gives, and knows no protocol.
//
// # Before the other server is there
//
// A server may begin before the one that it stands for, as after a power cut. Until that answers every call is
// [vfs.ErrBusy], which has clients come again. [FS.Connect] tries once and says what is wrong; [FS.Persist] goes on to try.
// What cannot get better by itself is a [RefusedError]: a path that is no directory, handles too long to be sealed, a
// loop.
//
// # Callers
//
// A caller is who it is for the other server as well: its user and groups go with every call, after the rules of the
// export have squashed them. The program itself (As(nil)) is nobody there, so that what a server does by its own right does
// nothing that the caller may not.
//
// # Loops
//
// A server that stands for itself, by however many others, would send each call around until none has patience left. So after each
// connection a name that nobody else can know is looked up in the other server's root. If the look-up comes in at one of
// our own exports, it has gone around ([Probe]).
//
// # Reads
//
// An NFSv3 server opens a file for each READ. What is below may ask its server at each open, as a cache does. With
// Options.Keep a file is kept open between READs for a moment, until attributes pass that are not those of before
// (kept.go). A client asks for attributes when a program opens the file, so it reads nothing older than that (close-to-open).
//
// # File systems
//
// Two servers may give their file systems the same number, and a client would take their files for one another's hard links.
// So the numbers of each server are mixed with one of its own (Options.FSID).
//
// Locks: shared.mu and kept.mu are held over no call.
package upstream
