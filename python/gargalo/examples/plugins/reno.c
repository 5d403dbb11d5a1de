/* Reno (RFC 5681) with appropriate byte counting (RFC 3465), as the built-in reno.
 *
 * gargalo plugin build reno.c
 * gargalo run race.toml --plugin reno.so --set 'flows.0.transport.tcp.congestion="reno-c"'
 */
#include <stdlib.h>
#include <string.h>

#include "gargalo_window.h"

#ifndef NAME
#define NAME "reno-c"
#endif

typedef struct reno {
    gargalo_window window;
    double beta;
    double beta_ecn;
} reno;

enum { BETA, BETA_ECN, REDUCE_FROM };

static const gargalo_parameter PARAMETERS[] = {
    {"beta", "Window kept after a loss, as a fraction (RFC 5681 equation 4: 1/2)", NULL, 0.5, 0.01, 0.99,
     GARGALO_NUMBER, 0},
    {"beta_ecn", "Window kept after an ECN mark, as a fraction (RFC 3168 section 6.1.2: 1/2)", NULL, 0.5, 0.01, 0.99,
     GARGALO_NUMBER, 0},
    GARGALO_REDUCE_FROM,
};

static void *create(const void *data, const gargalo_init *init, gargalo_state *state) {
    (void)data;
    reno *r = calloc(1, sizeof *r);
    if (r == NULL) {
        state->error = "no memory";
        return NULL;
    }
    r->window = gargalo_window_new(init, 0);
    r->window.reduces_cwnd = init->parameters[REDUCE_FROM] != 0;
    r->beta = init->parameters[BETA];
    r->beta_ecn = init->parameters[BETA_ECN];
    gargalo_window_write(&r->window, state);
    return r;
}

static void *copy(const void *controller, const gargalo_host *host) {
    (void)host;
    reno *r = malloc(sizeof *r);
    if (r != NULL) {
        memcpy(r, controller, sizeof *r);
    }
    return r;
}

static void on_ack(void *controller, const gargalo_acked *ack, const gargalo_path *path, gargalo_state *state) {
    (void)path;
    gargalo_window *w = &((reno *)controller)->window;
    uint64_t left = gargalo_window_slow_start(w, ack);
    if (left > 0) {
        /* SMSS * acked / cwnd (RFC 5681 section 3.1 equation 3, RFC 3465 section 2.1). */
        gargalo_window_grow(w, (double)w->mss * (double)left / (double)w->cwnd);
    }
    gargalo_window_write(w, state);
}

static void on_congestion(void *controller, const gargalo_congestion_event *event, const gargalo_path *path,
                          gargalo_state *state) {
    (void)path;
    reno *r = controller;
    double beta = event->cause == GARGALO_ECN ? r->beta_ecn : r->beta;
    gargalo_window_reduce(&r->window, event, gargalo_scaled(gargalo_window_base(&r->window, event), beta));
    gargalo_window_write(&r->window, state);
}

static void on_send(void *controller, const gargalo_sent *sent, const gargalo_path *path, gargalo_state *state) {
    (void)path;
    gargalo_window *w = &((reno *)controller)->window;
    gargalo_window_send(w, sent);
    gargalo_window_write(w, state);
}

static void on_spurious(void *controller, const gargalo_spurious *event, const gargalo_path *path,
                        gargalo_state *state) {
    (void)path;
    gargalo_window *w = &((reno *)controller)->window;
    gargalo_window_undo(w, event);
    gargalo_window_write(w, state);
}

static void on_recovered(void *controller, uint64_t now_ns, const gargalo_path *path, gargalo_state *state) {
    (void)now_ns;
    (void)path;
    gargalo_window *w = &((reno *)controller)->window;
    w->recovering = 0;
    gargalo_window_write(w, state);
}

static void on_established(void *controller, const gargalo_established *established, const gargalo_path *path,
                           gargalo_state *state) {
    gargalo_window *w = &((reno *)controller)->window;
    int starts = gargalo_window_starts(w);
    gargalo_window_mss(w, path->mss_bytes);
    gargalo_window_established(w, established->window_bytes, starts);
    gargalo_window_write(w, state);
}

static void on_mss(void *controller, const gargalo_path *path, gargalo_state *state) {
    gargalo_window *w = &((reno *)controller)->window;
    gargalo_window_mss(w, path->mss_bytes);
    gargalo_window_write(w, state);
}

static void halve(void *controller, gargalo_state *state) {
    gargalo_window *w = &((reno *)controller)->window;
    gargalo_window_halve(w);
    gargalo_window_write(w, state);
}

static const gargalo_algorithm ALGORITHMS[] = {{
    .name = NAME,
    .summary = "one segment more per round trip, half the window on loss",
    .source = "RFC 5681, RFC 3465",
    .parameters = PARAMETERS,
    .parameter_count = sizeof PARAMETERS / sizeof PARAMETERS[0],
    .create = create,
    .destroy = free,
    .clone = copy,
    .on_ack = on_ack,
    .on_congestion = on_congestion,
    .on_send = on_send,
    .on_spurious = on_spurious,
    .on_recovered = on_recovered,
    .on_established = on_established,
    .on_mss = on_mss,
    .halve = halve,
}};
GARGALO_ALGORITHMS(ALGORITHMS);
