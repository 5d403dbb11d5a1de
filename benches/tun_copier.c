/* Copies packets between TUN devices of two network namespaces: the least that any program between two
 * kernels must do, and so the measure of what passes over a TUN device.
 *
 *   tun_copier PID-IN-A PID-IN-B OFFLOAD
 *
 * The devices are called copy0 and are up when "ready" is printed. OFFLOAD is 1 to let runs of segments
 * pass whole (IFF_VNET_HDR), 0 for one packet at a time. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static void die(const char *what) {
	perror(what);
	exit(1);
}

static int tun(const char *pid, int offload) {
	char path[64];
	struct ifreq request;
	int ns, fd;

	snprintf(path, sizeof path, "/proc/%s/ns/net", pid);
	if ((ns = open(path, O_RDONLY)) < 0 || setns(ns, CLONE_NEWNET) < 0)
		die(path);
	if ((fd = open("/dev/net/tun", O_RDWR)) < 0)
		die("/dev/net/tun");
	memset(&request, 0, sizeof request);
	strcpy(request.ifr_name, "copy0");
	request.ifr_flags = IFF_TUN | IFF_NO_PI | (offload ? IFF_VNET_HDR : 0);
	if (ioctl(fd, TUNSETIFF, &request) < 0)
		die("TUNSETIFF");
	if (offload && ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) < 0)
		die("TUNSETOFFLOAD");
	return fd;
}

static int ends[2];

static void *copy(void *from) {
	static _Thread_local char buffer[1 << 17];
	int i = (int)(long)from;

	for (;;) {
		ssize_t n = read(ends[i], buffer, sizeof buffer);
		if (n <= 0)
			die("read");
		/* What the other kernel has no room for is lost. */
		if (write(ends[1 - i], buffer, n) < 0)
			continue;
	}
	return NULL;
}

int main(int argc, char **argv) {
	pthread_t other;

	if (argc != 4)
		return 2;
	ends[0] = tun(argv[1], atoi(argv[3]));
	ends[1] = tun(argv[2], atoi(argv[3]));
	puts("ready");
	fflush(stdout);
	pthread_create(&other, NULL, copy, (void *)1L);
	copy((void *)0L);
	return 0;
}
