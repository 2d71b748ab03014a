// Package index finds the entries of a log by their keys, in memory that does not grow with the
// log. It stands beside the record of a job, which is such a log.
//
// The log is the truth, and the index is made from it: what is missing or damaged is made anew.
// Entries are numbered from 0. Keys are hashes; of entries with one key the last counts.
//
// # Segments
//
// A segment is a file that has the keys of the entries [from, to), sorted, each with its entry's
// number. The segments of an index follow each other without a gap. What follows the last one,
// up to maxTail entries, is sorted in memory when the log is opened. If it is more, it becomes
// segments of maxChunk entries, and these are merged. All numbers in the file are big endian:
//
//	header: magic (8), version (4), step (4), the log's identity (32), from (8), to (8),
//	        keys (8), blocks (8), mark of entry to-1 (4), CRC of the sparse keys (4), CRC (4);
//	        zeros up to blockSize
//	block:  up to blockKeys times key (16) and number (8); zeros; how many (4); CRC (4)
//	sparse: the first key (16) of every step-th block
//
// A CRC is CRC-32C over the bytes before it, that of a block begins with the block's number
// (from 0). All blocks but the last are full. The sparse keys are in memory, at most maxSparse
// of a segment.
//
// A segment is written under a temporary name, synced, and renamed, after the log was synced.
// One whose header, size or mark is wrong is removed when the index is opened. A bad block is
// met when it is read: then its segment is removed, and the index is completed from the log.
//
// # Bounds
//
// With n keys there are about log2(n/maxTail) segments at most: each has at least as many keys as all that
// follow it. A look-up reads a block of each. A log of more than
// maxSparse*blockKeys entries (178 million) takes one more block for each doubling.
//
// Memory: 24 bytes for each of maxChunk entries while a long log is read for the first time, and
// mergeBuffer for each of maxMerged segments that are merged. Besides, 16 bytes for each sparse key, and
// a cache of cacheBlocks blocks.
//
// Disk: 24 bytes a key, and as much again during a merge. A key is
// written once, and again when its segment is merged: log2(n/maxTail) times at most.
//
// Time: opening reads what follows the last segment. The first time, a log of 100 million entries of 80 bytes takes
// about a minute (two cores, SSD), and after that milliseconds.
//
// If there is no space for a segment, or it cannot be written for another reason, the index has
// what it has, and [Index.Missing] says how many entries it cannot find.
package index
