// Package top shows in a terminal what package view shows in a browser: the
// figures of a running server, again and again.
//
// [Lines] draws: it turns a Frame and the size of a screen into lines, and does
// nothing else. [Feed] fetches Frames, each with the points that came before it.
// [Run] puts the two together, in one of four ways: a screen that is drawn over
// and over, where there is a terminal; a line for each interval where there is
// none; once, and no more; or as JSON, a Frame a line.
//
// The server at the other end need not be ours. What it sends is bounded, and
// nothing that it names reaches the terminal but through progress.Clean.
//
// No library draws: a screen that is written from the top down, each line cleared
// behind its end, needs five escape sequences that all terminals know.
package top
