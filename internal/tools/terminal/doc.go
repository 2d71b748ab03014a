// Package terminal is about the terminal that a command runs in: its size, the keys that are pressed, and lines that fit its
// width.
//
// It keeps nothing: each function asks the system. What is drawn is the business of others, such as package top's.
package terminal

// UsualWidth and UsualHeight are assumed, in columns and lines, where nothing tells: of output that is no terminal, and of
// a terminal that does not know its size, such as a serial line.
const (
	UsualWidth  = 80
	UsualHeight = 24
)
