/* POSIX threads that make data calls for Go: see threads_linux.go. */
#ifndef NFSBOX_IOGATE_THREADS_H
#define NFSBOX_IOGATE_THREADS_H

#include <stdint.h>
#include <sys/types.h>

struct iogate_pool;

enum { IOGATE_READ, IOGATE_WRITE, IOGATE_FSYNC, IOGATE_FDATASYNC };

struct iogate_result {
	uint32_t index;
	int32_t error; /* errno, or 0 */
	int64_t n;
};

struct iogate_made {
	int error; /* errno: there is no pool */
	int priority, pinned;
	int priority_error, pinned_error; /* why they are fewer than asked */
};

/* Starts threads that tell of results through the eventfd event. */
struct iogate_pool *iogate_open(int threads, int priority, int pin, int event, struct iogate_made *made);

/* Hands a call over. Memory at p is used until its result has been taken. */
void iogate_start(struct iogate_pool *pool, uint32_t index, int op, int fd, void *p, size_t n, off_t off);

/* Takes up to most results, and says how many. */
int iogate_results(struct iogate_pool *pool, struct iogate_result *results, int most);

/* Ends the threads once all calls are made. They do not use event any more. */
void iogate_stop(struct iogate_pool *pool);

/* Frees a pool that has been stopped. */
void iogate_free(struct iogate_pool *pool);

#endif
