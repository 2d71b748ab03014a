// A driver of libnfs, for comparisons: it does one operation for some seconds,
// or a number of times, and prints what that cost as a line of JSON.
//
//   driver URL OP DEPTH SECONDS COUNT NAME
//
// OP is getattr, read (1 MiB) or list; with SECONDS 0 it ends after COUNT. DEPTH
// 1 is the library's synchronous interface, more is the asynchronous one with so
// many calls in flight (getattr only). NAME is a file, or for list a directory,
// below the URL's. It builds with version 4 of the library (Debian 12) and with
// versions from 6 on, whose functions take their arguments in another order.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw.h>
#include <nfsc/libnfs-raw-nfs.h>

#define READ_SIZE (1 << 20)
#define MAX_SAMPLES (1 << 22) // latencies beyond these are not kept
#define MAX_DEPTH 1024

// The first members of the library's own struct, which has no public name.
struct fh {
	int len;
	char *val;
};

static struct nfs_context *nfs;
static struct rpc_context *rpc;
static struct nfsfh *file;
static uint64_t done, size, limit, bytes;
static double deadline;
static uint32_t *samples;

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static double cpu(void) {
	struct rusage r;
	getrusage(RUSAGE_SELF, &r);
	return r.ru_utime.tv_sec + r.ru_stime.tv_sec + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1e-6;
}

static void die(const char *what) {
	fprintf(stderr, "libnfs: %s: %s\n", what, nfs_get_error(nfs));
	exit(1);
}

static void took(double seconds) {
	if (done < MAX_SAMPLES)
		samples[done] = seconds * 1e9;
	done++;
}

static int enough(double t) { return limit ? done >= limit : t >= deadline; }

static void getattr_sync(void) {
	struct nfs_stat_64 st;
	for (double t = now(); !enough(t);) {
		if (nfs_fstat64(nfs, file, &st))
			die("fstat");
		double t1 = now();
		took(t1 - t);
		t = t1;
	}
}

struct slot {
	double start;
};
static int in_flight, ending;
static struct GETATTR3args args;
static struct slot slots[MAX_DEPTH];

static void issue(struct slot *s);

static void answered(struct rpc_context *r, int status, void *data, void *arg) {
	struct slot *s = arg;
	GETATTR3res *res = data;
	(void)r;
	if (status || res->status)
		die("getattr");
	in_flight--;
	double t = now();
	took(t - s->start);
	ending = ending || enough(t);
	if (!ending)
		issue(s);
}

static void issue(struct slot *s) {
	s->start = now();
#ifdef LIBNFS_API_V2
	if (!rpc_nfs3_getattr_task(rpc, answered, &args, s))
#else
	if (rpc_nfs3_getattr_async(rpc, answered, &args, s))
#endif
		die("getattr");
	in_flight++;
}

static void getattr_async(int depth) {
	rpc = nfs_get_rpc_context(nfs);
	struct fh *h = (struct fh *)nfs_get_fh(file);
	args.object.data.data_len = h->len;
	args.object.data.data_val = h->val;
	for (int i = 0; i < depth; i++)
		issue(&slots[i]);
	while (in_flight) {
		struct pollfd p = {.fd = nfs_get_fd(nfs), .events = nfs_which_events(nfs)};
		if (poll(&p, 1, 5000) <= 0)
			die("poll");
		if (nfs_service(nfs, p.revents) < 0)
			die("service");
	}
}

static void read_sync(void) {
	char *buf = malloc(READ_SIZE);
	memset(buf, 1, READ_SIZE);
	uint64_t off = 0;
	for (double t = now(); !enough(t);) {
#ifdef LIBNFS_API_V2
		int n = nfs_pread(nfs, file, buf, READ_SIZE, off);
#else
		int n = nfs_pread(nfs, file, off, READ_SIZE, buf);
#endif
		if (n != READ_SIZE)
			die("pread");
		off += READ_SIZE;
		if (off + READ_SIZE > size)
			off = 0;
		bytes += n;
		double t1 = now();
		took(t1 - t);
		t = t1;
	}
	free(buf);
}

static void list(const char *name) {
	for (double t = now(); !enough(t); t = now()) {
		struct nfsdir *d;
		if (nfs_opendir(nfs, name, &d))
			die("opendir");
		while (nfs_readdir(nfs, d))
			done++;
		nfs_closedir(nfs, d);
	}
}

static int ascending(const void *a, const void *b) {
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

int main(int argc, char **argv) {
	if (argc != 7) {
		fprintf(stderr, "usage: driver URL getattr|read|list DEPTH SECONDS COUNT NAME\n");
		return 2;
	}
	const char *op = argv[2], *name = argv[6];
	int depth = atoi(argv[3]);
	double seconds = atof(argv[4]);
	if (seconds == 0)
		limit = strtoull(argv[5], NULL, 10);
	if (depth < 1 || depth > MAX_DEPTH)
		return 2;
	samples = malloc(MAX_SAMPLES * sizeof *samples);
	memset(samples, 0, MAX_SAMPLES * sizeof *samples);
	nfs = nfs_init_context();
	struct nfs_url *url = nfs_parse_url_dir(nfs, argv[1]);
	if (!url || nfs_mount(nfs, url->server, url->path))
		die("mount");
	int listing = !strcmp(op, "list");
	if (!listing) {
		struct nfs_stat_64 st;
		if (nfs_open(nfs, name, O_RDONLY, &file))
			die("open");
		if (nfs_fstat64(nfs, file, &st))
			die("fstat");
		size = st.nfs_size;
	}
	double c0 = cpu(), t0 = now();
	deadline = t0 + seconds;
	if (listing)
		list(name);
	else if (!strcmp(op, "read"))
		read_sync();
	else if (depth == 1)
		getattr_sync();
	else
		getattr_async(depth);
	double t = now() - t0, c = cpu() - c0;
	uint64_t n = listing ? 0 : done < MAX_SAMPLES ? done : MAX_SAMPLES;
	qsort(samples, n, sizeof *samples, ascending);
	printf("{\"ops\":%lu,\"seconds\":%.4f,\"cpu_us\":%.4f,\"p50_us\":%.2f,\"p99_us\":%.2f,\"bytes\":%lu}\n",
	       (unsigned long)done, t, c * 1e6 / done, n ? samples[n / 2] * 1e-3 : 0, n ? samples[n - 1 - n / 100] * 1e-3 : 0, (unsigned long)bytes);
	return 0;
}
