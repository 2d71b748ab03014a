// Package child starts processes that end with the process of the test.
//
// The kernel can signal a process when its parent ends (PR_SET_PDEATHSIG of prctl(2)). Its parent is the thread
// that has started it, and not the process: a goroutine that ends while it is locked to its thread ends the thread,
// and whatever that has ever started with it. So each process here has a thread that lasts as long as it does.
package child
