//go:build nfsbox_cthreads && linux

#define _GNU_SOURCE
#include "threads.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

struct call {
	int op, fd;
	void *p;
	size_t n;
	off_t off;
	struct iogate_result result;
	struct call *next;
};

struct list {
	struct call *first, **end;
};

struct iogate_pool {
	pthread_mutex_t mu;
	pthread_cond_t more;
	struct list todo, done;
	int stop, event, threads;
	pthread_t *ids;
	struct call calls[]; /* by index: one for each thread */
};

static void init(struct list *l)
{
	l->first = NULL;
	l->end = &l->first;
}

static void push(struct list *l, struct call *c)
{
	c->next = NULL;
	*l->end = c;
	l->end = &c->next;
}

static struct call *pop(struct list *l)
{
	struct call *c = l->first;

	if (c != NULL && (l->first = c->next) == NULL)
		l->end = &l->first;
	return c;
}

static void make(struct call *c)
{
	ssize_t n = 0;

	switch (c->op) {
	case IOGATE_READ:
		n = pread(c->fd, c->p, c->n, c->off);
		break;
	case IOGATE_WRITE:
		n = pwrite(c->fd, c->p, c->n, c->off);
		break;
	case IOGATE_FSYNC:
		n = fsync(c->fd);
		break;
	case IOGATE_FDATASYNC:
		n = fdatasync(c->fd);
		break;
	}
	c->result.error = n < 0 ? errno : 0;
	c->result.n = n < 0 ? 0 : n;
}

static void tell(int event)
{
	uint64_t one = 1;

	/* An eventfd takes eight bytes or, when its count is at the limit, has told
	   already. */
	while (write(event, &one, sizeof one) < 0 && errno == EINTR)
		;
}

static void *work(void *arg)
{
	struct iogate_pool *pool = arg;
	struct call *c;
	int first;

	pthread_mutex_lock(&pool->mu);
	for (;;) {
		while ((c = pop(&pool->todo)) == NULL && !pool->stop)
			pthread_cond_wait(&pool->more, &pool->mu);
		if (c == NULL)
			break;
		pthread_mutex_unlock(&pool->mu);
		make(c);
		pthread_mutex_lock(&pool->mu);
		first = pool->done.first == NULL;
		push(&pool->done, c);
		if (first) {
			pthread_mutex_unlock(&pool->mu);
			tell(pool->event);
			pthread_mutex_lock(&pool->mu);
		}
	}
	pthread_mutex_unlock(&pool->mu);
	return NULL;
}

/* Starts one thread; with real-time priority, if asked and allowed. */
static int spawn(struct iogate_pool *pool, pthread_t *id, int priority, struct iogate_made *made)
{
	struct sched_param param = {0};
	pthread_attr_t attr;
	int err;

	if (priority && made->priority_error == 0) {
		if ((err = pthread_attr_init(&attr)) != 0)
			return err;
		param.sched_priority = sched_get_priority_min(SCHED_RR);
		pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
		pthread_attr_setschedpolicy(&attr, SCHED_RR);
		pthread_attr_setschedparam(&attr, &param);
		err = pthread_create(id, &attr, work, pool);
		pthread_attr_destroy(&attr);
		if (err == 0) {
			made->priority++;
			return 0;
		}
		made->priority_error = err;
	}
	return pthread_create(id, NULL, work, pool);
}

/* Binds thread i to the i-th of the processors that the process may use. */
static void pin(pthread_t id, int i, struct iogate_made *made)
{
	cpu_set_t all, one;
	int cpu, err;

	if (sched_getaffinity(0, sizeof all, &all) != 0) {
		made->pinned_error = errno;
		return;
	}
	i %= CPU_COUNT(&all);
	for (cpu = 0; !CPU_ISSET(cpu, &all) || i-- > 0; cpu++)
		;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if ((err = pthread_setaffinity_np(id, sizeof one, &one)) == 0)
		made->pinned++;
	else
		made->pinned_error = err;
}

struct iogate_pool *iogate_open(int threads, int priority, int pinned, int event, struct iogate_made *made)
{
	struct iogate_pool *pool = calloc(1, sizeof *pool + threads * sizeof pool->calls[0]);
	sigset_t all, before;

	if (pool == NULL || (pool->ids = calloc(threads, sizeof pool->ids[0])) == NULL) {
		free(pool);
		made->error = ENOMEM;
		return NULL;
	}
	pthread_mutex_init(&pool->mu, NULL);
	pthread_cond_init(&pool->more, NULL);
	init(&pool->todo);
	init(&pool->done);
	pool->event = event;
	/* Signals are for the Go runtime's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (; pool->threads < threads; pool->threads++) {
		int i = pool->threads;

		if ((made->error = spawn(pool, &pool->ids[i], i < priority, made)) != 0)
			break;
		if (pinned)
			pin(pool->ids[i], i, made);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (made->error != 0) {
		iogate_stop(pool);
		iogate_free(pool);
		return NULL;
	}
	return pool;
}

void iogate_start(struct iogate_pool *pool, uint32_t index, int op, int fd, void *p, size_t n, off_t off)
{
	struct call *c = &pool->calls[index];

	*c = (struct call){.op = op, .fd = fd, .p = p, .n = n, .off = off, .result = {.index = index}};
	pthread_mutex_lock(&pool->mu);
	push(&pool->todo, c);
	pthread_mutex_unlock(&pool->mu);
	pthread_cond_signal(&pool->more);
}

int iogate_results(struct iogate_pool *pool, struct iogate_result *results, int most)
{
	struct call *c;
	int n = 0;

	pthread_mutex_lock(&pool->mu);
	while (n < most && (c = pop(&pool->done)) != NULL)
		results[n++] = c->result;
	pthread_mutex_unlock(&pool->mu);
	return n;
}

void iogate_stop(struct iogate_pool *pool)
{
	int i;

	pthread_mutex_lock(&pool->mu);
	pool->stop = 1;
	pthread_mutex_unlock(&pool->mu);
	pthread_cond_broadcast(&pool->more);
	for (i = 0; i < pool->threads; i++)
		pthread_join(pool->ids[i], NULL);
}

void iogate_free(struct iogate_pool *pool)
{
	pthread_cond_destroy(&pool->more);
	pthread_mutex_destroy(&pool->mu);
	free(pool->ids);
	free(pool);
}
