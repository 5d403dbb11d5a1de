/* One object at a time, with its time, its random bytes and its files. README.md tells how. */
#define _GNU_SOURCE
#define OPENSSL_SUPPRESS_DEPRECATED /* a method for random bytes: the way around providers */
#include "turn.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <picoquic_internal.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tls_api.h"

#define EPOCH 1735689600000000 /* 2025-01-01 */

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct turn *current;

static int random_bytes(unsigned char *out, int length) {
    if (!current) return getentropy(out, (size_t)length) == 0;
    current->host->random(current->host->context, out, (size_t)length);
    return 1;
}
static int ready(void) { return 1; }
static const RAND_METHOD method = {.bytes = random_bytes, .pseudorand = random_bytes, .status = ready};

static void begin(void) {
    OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
    RAND_set_rand_method(&method);
    picoquic_register_all_congestion_control_algorithms();
}
void turn_enter(struct turn *turn, uint64_t now) {
    pthread_once(&once, begin);
    pthread_mutex_lock(&one);
    current = turn;
    turn->now = EPOCH + now / 1000;
    picoquic_public_random_seed_64(turn->seed += 0x9e3779b97f4a7c15, 1);
}
void turn_look(void) { pthread_mutex_lock(&one); }
void turn_leave(void) {
    current = NULL;
    pthread_mutex_unlock(&one);
}
uint64_t turn_host_time(uint64_t clock) {
    return clock >= UINT64_MAX / 1000 ? GARGALO_NONE : clock <= EPOCH ? 0 : (clock - EPOCH) * 1000;
}

/* The linker has picoquic call these two when it opens a file: what it writes is its qlog, and there is none to read. */
static ssize_t to_qlog(void *cookie, const char *data, size_t length) {
    const struct gargalo_stack_host *host = cookie;
    host->qlog(host->context, (const uint8_t *)data, length);
    return (ssize_t)length;
}
FILE *__wrap_picoquic_file_open_ex(const char *name, const char *flags, int *error) {
    if (error) *error = ENOENT;
    if (!current || *flags != 'w') return NULL;
    FILE *file = fopencookie((void *)current->host, "w", (cookie_io_functions_t){.write = to_qlog});
    if (file) setvbuf(file, NULL, _IONBF, 0); /* bytes are the host's when the call ends */
    return file;
}
FILE *__wrap_picoquic_file_open(const char *name, const char *flags) {
    return __wrap_picoquic_file_open_ex(name, flags, NULL);
}
