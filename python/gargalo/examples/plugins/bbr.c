/* BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00), as the built-in bbr: with the pacing margin, the
 * allowance for aggregated acknowledgements and the detection of policers.
 *
 * gargalo plugin build bbr.c
 * gargalo run race.toml --plugin bbr.so --set 'flows.0.transport.tcp.congestion="bbr-c"'
 */
#include <stdlib.h>
#include <string.h>

#include "gargalo_window.h"

#ifndef NAME
#define NAME "bbr-c"
#endif

#define SMALL_RATE_BPS 1200000u
#define MEDIUM_RATE_BPS 24000000u
#define LEAST_RATE_BPS 1000u
#define GREATEST_QUANTUM (64 * 1024)
#define NOMINAL_RTT_NS 1000000u
#define GREATEST_AGGREGATION_NS 100000000u
#define AGGREGATION_SEGMENTS (1u << 20)
#define AGGREGATION_ROUNDS 5

/* Policers: two intervals of 4 to 16 rounds with at least 20 % loss and nearly the same throughput. */
#define POLICER_LEAST_ROUNDS 4
#define POLICER_MOST_ROUNDS (4 * POLICER_LEAST_ROUNDS)
#define POLICER_LOSS 0.2
#define POLICER_RATIO 0.125
#define POLICER_RATE_BPS 4000u
#define POLICER_USE_ROUNDS 48
#define POLICER_LEAST_INTERVAL_NS 1000000u

enum mode { STARTUP, DRAIN, PROBE_BW, PROBE_RTT };
enum recovery { NONE, ENTERING, FAST, TIMEOUT };

/* Pacing gains of PROBE_BW (draft section 4.3.4.1). */
static const double GAINS[] = {1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0};
enum { PHASES = sizeof GAINS / sizeof GAINS[0] };

typedef struct observed {
    uint64_t now_ns;
    uint64_t delivered;
    uint64_t lost;
    int loss;
    int round_start;
    int app_limited;
} observed;

typedef struct bbr {
    const gargalo_host *host;
    struct {
        double startup_gain, cwnd_gain, full_pipe_growth, pacing_margin, extra_acked_gain;
        uint64_t bandwidth_window, min_rtt_window_ns, probe_rtt_duration_ns, min_window, full_pipe_rounds;
        int policer_detection;
    } params;
    uint64_t mss;
    uint64_t initial_window;
    enum mode mode;
    uint64_t cwnd;
    uint64_t pacing_rate;
    double pacing_gain;
    double cwnd_gain;
    int has_seen_rtt;
    /* The greatest bandwidth of a window of rounds: the best sample, the best after it, and the best after that. */
    struct sample {
        uint64_t at;
        uint64_t value;
    } bandwidth[3];
    /* The least round-trip time, GARGALO_NONE until there is one, and when it was seen. */
    uint64_t min_rtt_ns;
    uint64_t min_rtt_at_ns;
    /* Round trips, counted by delivered bytes. */
    struct {
        uint64_t end;
        uint64_t count;
        int start;
    } round;
    struct {
        uint64_t baseline;
        uint64_t rounds;
        int filled;
    } full_pipe;
    /* Aggregation of acknowledgements. */
    struct {
        uint64_t since_ns;
        uint64_t acked;
        uint64_t maxima[2];
        int current;
        uint32_t rounds;
    } aggregation;
    struct {
        int sampling;
        int in_use;
        int has_rate;
        uint64_t rate;
        int has_start;
        observed start;
        uint32_t rounds;
    } policer;
    /* The gain cycle of PROBE_BW. */
    uint32_t phase;
    uint64_t phase_since_ns;
    struct {
        uint64_t done_at_ns;
        int round_done;
        int held;
        uint64_t held_from;
        uint64_t held_until;
    } probe_rtt;
    enum recovery recovery;
    int packet_conservation;
    uint64_t prior_cwnd;
    /* Totals, and bytes lost since the last acknowledgement. */
    uint64_t delivered;
    uint64_t lost;
    uint64_t newly_lost;
    int idle_restart;
} bbr;

enum {
    STARTUP_GAIN,
    CWND_GAIN,
    BANDWIDTH_WINDOW,
    MIN_RTT_WINDOW,
    PROBE_RTT_DURATION,
    MIN_WINDOW,
    FULL_PIPE_GROWTH,
    FULL_PIPE_ROUNDS,
    PACING_MARGIN,
    EXTRA_ACKED_GAIN,
    POLICER_DETECTION
};

static const gargalo_parameter PARAMETERS[] = {
    {"startup_gain", "Pacing gain and cwnd gain of STARTUP; DRAIN paces at the inverse", NULL, 2.885, 1.1, 10,
     GARGALO_NUMBER, 0},
    {"cwnd_gain", "cwnd in bandwidth-delay products in PROBE_BW", NULL, 2, 1, 10, GARGALO_NUMBER, 0},
    {"bandwidth_window", "Window of the bandwidth filter, round trips", NULL, 10, 1, 1000, GARGALO_INTEGER, 0},
    {"min_rtt_window", "Window of the minimum round-trip time", NULL, 10e9, 100e6, 3600e9, GARGALO_DURATION, 0},
    {"probe_rtt_duration", "Shortest time with the least window in PROBE_RTT", NULL, 200e6, 1e6, 10e9,
     GARGALO_DURATION, 0},
    {"min_window", "Least window, segments", NULL, 4, 1, 1000, GARGALO_INTEGER, 0},
    {"full_pipe_growth", "Growth of the bandwidth in a round that shows that the pipe is not full, as a factor", NULL,
     1.25, 1.01, 10, GARGALO_NUMBER, 0},
    {"full_pipe_rounds", "Rounds without that growth that end STARTUP", NULL, 3, 1, 100, GARGALO_INTEGER, 0},
    {"pacing_margin", "Fraction of the bandwidth left unused when pacing", NULL, 0.01, 0, 0.5, GARGALO_NUMBER, 0},
    {"extra_acked_gain", "Share of the aggregation of acknowledgements added to cwnd", NULL, 1, 0, 10, GARGALO_NUMBER,
     0},
    {"policer_detection", "Detect token-bucket policers and use their long-term rate", NULL, 1, 0, 1, GARGALO_SWITCH,
     0},
};

/* The amount sent at a rate in a time. */
static uint64_t volume(uint64_t rate, uint64_t span_ns) {
    return gargalo_rounded(((double)rate / 8.0) * ((double)span_ns * 1e-9));
}

static int is_policed(const bbr *b) { return b->policer.in_use && b->policer.has_rate; }

/* The bandwidth in use. */
static uint64_t bandwidth(const bbr *b) { return is_policed(b) ? b->policer.rate : b->bandwidth[0].value; }

static void update_bandwidth_filter(bbr *b, uint64_t at, uint64_t value) {
    struct sample *s = b->bandwidth, new = {at, value};
    uint64_t window = b->params.bandwidth_window;
    if (value >= s[0].value || gargalo_difference(at, s[2].at) > window) {
        s[0] = s[1] = s[2] = new;
        return;
    }
    if (value >= s[1].value) {
        s[1] = s[2] = new;
    } else if (value >= s[2].value) {
        s[2] = new;
    }
    uint64_t elapsed = gargalo_difference(at, s[0].at);
    if (elapsed > window) {
        s[0] = s[1];
        s[1] = s[2];
        s[2] = new;
        if (gargalo_difference(at, s[0].at) > window) {
            s[0] = s[1];
            s[1] = s[2];
        }
    } else if (s[1].at == s[0].at && elapsed > window / 4) {
        s[1] = s[2] = new;
    } else if (s[2].at == s[1].at && elapsed > window / 2) {
        s[2] = new;
    }
}

/* --- policers --- */

static void reset_policer(bbr *b) { memset(&b->policer, 0, sizeof b->policer); }

static void begin_interval(bbr *b, const observed *o) {
    b->policer.start = *o;
    b->policer.has_start = 1;
    b->policer.rounds = 0;
}

static void end_interval(bbr *b, uint64_t rate, const observed *o) {
    if (b->policer.has_rate) {
        uint64_t before = b->policer.rate, difference = rate > before ? rate - before : before - rate;
        if (difference <= gargalo_scaled(before, POLICER_RATIO) || difference <= POLICER_RATE_BPS) {
            b->policer.rate = gargalo_sum(rate, before) / 2;
            b->policer.in_use = 1;
            b->policer.rounds = 0;
            return;
        }
    }
    b->policer.rate = rate;
    b->policer.has_rate = 1;
    begin_interval(b, o);
}

static void observe(bbr *b, const observed *o) {
    if (!b->policer.sampling) {
        /* Until the first loss the bucket still has tokens. */
        if (!o->loss) {
            return;
        }
        begin_interval(b, o);
        b->policer.sampling = 1;
    }
    if (o->app_limited) {
        reset_policer(b);
        return;
    }
    b->policer.rounds += o->round_start != 0;
    if (b->policer.rounds < POLICER_LEAST_ROUNDS) {
        return;
    }
    if (b->policer.rounds > POLICER_MOST_ROUNDS) {
        reset_policer(b);
        return;
    }
    if (!b->policer.has_start) {
        return;
    }
    /* An interval ends with a loss: the bucket is empty again. */
    uint64_t delivered = gargalo_difference(o->delivered, b->policer.start.delivered);
    uint64_t lost = gargalo_difference(o->lost, b->policer.start.lost);
    uint64_t elapsed = gargalo_difference(o->now_ns, b->policer.start.now_ns);
    if (!o->loss || delivered == 0 || (double)lost < POLICER_LOSS * (double)delivered ||
        elapsed < POLICER_LEAST_INTERVAL_NS) {
        return;
    }
    end_interval(b, gargalo_rate(delivered, elapsed), o);
}

/* --- outputs (draft section 4.2) --- */

static uint64_t paced(const bbr *b, uint64_t rate, double gain) {
    return gargalo_greatest(gargalo_scaled(rate, gain * (1.0 - b->params.pacing_margin)), LEAST_RATE_BPS);
}

static void init_pacing_rate(bbr *b, uint64_t srtt_ns) {
    b->has_seen_rtt = srtt_ns != GARGALO_NONE;
    uint64_t rtt = b->has_seen_rtt ? gargalo_greatest(srtt_ns, 1) : NOMINAL_RTT_NS;
    b->pacing_rate = paced(b, gargalo_rate(b->cwnd, rtt), b->params.startup_gain);
}

static void set_pacing_rate(bbr *b, double gain, uint64_t srtt_ns) {
    if (!b->has_seen_rtt && srtt_ns != GARGALO_NONE) {
        init_pacing_rate(b, srtt_ns);
    }
    uint64_t rate = paced(b, bandwidth(b), gain);
    if (b->full_pipe.filled || rate > b->pacing_rate) {
        b->pacing_rate = rate;
    }
}

static uint64_t quantum(const bbr *b) {
    if (b->pacing_rate < SMALL_RATE_BPS) {
        return b->mss;
    }
    if (b->pacing_rate < MEDIUM_RATE_BPS) {
        return b->mss * 2;
    }
    return gargalo_greatest(gargalo_least(b->pacing_rate / 8000, GREATEST_QUANTUM), b->mss * 2);
}

static uint64_t least_cwnd(const bbr *b) { return gargalo_greatest(b->mss * b->params.min_window, b->mss); }

static uint64_t bdp(const bbr *b, uint64_t rate, double gain) {
    if (b->min_rtt_ns == GARGALO_NONE) {
        return b->initial_window;
    }
    return gargalo_least(gargalo_scaled(volume(rate, b->min_rtt_ns), gain), GARGALO_MAX_WINDOW);
}

/* Room for full-sized bursts in both hosts, in whole pairs of segments. */
static uint64_t quantized(const bbr *b, uint64_t window) {
    uint64_t pair = b->mss * 2, room = window + quantum(b) * 3;
    uint64_t segments = (room + pair - 1) / pair * pair;
    return b->mode == PROBE_BW && b->phase == 0 ? segments + pair : segments;
}

static uint64_t inflight(const bbr *b, uint64_t rate, double gain) { return quantized(b, bdp(b, rate, gain)); }

static void clamp_cwnd(bbr *b) {
    b->cwnd = gargalo_greatest(gargalo_least(b->cwnd, GARGALO_MAX_WINDOW), b->mss);
    if (b->mode == PROBE_RTT) {
        b->cwnd = gargalo_least(b->cwnd, least_cwnd(b));
    }
}

static void write_state(const bbr *b, gargalo_state *state) {
    static const char *const PHASE_NAMES[] = {"startup", "drain", "probe-bw", "probe-rtt"};
    state->cwnd_bytes = (double)b->cwnd;
    state->pacing_rate_bps = (double)b->pacing_rate;
    state->send_quantum_bytes = (double)quantum(b);
    state->phase = PHASE_NAMES[b->mode];
    state->flags = GARGALO_GOVERNS_RECOVERY | (b->mode == STARTUP ? GARGALO_SLOW_START : 0);
}

/* --- state machine (draft section 4.3) --- */

static void next_phase(bbr *b, uint64_t now_ns) {
    b->phase = (b->phase + 1) % PHASES;
    b->phase_since_ns = now_ns;
}

/* Starts at random in any phase but the draining one. */
static void enter_probe_bw(bbr *b, uint64_t now_ns) {
    b->mode = PROBE_BW;
    b->phase = PHASES - 1 - (uint32_t)(b->host->random(b->host->context) % 7);
    next_phase(b, now_ns);
}

static int is_app_limited(const bbr *b, const gargalo_rate_sample *sample) {
    uint64_t prior = sample->prior_delivered_bytes;
    return sample->app_limited ||
           (b->probe_rtt.held && b->probe_rtt.held_from <= prior && prior <= b->probe_rtt.held_until);
}

static void sample_policer(bbr *b, uint64_t now_ns, int loss, int app_limited) {
    if (is_policed(b)) {
        if (b->mode == PROBE_BW && b->round.start) {
            b->policer.rounds += 1;
            if (b->policer.rounds >= POLICER_USE_ROUNDS) {
                reset_policer(b);
                enter_probe_bw(b, now_ns);
            }
        }
        return;
    }
    observed o = {now_ns, b->delivered, b->lost, loss, b->round.start, app_limited};
    observe(b, &o);
}

static void update_bandwidth(bbr *b, const gargalo_acked *ack, int loss) {
    if (!ack->has_sample) {
        b->round.start = 0;
        return;
    }
    const gargalo_rate_sample *sample = &ack->sample;
    int app_limited = is_app_limited(b, sample);
    b->round.start = sample->prior_delivered_bytes >= b->round.end;
    if (b->round.start) {
        b->round.end = b->delivered;
        b->round.count += 1;
        b->packet_conservation = 0;
    }
    if (b->params.policer_detection) {
        sample_policer(b, ack->now_ns, loss, app_limited);
    }
    uint64_t rate = gargalo_rate(sample->delivered_bytes, sample->interval_ns);
    if (!app_limited || rate >= b->bandwidth[0].value) {
        update_bandwidth_filter(b, b->round.count, rate);
    }
}

static void restart_aggregation(bbr *b, uint64_t now_ns) {
    b->aggregation.since_ns = now_ns;
    b->aggregation.acked = 0;
}

static void update_aggregation(bbr *b, const gargalo_acked *ack) {
    if (b->params.extra_acked_gain == 0.0 || !ack->has_sample || ack->bytes == 0) {
        return;
    }
    if (b->round.start) {
        b->aggregation.rounds += 1;
        if (b->aggregation.rounds >= AGGREGATION_ROUNDS) {
            b->aggregation.rounds = 0;
            b->aggregation.current = 1 - b->aggregation.current;
            b->aggregation.maxima[b->aggregation.current] = 0;
        }
    }
    uint64_t expected = volume(bandwidth(b), gargalo_difference(ack->now_ns, b->aggregation.since_ns));
    if (b->aggregation.acked <= expected || b->aggregation.acked + ack->bytes >= b->mss * AGGREGATION_SEGMENTS) {
        restart_aggregation(b, ack->now_ns);
        expected = 0;
    }
    b->aggregation.acked += ack->bytes;
    uint64_t extra = gargalo_least(gargalo_difference(b->aggregation.acked, expected), b->cwnd);
    uint64_t *greatest = &b->aggregation.maxima[b->aggregation.current];
    *greatest = gargalo_greatest(*greatest, extra);
}

static uint64_t extra_acked(const bbr *b) {
    return gargalo_greatest(b->aggregation.maxima[0], b->aggregation.maxima[1]);
}

/* Draft section 4.3.4.4, BBRIsNextCyclePhase. */
static int is_next_phase(const bbr *b, const gargalo_acked *ack, int loss) {
    int full_length = gargalo_difference(ack->now_ns, b->phase_since_ns) > b->min_rtt_ns;
    uint64_t rate = b->bandwidth[0].value;
    if (b->pacing_gain > 1.0) {
        /* Probing lasts until the extra data is in flight, or is dropped. */
        return full_length && (loss || ack->in_flight_before_bytes >= inflight(b, rate, b->pacing_gain));
    }
    if (b->pacing_gain < 1.0) {
        /* Draining ends early when the queue is gone. */
        return full_length || ack->in_flight_before_bytes <= inflight(b, rate, 1.0);
    }
    return full_length;
}

static void check_full_pipe(bbr *b, const gargalo_acked *ack) {
    if (b->full_pipe.filled || !b->round.start || !ack->has_sample || is_app_limited(b, &ack->sample)) {
        return;
    }
    uint64_t rate = b->bandwidth[0].value;
    if (rate >= gargalo_scaled(b->full_pipe.baseline, b->params.full_pipe_growth)) {
        b->full_pipe.baseline = rate;
        b->full_pipe.rounds = 0;
        return;
    }
    b->full_pipe.rounds += 1;
    b->full_pipe.filled = b->full_pipe.rounds >= b->params.full_pipe_rounds;
}

static void check_drain(bbr *b, const gargalo_acked *ack) {
    if (b->mode == STARTUP && b->full_pipe.filled) {
        b->mode = DRAIN;
    }
    if (b->mode == DRAIN && ack->in_flight_bytes <= inflight(b, b->bandwidth[0].value, 1.0)) {
        enter_probe_bw(b, ack->now_ns);
    }
}

/* Remembers the last good window (draft section 4.2.3.4, BBRSaveCwnd). */
static void save_cwnd(bbr *b) {
    int is_good = b->recovery == NONE && b->mode != PROBE_RTT;
    b->prior_cwnd = is_good ? b->cwnd : gargalo_greatest(b->prior_cwnd, b->cwnd);
}

static void leave_probe_rtt(bbr *b, uint64_t now_ns) {
    b->min_rtt_at_ns = now_ns;
    b->cwnd = gargalo_greatest(b->cwnd, b->prior_cwnd);
    if (b->full_pipe.filled) {
        enter_probe_bw(b, now_ns);
    } else {
        b->mode = STARTUP;
    }
}

static int has_waited(const bbr *b, uint64_t now_ns) {
    return b->probe_rtt.done_at_ns != GARGALO_NONE && now_ns > b->probe_rtt.done_at_ns;
}

/* Draft section 4.3.5.2, BBRHandleProbeRTT; returns whether it has ended. */
static int handle_probe_rtt(bbr *b, const gargalo_acked *ack) {
    b->probe_rtt.held_until = b->delivered + ack->in_flight_bytes;
    if (b->probe_rtt.done_at_ns == GARGALO_NONE) {
        if (ack->in_flight_bytes <= least_cwnd(b)) {
            b->probe_rtt.done_at_ns = ack->now_ns + b->params.probe_rtt_duration_ns;
            b->round.end = b->delivered;
        }
        return 0;
    }
    b->probe_rtt.round_done |= b->round.start;
    return b->probe_rtt.round_done && has_waited(b, ack->now_ns);
}

static void update_min_rtt(bbr *b, const gargalo_acked *ack) {
    int expired = ack->now_ns > b->min_rtt_at_ns + b->params.min_rtt_window_ns;
    if (ack->rtt_ns != GARGALO_NONE && (expired || b->min_rtt_ns == GARGALO_NONE || ack->rtt_ns < b->min_rtt_ns)) {
        b->min_rtt_ns = ack->rtt_ns;
        b->min_rtt_at_ns = ack->now_ns;
    }
    if (expired && !b->idle_restart && b->mode != PROBE_RTT) {
        save_cwnd(b);
        b->mode = PROBE_RTT;
        b->probe_rtt.done_at_ns = GARGALO_NONE;
        b->probe_rtt.round_done = 0;
        b->probe_rtt.held = 1;
        b->probe_rtt.held_from = b->delivered;
    }
    if (b->mode == PROBE_RTT && handle_probe_rtt(b, ack)) {
        leave_probe_rtt(b, ack->now_ns);
    }
    if (ack->has_sample) {
        b->idle_restart = 0;
    }
}

static void update_gains(bbr *b) {
    double startup = b->params.startup_gain;
    switch (b->mode) {
    case STARTUP:
        b->pacing_gain = b->cwnd_gain = startup;
        break;
    case DRAIN:
        b->pacing_gain = 1.0 / startup;
        b->cwnd_gain = startup;
        break;
    case PROBE_BW:
        b->pacing_gain = is_policed(b) ? 1.0 : GAINS[b->phase];
        b->cwnd_gain = b->params.cwnd_gain;
        break;
    case PROBE_RTT:
        b->pacing_gain = b->cwnd_gain = 1.0;
        break;
    }
}

/* Recovery (draft section 4.2.3.4): whether packet conservation determines the window. */
static int conserve(bbr *b, const gargalo_acked *ack, uint64_t lost) {
    b->cwnd = gargalo_greatest(gargalo_difference(b->cwnd, lost), b->mss);
    uint64_t conserved = ack->in_flight_bytes + ack->bytes;
    if (b->recovery == ENTERING) {
        b->recovery = FAST;
        b->packet_conservation = 1;
        b->round.end = b->delivered;
        b->cwnd = conserved;
    }
    if (b->packet_conservation) {
        b->cwnd = gargalo_greatest(b->cwnd, conserved);
    }
    return b->packet_conservation;
}

static void approach_target(bbr *b, const gargalo_acked *ack) {
    uint64_t rate = bandwidth(b), target = bdp(b, rate, b->cwnd_gain);
    if (b->full_pipe.filled) {
        uint64_t aggregation = gargalo_scaled(extra_acked(b), b->params.extra_acked_gain);
        target += gargalo_least(aggregation, volume(rate, GREATEST_AGGREGATION_NS));
    }
    target = quantized(b, target);
    if (b->full_pipe.filled) {
        b->cwnd = gargalo_least(b->cwnd + ack->bytes, target);
    } else if (b->cwnd < target || b->delivered < b->initial_window) {
        b->cwnd += ack->bytes;
    }
    b->cwnd = gargalo_greatest(b->cwnd, least_cwnd(b));
}

static void end_recovery(bbr *b) {
    if (b->recovery == NONE) {
        return;
    }
    b->recovery = NONE;
    b->packet_conservation = 0;
    b->cwnd = gargalo_greatest(b->cwnd, b->prior_cwnd);
    clamp_cwnd(b);
}

/* --- events --- */

static void *create(const void *data, const gargalo_init *init, gargalo_state *state) {
    (void)data;
    bbr *b = calloc(1, sizeof *b);
    if (b == NULL) {
        state->error = "no memory";
        return NULL;
    }
    const double *p = init->parameters;
    b->host = init->host;
    b->params.startup_gain = p[STARTUP_GAIN];
    b->params.cwnd_gain = p[CWND_GAIN];
    b->params.bandwidth_window = (uint64_t)p[BANDWIDTH_WINDOW];
    b->params.min_rtt_window_ns = (uint64_t)p[MIN_RTT_WINDOW];
    b->params.probe_rtt_duration_ns = (uint64_t)p[PROBE_RTT_DURATION];
    b->params.min_window = (uint64_t)p[MIN_WINDOW];
    b->params.full_pipe_growth = p[FULL_PIPE_GROWTH];
    b->params.full_pipe_rounds = (uint64_t)p[FULL_PIPE_ROUNDS];
    b->params.pacing_margin = p[PACING_MARGIN];
    b->params.extra_acked_gain = p[EXTRA_ACKED_GAIN];
    b->params.policer_detection = p[POLICER_DETECTION] != 0;
    b->mss = gargalo_segment(init->mss_bytes);
    b->cwnd = gargalo_least(gargalo_greatest(init->initial_window_bytes, b->mss), GARGALO_MAX_WINDOW);
    b->initial_window = b->cwnd;
    b->pacing_gain = b->cwnd_gain = b->params.startup_gain;
    b->min_rtt_ns = GARGALO_NONE;
    b->min_rtt_at_ns = init->now_ns;
    b->aggregation.since_ns = init->now_ns;
    b->phase_since_ns = init->now_ns;
    b->probe_rtt.done_at_ns = GARGALO_NONE;
    init_pacing_rate(b, GARGALO_NONE);
    write_state(b, state);
    return b;
}

static void *copy(const void *controller, const gargalo_host *host) {
    bbr *b = malloc(sizeof *b);
    if (b != NULL) {
        memcpy(b, controller, sizeof *b);
        b->host = host;
    }
    return b;
}

static void on_send(void *controller, const gargalo_sent *sent, const gargalo_path *path, gargalo_state *state) {
    bbr *b = controller;
    /* Restart from idle (draft section 4.3.4.4). */
    int is_restart = sent->in_flight_bytes == 0 && sent->idle_ns != GARGALO_NONE && !sent->retransmission &&
                     (sent->app_limited || sent->was_app_limited);
    if (!is_restart) {
        return;
    }
    b->idle_restart = 1;
    restart_aggregation(b, sent->now_ns);
    if (b->mode == PROBE_BW) {
        set_pacing_rate(b, 1.0, path->srtt_ns);
    } else if (b->mode == PROBE_RTT && has_waited(b, sent->now_ns)) {
        leave_probe_rtt(b, sent->now_ns);
        update_gains(b);
    }
    write_state(b, state);
}

static void on_ack(void *controller, const gargalo_acked *ack, const gargalo_path *path, gargalo_state *state) {
    bbr *b = controller;
    uint64_t lost = b->newly_lost;
    int loss = lost > 0;
    b->newly_lost = 0;
    b->delivered = ack->has_sample ? ack->sample.total_delivered_bytes : b->delivered + ack->bytes;
    update_bandwidth(b, ack, loss);
    update_aggregation(b, ack);
    if (b->mode == PROBE_BW && is_next_phase(b, ack, loss)) {
        next_phase(b, ack->now_ns);
    }
    check_full_pipe(b, ack);
    check_drain(b, ack);
    update_min_rtt(b, ack);
    update_gains(b);
    set_pacing_rate(b, b->pacing_gain, path->srtt_ns);
    if (ack->bytes > 0 && !conserve(b, ack, lost)) {
        approach_target(b, ack);
    }
    clamp_cwnd(b);
    write_state(b, state);
}

static void on_loss(void *controller, const gargalo_lost *lost, const gargalo_path *path, gargalo_state *state) {
    (void)path;
    (void)state;
    bbr *b = controller;
    b->newly_lost += lost->bytes;
    b->lost += lost->bytes;
}

static void on_congestion(void *controller, const gargalo_congestion_event *event, const gargalo_path *path,
                          gargalo_state *state) {
    (void)path;
    bbr *b = controller;
    if (event->cause == GARGALO_LOSS) {
        save_cwnd(b);
        b->recovery = ENTERING;
    } else if (event->cause == GARGALO_TIMEOUT) {
        save_cwnd(b);
        b->recovery = TIMEOUT;
        b->packet_conservation = 0;
        b->cwnd = b->mss; /* draft section 4.2.3.4, BBROnEnterRTO */
        b->full_pipe.baseline = 0;
        if (b->params.policer_detection && !is_policed(b)) {
            observed o = {event->now_ns, b->delivered, b->lost, 1, 1, 0};
            observe(b, &o);
        }
    }
    write_state(b, state);
}

static void on_spurious(void *controller, const gargalo_spurious *event, const gargalo_path *path,
                        gargalo_state *state) {
    (void)path;
    bbr *b = controller;
    if (event->cause == GARGALO_ECN) {
        return;
    }
    b->full_pipe.baseline = 0;
    b->full_pipe.rounds = 0;
    reset_policer(b);
    end_recovery(b);
    write_state(b, state);
}

static void on_recovered(void *controller, uint64_t now_ns, const gargalo_path *path, gargalo_state *state) {
    (void)now_ns;
    (void)path;
    end_recovery(controller);
    write_state(controller, state);
}

static void on_mss(void *controller, const gargalo_path *path, gargalo_state *state) {
    bbr *b = controller;
    b->mss = gargalo_segment(path->mss_bytes);
    clamp_cwnd(b);
    write_state(b, state);
}

static void on_established(void *controller, const gargalo_established *established, const gargalo_path *path,
                           gargalo_state *state) {
    bbr *b = controller;
    b->mss = gargalo_segment(path->mss_bytes);
    b->cwnd = gargalo_least(gargalo_greatest(established->window_bytes, b->mss), GARGALO_MAX_WINDOW);
    b->initial_window = b->cwnd;
    /* The round trip of the handshake is the first (draft 4.2.1 and 4.3.1). */
    b->min_rtt_ns = path->min_rtt_ns;
    b->min_rtt_at_ns = established->now_ns;
    init_pacing_rate(b, path->srtt_ns);
    write_state(b, state);
}

static void gauges(const void *controller, gargalo_gauge gauge, void *context) {
    const bbr *b = controller;
    gauge(context, "bandwidth_bps", (double)bandwidth(b));
    gauge(context, "min_rtt_s", b->min_rtt_ns == GARGALO_NONE ? 0.0 / 0.0 : (double)b->min_rtt_ns * 1e-9);
    gauge(context, "pacing_gain", b->pacing_gain);
    gauge(context, "cwnd_gain", b->cwnd_gain);
    gauge(context, "extra_acked_bytes", (double)extra_acked(b));
    gauge(context, "max_bandwidth_bps", (double)b->bandwidth[0].value);
    gauge(context, "target_inflight_bytes", (double)inflight(b, b->bandwidth[0].value, 1.0));
    gauge(context, "round_count", (double)b->round.count);
    gauge(context, "full_bandwidth_rounds", (double)b->full_pipe.rounds);
    gauge(context, "full_bandwidth_reached", b->full_pipe.filled);
    gauge(context, "idle_restart", b->idle_restart);
}

static const gargalo_algorithm ALGORITHMS[] = {{
    .name = NAME,
    .summary = "paces at the measured bottleneck bandwidth, keeps two bandwidth-delay products in flight",
    .source = "draft-cardwell-iccrg-bbr-congestion-control-00",
    .parameters = PARAMETERS,
    .parameter_count = sizeof PARAMETERS / sizeof PARAMETERS[0],
    .create = create,
    .destroy = free,
    .clone = copy,
    .on_ack = on_ack,
    .on_congestion = on_congestion,
    .on_send = on_send,
    .on_loss = on_loss,
    .on_spurious = on_spurious,
    .on_recovered = on_recovered,
    .on_established = on_established,
    .on_mss = on_mss,
    .gauges = gauges,
}};
GARGALO_ALGORITHMS(ALGORITHMS);
