// Package search looks for lines in many files at once. What it finds is printed one file after the other, in the
// order in which the files were added.
//
// A [Group] reads the files of one file system by several workers, each with one block and one line in memory. What
// a worker prints before it is its turn waits in memory, within bounds of [Printer]; beyond them the worker waits.
package search
