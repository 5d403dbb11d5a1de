/* CUBIC (RFC 9438) with HyStart++ (RFC 9406), as the built-in cubic.
 *
 * gargalo plugin build cubic.c
 * gargalo run race.toml --plugin cubic.so --set 'flows.0.transport.tcp.congestion="cubic-c"'
 */
#include <stdlib.h>
#include <string.h>

#include "gargalo_window.h"

#ifndef NAME
#define NAME "cubic-c"
#endif

/* Windows in segments, times in seconds or nanoseconds (_ns); GARGALO_NONE: not set. */
typedef struct cubic {
    gargalo_window window;
    const gargalo_host *host;
    double c;
    double beta;
    double beta_ecn;
    int fast_convergence;
    int reno_friendly;
    double alpha;
    double inverse_mss;
    /* The curve of the present stage. */
    struct curve {
        uint64_t epoch_ns;
        uint64_t frozen_since_ns;
        double k;
        /* W_max, unless the stage starts above it. */
        double plateau;
        double w_max;
        double w_est;
        double cwnd_prior;
        /* The next stage starts without a W_max. */
        int fresh;
    } curve, before;
    int has_before;
} cubic;

enum { C, BETA, BETA_ECN, FAST_CONVERGENCE, RENO_FRIENDLY, REDUCE_FROM };

static const gargalo_parameter PARAMETERS[] = {
    {"c", "Aggressiveness C, segments per second cubed (section 5.1)", NULL, 0.4, 1e-4, 1e4, GARGALO_NUMBER, 0},
    {"beta", "Window kept after a loss, as a fraction (section 4.6)", NULL, 0.7, 0.01, 0.99, GARGALO_NUMBER, 0},
    {"beta_ecn", "Window kept after an ECN mark, as a fraction (section 4.6)", NULL, 0.7, 0.01, 0.99, GARGALO_NUMBER,
     0},
    {"fast_convergence", "Give up bandwidth faster when the saturation point has fallen (section 4.7)", NULL, 1, 0, 1,
     GARGALO_SWITCH, 0},
    {"reno_friendly", "Never grow more slowly than Reno would (section 4.3)", NULL, 1, 0, 1, GARGALO_SWITCH, 0},
    GARGALO_REDUCE_FROM,
};

static double seconds(uint64_t ns) { return (double)(int64_t)ns * 1e-9; }

/* W_cubic at t seconds after the plateau (equation 1 with t - K given). */
static double w_cubic(double t, double c, double plateau) { return c * t * t * t + plateau; }

static double greater(double a, double b) { return a > b ? a : b; }
static double lesser(double a, double b) { return a < b ? a : b; }

static void *create(const void *data, const gargalo_init *init, gargalo_state *state) {
    (void)data;
    cubic *u = calloc(1, sizeof *u);
    if (u == NULL) {
        state->error = "no memory";
        return NULL;
    }
    u->window = gargalo_window_new(init, 1);
    u->host = init->host;
    u->window.reduces_cwnd = init->parameters[REDUCE_FROM] != 0;
    u->c = init->parameters[C];
    u->beta = init->parameters[BETA];
    u->beta_ecn = init->parameters[BETA_ECN];
    u->fast_convergence = init->parameters[FAST_CONVERGENCE] != 0;
    u->reno_friendly = init->parameters[RENO_FRIENDLY] != 0;
    u->alpha = 3.0 * (1.0 - u->beta) / (1.0 + u->beta); /* section 4.3 */
    u->inverse_mss = 1.0 / (double)u->window.mss;
    u->curve.epoch_ns = GARGALO_NONE;
    u->curve.frozen_since_ns = GARGALO_NONE;
    u->curve.fresh = 1;
    gargalo_window_write(&u->window, state);
    return u;
}

static void *copy(const void *controller, const gargalo_host *host) {
    cubic *u = malloc(sizeof *u);
    if (u != NULL) {
        memcpy(u, controller, sizeof *u);
        u->host = host;
    }
    return u;
}

/* Starts a congestion-avoidance stage. */
static void begin_epoch(cubic *u, uint64_t now_ns) {
    double cwnd = gargalo_window_segments(&u->window);
    struct curve *v = &u->curve;
    v->epoch_ns = now_ns;
    v->frozen_since_ns = GARGALO_NONE;
    v->w_est = cwnd; /* section 4.3 */
    if (v->fresh) {
        v->fresh = 0;
        v->w_max = cwnd; /* sections 4.8, 4.10 */
        if (v->cwnd_prior == 0.0) {
            v->cwnd_prior = cwnd;
        }
    }
    v->plateau = greater(v->w_max, cwnd);
    v->k = u->host->cbrt((v->plateau - cwnd) / u->c); /* equation 2 */
}

/* Shifts the epoch by a period in which the window was not the limit (section 5.8). */
static void thaw(struct curve *v, uint64_t now_ns) {
    if (v->frozen_since_ns != GARGALO_NONE) {
        uint64_t since = gargalo_greatest(v->frozen_since_ns, v->epoch_ns);
        v->frozen_since_ns = GARGALO_NONE;
        v->epoch_ns = gargalo_least(v->epoch_ns + gargalo_difference(now_ns, since), now_ns);
    }
}

static void freeze(struct curve *v, uint64_t since_ns) {
    if (v->epoch_ns != GARGALO_NONE && v->frozen_since_ns == GARGALO_NONE) {
        v->frozen_since_ns = since_ns;
    }
}

/* Congestion avoidance (sections 4.2 to 4.5). */
static void avoid(cubic *u, uint64_t now_ns, uint64_t acked, uint64_t srtt_ns) {
    struct curve *v = &u->curve;
    gargalo_window *w = &u->window;
    if (v->epoch_ns == GARGALO_NONE) {
        begin_epoch(u, now_ns);
    } else {
        thaw(v, now_ns);
    }
    double bytes = (double)(int64_t)w->cwnd;
    double cwnd = bytes * u->inverse_mss;
    /* The part of a window that this acknowledgement stands for. */
    double share = lesser((double)(int64_t)acked / bytes, 1.0);
    double t = seconds(gargalo_difference(now_ns, v->epoch_ns)) - v->k;
    double target = w_cubic(t + seconds(srtt_ns), u->c, v->plateau);
    target = lesser(greater(target, cwnd), 1.5 * cwnd);
    double growth = (target - cwnd) * share;
    if (u->reno_friendly) {
        v->w_est += (v->w_est < v->cwnd_prior ? u->alpha : 1.0) * share;
        if (w_cubic(t, u->c, v->plateau) < v->w_est) {
            growth = greater(growth, v->w_est - cwnd);
        }
    }
    gargalo_window_grow(w, growth * (double)w->mss);
}

static void on_ack(void *controller, const gargalo_acked *ack, const gargalo_path *path, gargalo_state *state) {
    cubic *u = controller;
    uint64_t left = gargalo_window_slow_start(&u->window, ack);
    if (left > 0) {
        avoid(u, ack->now_ns, left, path->srtt_ns == GARGALO_NONE ? 0 : path->srtt_ns);
    } else if (!ack->cwnd_limited) {
        freeze(&u->curve, ack->now_ns);
    }
    gargalo_window_write(&u->window, state);
}

static void on_congestion(void *controller, const gargalo_congestion_event *event, const gargalo_path *path,
                          gargalo_state *state) {
    (void)path;
    cubic *u = controller;
    struct curve *v = &u->curve;
    double beta = event->cause == GARGALO_ECN ? u->beta_ecn : u->beta;
    int again = event->cause == GARGALO_TIMEOUT && event->consecutive > 1;
    if (event->cause == GARGALO_ECN) {
        u->has_before = 0; /* a mark cannot be spurious */
    } else if (!again) {
        u->before = *v;
        u->has_before = 1;
    }
    if (!again) {
        double cwnd = gargalo_window_segments(&u->window);
        /* Section 4.7. */
        v->w_max = u->fast_convergence && cwnd < v->w_max ? cwnd * (1.0 + beta) / 2.0 : cwnd;
        v->cwnd_prior = cwnd;
    }
    v->epoch_ns = GARGALO_NONE;
    v->frozen_since_ns = GARGALO_NONE;
    v->fresh = event->cause == GARGALO_TIMEOUT; /* section 4.8 */
    gargalo_window_reduce(&u->window, event, gargalo_scaled(gargalo_window_base(&u->window, event), beta));
    gargalo_window_write(&u->window, state);
}

static void on_send(void *controller, const gargalo_sent *sent, const gargalo_path *path, gargalo_state *state) {
    (void)path;
    cubic *u = controller;
    if (gargalo_window_send(&u->window, sent)) {
        u->curve.epoch_ns = GARGALO_NONE; /* a new stage begins after the slow start */
    } else if (sent->idle_ns != GARGALO_NONE && (sent->app_limited || sent->idle_ns > sent->rto_ns)) {
        freeze(&u->curve, gargalo_difference(sent->now_ns, sent->idle_ns));
    }
    gargalo_window_write(&u->window, state);
}

static void on_spurious(void *controller, const gargalo_spurious *event, const gargalo_path *path,
                        gargalo_state *state) {
    (void)path;
    cubic *u = controller;
    if (gargalo_window_undo(&u->window, event) && u->has_before) {
        u->curve = u->before;
        u->has_before = 0;
    }
    gargalo_window_write(&u->window, state);
}

static void on_recovered(void *controller, uint64_t now_ns, const gargalo_path *path, gargalo_state *state) {
    (void)now_ns;
    (void)path;
    gargalo_window *w = &((cubic *)controller)->window;
    w->recovering = 0;
    gargalo_window_write(w, state);
}

static void take_mss(cubic *u, uint64_t mss) {
    double old = (double)u->window.mss;
    gargalo_window_mss(&u->window, mss);
    /* The curve is in segments; a new stage starts from the same window in bytes. */
    double scale = old / (double)u->window.mss;
    u->inverse_mss = 1.0 / (double)u->window.mss;
    u->curve.w_max *= scale;
    u->curve.cwnd_prior *= scale;
    u->curve.epoch_ns = GARGALO_NONE;
    u->has_before = 0;
}

static void on_established(void *controller, const gargalo_established *established, const gargalo_path *path,
                           gargalo_state *state) {
    cubic *u = controller;
    int starts = gargalo_window_starts(&u->window);
    take_mss(u, path->mss_bytes);
    gargalo_window_established(&u->window, established->window_bytes, starts);
    gargalo_window_write(&u->window, state);
}

static void on_mss(void *controller, const gargalo_path *path, gargalo_state *state) {
    cubic *u = controller;
    take_mss(u, path->mss_bytes);
    gargalo_window_write(&u->window, state);
}

static void halve(void *controller, gargalo_state *state) {
    gargalo_window *w = &((cubic *)controller)->window;
    gargalo_window_halve(w);
    gargalo_window_write(w, state);
}

static void gauges(const void *controller, gargalo_gauge gauge, void *context) {
    const struct curve *v = &((const cubic *)controller)->curve;
    gauge(context, "w_max_segments", v->w_max);
    gauge(context, "w_est_segments", v->w_est);
    gauge(context, "k_s", v->k);
}

static const gargalo_algorithm ALGORITHMS[] = {{
    .name = NAME,
    .summary = "window grows with the cube of the time since the last loss",
    .source = "RFC 9438",
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
    .gauges = gauges,
}};
GARGALO_ALGORITHMS(ALGORITHMS);
