/* Parts of congestion controls in C: arithmetic on amounts and rates, and the window that loss-based algorithms share.
 *
 * What is here does the same as the built-in algorithms of Gargalo, to the last bit; compile with -ffp-contract=off, so
 * that the compiler does not join a multiplication and an addition.
 *
 * Licence: MIT OR Apache-2.0, at your option.
 */
#ifndef GARGALO_WINDOW_H
#define GARGALO_WINDOW_H

#include "gargalo_congestion.h"

/* No window grows beyond this (1 TiB). */
#define GARGALO_MAX_WINDOW ((uint64_t)1 << 40)

static inline uint64_t gargalo_least(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t gargalo_greatest(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Sum and difference that stay in range. */
static inline uint64_t gargalo_sum(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }
static inline uint64_t gargalo_difference(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

/* A number as the nearest whole one; negative and NaN become 0. */
static inline uint64_t gargalo_rounded(double n) {
    n += 0.5;
    if (!(n >= 1.0)) {
        return 0;
    }
    return n >= 18446744073709551615.0 ? UINT64_MAX : (uint64_t)n;
}

/* An amount or a rate times a factor, rounded. */
static inline uint64_t gargalo_scaled(uint64_t n, double factor) { return gargalo_rounded((double)n * factor); }

__extension__ typedef unsigned __int128 gargalo_wide;

/* The average rate of an amount over a time, bits per second; 0 if no time passed. */
static inline uint64_t gargalo_rate(uint64_t bytes, uint64_t span_ns) {
    const uint64_t bits_ns = 8000000000u;
    if (span_ns == 0) {
        return 0;
    }
    if (bytes <= UINT64_MAX / bits_ns) {
        return bytes * bits_ns / span_ns;
    }
    gargalo_wide rate = (gargalo_wide)bytes * bits_ns / span_ns;
    return rate > UINT64_MAX ? UINT64_MAX : (uint64_t)rate;
}

/* The window of a loss-based algorithm: slow start, reductions, undo and the restart after idle times. */
typedef struct gargalo_window {
    uint64_t cwnd;
    /* UINT64_MAX while infinite. */
    uint64_t ssthresh;
    uint64_t mss;
    /* A fraction of a byte that is not yet in cwnd. */
    double fraction;
    /* What an undo restores; valid with has_saved. */
    uint64_t saved_cwnd;
    uint64_t saved_ssthresh;
    int has_saved;
    int saved_timeout;
    int after_timeout;
    int recovering;
    /* 1: a reduction is of the window itself, not of what is in flight. */
    int reduces_cwnd;
    /* Most segments of growth for an acknowledgement in slow start (L of RFC 3465). */
    uint64_t abc_limit;
    /* HyStart++ (RFC 9406) in the initial slow start, with its numbers; UINT64_MAX stands for infinity. */
    int hystart;
    int conservative;
    uint32_t conservative_rounds;
    uint32_t samples;
    uint64_t last_round_min;
    uint64_t current_round_min;
    uint64_t baseline_min;
} gargalo_window;

static inline uint64_t gargalo_segment(uint64_t mss) {
    return gargalo_least(gargalo_greatest(mss, 1), GARGALO_MAX_WINDOW);
}

/* Sets the window, between one segment and the greatest. */
static inline void gargalo_window_set(gargalo_window *w, uint64_t cwnd) {
    w->cwnd = gargalo_greatest(gargalo_least(cwnd, GARGALO_MAX_WINDOW), w->mss);
}

/* The initial window, in slow start, with HyStart++ or without. */
static inline gargalo_window gargalo_window_new(const gargalo_init *init, int hystart) {
    gargalo_window w = {0};
    w.mss = gargalo_segment(init->mss_bytes);
    gargalo_window_set(&w, init->initial_window_bytes);
    w.ssthresh = UINT64_MAX;
    w.hystart = hystart;
    w.abc_limit = hystart ? 8 : 2; /* RFC 9406 section 4.2, RFC 3465 section 2.2 */
    w.last_round_min = UINT64_MAX;
    w.current_round_min = UINT64_MAX;
    return w;
}

/* The parameter of gargalo_window.reduces_cwnd. */
#define GARGALO_REDUCE_FROM                                                                                            \
    {"reduce_from", "The base of a reduction (RFC 5681: flight-size; many stacks: cwnd)", "flight-size, cwnd", 0, 0, 0, \
     GARGALO_CHOICE, 0}

/* Whether slow start is in force (RFC 5681 section 3.1). */
static inline int gargalo_window_starts(const gargalo_window *w) { return w->cwnd < w->ssthresh; }

/* The window in segments. */
static inline double gargalo_window_segments(const gargalo_window *w) { return (double)w->cwnd / (double)w->mss; }

/* Grows the window by a fractional number of bytes; negative and NaN change nothing. */
static inline void gargalo_window_grow(gargalo_window *w, double bytes) {
    if (!(bytes > 0.0)) {
        bytes = 0.0;
    }
    double sum = w->fraction + (bytes < (double)GARGALO_MAX_WINDOW ? bytes : (double)GARGALO_MAX_WINDOW);
    int64_t whole = (int64_t)sum;
    w->fraction = sum - (double)whole;
    gargalo_window_set(w, w->cwnd + (uint64_t)whole);
}

/* The initial slow start is over. */
static inline void gargalo_window_end_initial(gargalo_window *w) {
    w->hystart = 0;
    w->conservative = 0;
}

/* Leaves slow start without a congestion event. */
static inline void gargalo_window_exit(gargalo_window *w) {
    w->ssthresh = w->cwnd;
    gargalo_window_end_initial(w);
    w->after_timeout = 0;
    w->fraction = 0.0;
}

/* An acknowledgement in slow start with HyStart++ (RFC 9406 section 4.2): the divisor of the growth, 0: it is over. */
static inline uint64_t gargalo_hystart(gargalo_window *w, const gargalo_acked *ack) {
    enum { SAMPLES = 8, ROUNDS = 5, DIVISOR = 4, RTT_DIVISOR = 8 };
    const uint64_t least_rise = 4000000, greatest_rise = 16000000;
    if (ack->round_start) {
        w->last_round_min = w->current_round_min;
        w->current_round_min = UINT64_MAX;
        w->samples = 0;
        if (w->conservative) {
            w->conservative_rounds += 1;
            if (w->conservative_rounds >= ROUNDS) {
                return 0;
            }
        }
    }
    if (ack->rtt_ns != GARGALO_NONE) {
        w->current_round_min = gargalo_least(w->current_round_min, ack->rtt_ns);
        w->samples += w->samples < UINT32_MAX;
    }
    if (w->samples >= SAMPLES) {
        if (w->conservative) {
            if (w->current_round_min < w->baseline_min) {
                w->conservative = 0; /* the rise was jitter */
            }
        } else if (w->last_round_min != UINT64_MAX && w->current_round_min != UINT64_MAX) {
            uint64_t rise = gargalo_least(w->last_round_min / RTT_DIVISOR, greatest_rise);
            rise = gargalo_greatest(rise, least_rise);
            if (w->current_round_min >= gargalo_sum(w->last_round_min, rise)) {
                w->conservative = 1;
                w->conservative_rounds = 0;
                w->baseline_min = w->current_round_min;
            }
        }
    }
    return w->conservative ? DIVISOR : 1;
}

/* Grows the window in slow start; returns the acknowledged bytes that are left for congestion avoidance: none in
 * recovery, or when the window did not limit the sender. */
static inline uint64_t gargalo_window_slow_start(gargalo_window *w, const gargalo_acked *ack) {
    if (ack->in_recovery) {
        return 0;
    }
    if (!gargalo_window_starts(w)) {
        return ack->cwnd_limited ? ack->acknowledged_bytes : 0;
    }
    uint64_t divisor = w->hystart ? gargalo_hystart(w, ack) : 1;
    if (divisor == 0) {
        gargalo_window_exit(w);
        return 0;
    }
    if (!ack->cwnd_limited) {
        return 0;
    }
    /* RFC 5681 equation 2 with RFC 3465's L for the 1; after a timeout it is 1. */
    uint64_t limit = w->mss * (w->after_timeout ? 1 : w->abc_limit);
    uint64_t growth = gargalo_least(ack->acknowledged_bytes, limit) / divisor;
    uint64_t room = w->ssthresh - w->cwnd;
    if (growth < room) {
        gargalo_window_set(w, w->cwnd + growth);
        return 0;
    }
    gargalo_window_set(w, w->ssthresh);
    w->after_timeout = 0;
    return growth - room;
}

/* The base of a reduction: FlightSize, no more than the window (RFC 5681 equation 4), or the window. */
static inline uint64_t gargalo_window_base(const gargalo_window *w, const gargalo_congestion_event *event) {
    return w->reduces_cwnd ? w->cwnd : gargalo_least(event->in_flight_bytes, w->cwnd);
}

static inline void gargalo_window_save(gargalo_window *w, int timeout) {
    w->saved_cwnd = w->cwnd;
    w->saved_ssthresh = w->ssthresh;
    w->saved_timeout = timeout;
    w->has_saved = 1;
}

/* Reduces the window because of an event; target is the new threshold. Never grows it. */
static inline void gargalo_window_reduce(gargalo_window *w, const gargalo_congestion_event *event, uint64_t target) {
    uint64_t least = w->mss * 2;
    target = gargalo_least(target, GARGALO_MAX_WINDOW);
    if (event->cause == GARGALO_LOSS) {
        gargalo_window_save(w, 0);
        w->ssthresh = gargalo_greatest(target, least);
        gargalo_window_set(w, gargalo_least(w->ssthresh, w->cwnd));
        w->recovering = 1;
    } else if (event->cause == GARGALO_ECN) {
        w->has_saved = 0; /* a mark cannot be spurious */
        w->ssthresh = gargalo_greatest(target, least);
        gargalo_window_set(w, gargalo_least(target, w->cwnd));
        w->recovering = 1;
    } else {
        if (event->consecutive <= 1) {
            gargalo_window_save(w, 1);
            w->ssthresh = gargalo_greatest(target, least);
        }
        gargalo_window_set(w, w->mss);
        w->after_timeout = 1;
        w->recovering = 0;
    }
    w->fraction = 0.0;
    gargalo_window_end_initial(w);
}

/* Restores what the latest congestion event changed, if this withdraws it; returns whether it did. */
static inline int gargalo_window_undo(gargalo_window *w, const gargalo_spurious *event) {
    if (!w->has_saved || event->cause == GARGALO_ECN || w->saved_timeout != (event->cause == GARGALO_TIMEOUT)) {
        return 0;
    }
    w->has_saved = 0;
    w->recovering = 0;
    w->after_timeout = 0;
    if (w->cwnd >= w->saved_cwnd) {
        return 0;
    }
    gargalo_window_set(w, w->saved_cwnd);
    w->ssthresh = w->saved_ssthresh;
    return 1;
}

/* A packet leaves: after an idle time the window may restart (RFC 5681 section 4.1); returns whether it did. */
static inline int gargalo_window_send(gargalo_window *w, const gargalo_sent *sent) {
    if (sent->idle_ns == GARGALO_NONE || sent->restart_window_bytes == GARGALO_NONE || sent->idle_ns <= sent->rto_ns ||
        sent->restart_window_bytes >= w->cwnd) {
        return 0;
    }
    gargalo_window_set(w, sent->restart_window_bytes);
    w->fraction = 0.0;
    return 1;
}

/* The segment size changed: the window keeps its bytes, but has one segment at least. */
static inline void gargalo_window_mss(gargalo_window *w, uint64_t mss) {
    w->mss = gargalo_segment(mss);
    gargalo_window_set(w, w->cwnd);
}

/* The handshake is complete: the initial window has `bytes`. To be called after gargalo_window_mss; starts says whether
 * slow start was in force before that. */
static inline void gargalo_window_established(gargalo_window *w, uint64_t bytes, int starts) {
    gargalo_window_set(w, bytes);
    if (!starts) {
        gargalo_window_exit(w);
    }
}

/* Halves the window to whole segments without a congestion event. */
static inline void gargalo_window_halve(gargalo_window *w) {
    uint64_t cwnd = w->mss * (w->cwnd / w->mss / 2), ssthresh = w->mss * (w->ssthresh / w->mss / 2);
    if (!gargalo_window_starts(w)) {
        w->ssthresh = gargalo_greatest(ssthresh, w->mss * 2);
    }
    gargalo_window_set(w, cwnd);
    w->fraction = 0.0;
}

/* Writes the numbers of a window. */
static inline void gargalo_window_write(const gargalo_window *w, gargalo_state *state) {
    int starts = gargalo_window_starts(w);
    state->cwnd_bytes = (double)w->cwnd;
    state->ssthresh_bytes = w->ssthresh == UINT64_MAX ? GARGALO_UNSET : (double)w->ssthresh;
    state->flags = starts ? GARGALO_SLOW_START : 0;
    state->phase = w->recovering      ? "recovery"
                   : !starts          ? "congestion-avoidance"
                   : w->conservative  ? "conservative-slow-start"
                                      : "slow-start";
}

#endif
