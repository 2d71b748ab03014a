// Package identity gives a thread the user and groups of a caller for the length of a call.
//
// The kernel judges the credentials of the thread, so the goroutine is locked to its thread
// meanwhile ([Switcher.As]). Each part of an identity costs a system call of about two
// microseconds, and one back. So only what differs is set. A hand-off to another goroutine
// would cost more.
//
// Only root can act for others. Without root every caller is squashed to the one user of
// this process: see [Switcher.Able].
//
// # A thread that does not become itself again
//
// If the thread's own identity cannot be restored, the goroutine keeps the thread locked
// and gets [ErrLost]. Nothing more is done on that thread ([Switcher.Check]); it ends with
// its goroutine. The outcome of the call is real, but the caller cannot go on there.
package identity
