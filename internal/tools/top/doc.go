// Package top shows in a terminal what package view shows in a browser: the figures of a
// running server, updated repeatedly.
//
// [Lines] turns a Frame and the size of a screen into lines, without side effects. [Feed]
// fetches Frames, each with the points before it. [Run] combines the two in one of four ways:
// on a terminal it redraws the screen; elsewhere it writes a line for each interval; it shows
// one Frame and ends; or it writes JSON, a Frame a line.
//
// The server may be another program. What it sends is bounded, and everything that it names
// passes progress.Clean before it reaches the terminal.
//
// There is no drawing library: a screen that is written from the top down, each line cleared
// after its end, needs five escape sequences that all terminals know.
package top
