/* Offers the congestion controls that a Linux module registers as those of a plug-in; see gargalo_linux.h.
 *
 * What the kernel's TCP keeps for a module in its socket is kept here for each controller, and the module's functions
 * are called in the order in which the kernel calls them. Windows are whole packets of the path's segment size.
 *
 * Licence: MIT OR Apache-2.0, at your option.
 */
#include <stdlib.h>

#include "gargalo_congestion.h"
#include "gargalo_linux.h"

_Thread_local struct gargalo_call gargalo_call;

/* --- what modules call --- */

static u32 least(u32 a, u32 b) { return a < b ? a : b; }
static u32 greatest(u32 a, u32 b) { return a > b ? a : b; }

u32 tcp_current_ssthresh(const struct sock *sk) {
    const struct tcp_sock *tp = tcp_sk(sk);
    if (tcp_in_cwnd_reduction(sk)) {
        return tp->snd_ssthresh;
    }
    return greatest(tp->snd_ssthresh, (tp->snd_cwnd >> 1) + (tp->snd_cwnd >> 2));
}

bool tcp_is_cwnd_limited(const struct sock *sk) {
    const struct tcp_sock *tp = tcp_sk(sk);
    return tp->is_cwnd_limited || (tcp_in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out);
}

u32 tcp_slow_start(struct tcp_sock *tp, u32 acked) {
    u32 room = tp->snd_ssthresh > tp->snd_cwnd ? tp->snd_ssthresh - tp->snd_cwnd : 0;
    u32 grown = least(acked, room);
    tp->snd_cwnd = least(tp->snd_cwnd + grown, tp->snd_cwnd_clamp);
    return acked - grown;
}

void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked) {
    w = greatest(w, 1);
    /* What has been saved up while w was larger counts for one packet. */
    if (tp->snd_cwnd_cnt >= w) {
        tp->snd_cwnd_cnt = 0;
        tp->snd_cwnd += 1;
    }
    u64 count = (u64)tp->snd_cwnd_cnt + acked;
    tp->snd_cwnd += (u32)(count / w);
    tp->snd_cwnd_cnt = (u32)(count % w);
    tp->snd_cwnd = least(tp->snd_cwnd, tp->snd_cwnd_clamp);
}

void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) {
    struct tcp_sock *tp = tcp_sk(sk);
    (void)ack;
    if (!tcp_is_cwnd_limited(sk)) {
        return;
    }
    if (tcp_in_slow_start(tp)) {
        acked = tcp_slow_start(tp, acked);
    }
    if (acked > 0) {
        tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
    }
}

u32 tcp_reno_ssthresh(struct sock *sk) { return greatest(tcp_sk(sk)->snd_cwnd >> 1, 2); }
u32 tcp_reno_undo_cwnd(struct sock *sk) { return greatest(tcp_sk(sk)->snd_cwnd, tcp_sk(sk)->prior_cwnd); }

struct tcp_congestion_ops tcp_reno = {
    .ssthresh = tcp_reno_ssthresh,
    .cong_avoid = tcp_reno_cong_avoid,
    .undo_cwnd = tcp_reno_undo_cwnd,
    .name = "reno",
};

u32 minmax_reset(struct minmax *m, u32 t, u32 measured) {
    m->s[0] = m->s[1] = m->s[2] = (struct minmax_sample){t, measured};
    return measured;
}

/* Kathleen Nichols' filter: the best of the window, the best after it, and the best after that. */
static u32 running(struct minmax *m, u32 window, u32 t, u32 measured, int greatest_wins) {
    struct minmax_sample *s = m->s, new = {t, measured};
#define AT_LEAST(value) (greatest_wins ? measured >= (value) : measured <= (value))
    if (AT_LEAST(s[0].v) || t - s[2].t > window) {
        return minmax_reset(m, t, measured);
    }
    if (AT_LEAST(s[1].v)) {
        s[1] = s[2] = new;
    } else if (AT_LEAST(s[2].v)) {
        s[2] = new;
    }
#undef AT_LEAST
    u32 elapsed = t - s[0].t;
    if (elapsed > window) {
        s[0] = s[1];
        s[1] = s[2];
        s[2] = new;
        if (t - s[0].t > window) {
            s[0] = s[1];
            s[1] = s[2];
        }
    } else if (s[1].t == s[0].t && elapsed > window / 4) {
        s[1] = s[2] = new;
    } else if (s[2].t == s[1].t && elapsed > window / 2) {
        s[2] = new;
    }
    return s[0].v;
}
u32 minmax_running_max(struct minmax *m, u32 window, u32 t, u32 measured) { return running(m, window, t, measured, 1); }
u32 minmax_running_min(struct minmax *m, u32 window, u32 t, u32 measured) { return running(m, window, t, measured, 0); }

/* --- the module: what it registers --- */

enum { MOST = 32 };

static struct parameter {
    void *variable;
    enum gargalo_type type;
} variables[MOST];
static gargalo_parameter parameters[MOST];
static u32 parameter_count;
static struct {
    const char *name;
    const char *doc;
} docs[MOST];
static u32 doc_count;
static const char *too_many;

void gargalo_module_param_doc(const char *name, const char *doc) {
    if (doc_count < MOST) {
        docs[doc_count].name = name;
        docs[doc_count].doc = doc;
        doc_count += 1;
    }
}

static double read_variable(const struct parameter *p) {
    switch (p->type) {
    case gargalo_type_bool: return *(const bool *)p->variable;
    case gargalo_type_byte: return *(const u8 *)p->variable;
    case gargalo_type_short: return *(const short *)p->variable;
    case gargalo_type_ushort: return *(const unsigned short *)p->variable;
    case gargalo_type_int: return *(const int *)p->variable;
    case gargalo_type_uint: return *(const unsigned int *)p->variable;
    case gargalo_type_long: return (double)*(const long *)p->variable;
    case gargalo_type_ulong: return (double)*(const unsigned long *)p->variable;
    case gargalo_type_ullong: return (double)*(const unsigned long long *)p->variable;
    }
    return 0;
}

static void write_variable(const struct parameter *p, double value) {
    switch (p->type) {
    case gargalo_type_bool: *(bool *)p->variable = value != 0; break;
    case gargalo_type_byte: *(u8 *)p->variable = (u8)value; break;
    case gargalo_type_short: *(short *)p->variable = (short)value; break;
    case gargalo_type_ushort: *(unsigned short *)p->variable = (unsigned short)value; break;
    case gargalo_type_int: *(int *)p->variable = (int)value; break;
    case gargalo_type_uint: *(unsigned int *)p->variable = (unsigned int)value; break;
    case gargalo_type_long: *(long *)p->variable = (long)value; break;
    case gargalo_type_ulong: *(unsigned long *)p->variable = (unsigned long)value; break;
    case gargalo_type_ullong: *(unsigned long long *)p->variable = (unsigned long long)value; break;
    }
}

void gargalo_module_param(const char *name, void *variable, enum gargalo_type type) {
    /* Whole numbers are exact in a parameter up to 2^53. */
    static const struct {
        double least, most;
    } RANGES[] = {{0, 1},        {0, 255},          {-32768, 32767}, {0, 65535},           {-2147483648.0, 2147483647.0},
                  {0, 4294967295.0}, {-9007199254740992.0, 9007199254740992.0}, {0, 9007199254740992.0},
                  {0, 9007199254740992.0}};
    if (parameter_count == MOST) {
        too_many = "the module has more than 32 parameters";
        return;
    }
    variables[parameter_count] = (struct parameter){variable, type};
    gargalo_parameter *p = &parameters[parameter_count];
    p->name = name;
    p->doc = "parameter of the module";
    p->kind = type == gargalo_type_bool ? GARGALO_SWITCH : GARGALO_INTEGER;
    p->minimum = RANGES[type].least;
    p->maximum = RANGES[type].most;
    parameter_count += 1;
}

static const struct tcp_congestion_ops *registered[MOST];
static u32 registered_count;

int tcp_register_congestion_control(struct tcp_congestion_ops *ops) {
    if (!ops->ssthresh || !ops->undo_cwnd || !(ops->cong_avoid || ops->cong_control)) {
        return -EINVAL;
    }
    for (u32 i = 0; i < registered_count; i++) {
        if (registered[i] == ops) {
            return 0;
        }
    }
    if (registered_count == MOST) {
        return -ENOSPC;
    }
    registered[registered_count++] = ops;
    return 0;
}

/* --- a connection --- */

struct connection {
    struct tcp_sock tp;
    const struct tcp_congestion_ops *ops;
    const gargalo_host *host;
    /* Totals in bytes: packets are counted from them, so that no part of a segment is lost. */
    u64 mss;
    u64 acked_bytes;
    u64 delivered_bytes;
    u64 ce_bytes;
    u64 lost_bytes;
    u64 loss_since_ack_bytes;
    double values[MOST];
};

static u32 packets(const struct connection *c, u64 bytes) { return (u32)((bytes + c->mss / 2) / c->mss); }

/* Parameters are static variables of the module: before a call they are made those of the connection, and what the
 * module's init computes of them is computed again. Connections of different parameters take turns in one thread. */
static void apply(const struct connection *c) {
    static const double *applied;
    if (parameter_count == 0 || applied == c->values) {
        return;
    }
    int differs = 0;
    for (u32 i = 0; i < parameter_count; i++) {
        differs |= read_variable(&variables[i]) != c->values[i];
    }
    if (differs) {
        for (u32 i = 0; i < parameter_count; i++) {
            write_variable(&variables[i], c->values[i]);
        }
        gargalo_module_init();
    }
    applied = c->values;
}

/* The time, and what a module may have read of it. */
static struct sock *enter(struct connection *c, u64 now_ns) {
    apply(c);
    gargalo_call.now_ns = now_ns;
    gargalo_call.random = c->host->random;
    gargalo_call.context = c->host->context;
    c->tp.tcp_clock_cache = now_ns;
    c->tp.tcp_mstamp = now_ns / NSEC_PER_USEC;
    return &c->tp.inet_conn.icsk_inet;
}

static void view(struct connection *c, const gargalo_path *path) {
    struct tcp_sock *tp = &c->tp;
    if (path->mss_bytes != c->mss) {
        /* The window keeps its bytes; totals of packets go on in segments of the new size. */
        u64 bytes = (u64)tp->snd_cwnd * c->mss;
        c->mss = path->mss_bytes;
        tp->snd_cwnd = greatest((u32)(bytes / c->mss), 1);
    }
    tp->mss_cache = tp->advmss = (u32)c->mss;
    if (path->srtt_ns != GARGALO_NONE) {
        tp->srtt_us = greatest((u32)(path->srtt_ns * 8 / NSEC_PER_USEC), 1);
    }
    if (path->min_rtt_ns != GARGALO_NONE) {
        minmax_reset(&tp->rtt_min, tcp_jiffies32, (u32)(path->min_rtt_ns / NSEC_PER_USEC));
    }
    tp->packets_out = packets(c, path->in_flight_bytes);
    u32 next = tp->snd_una + (u32)path->in_flight_bytes;
    if (after(next, tp->snd_nxt)) {
        tp->snd_nxt = tp->write_seq = next;
    }
}

static void write_state(const struct connection *c, gargalo_state *state) {
    const struct tcp_sock *tp = &c->tp;
    const struct sock *sk = &tp->inet_conn.icsk_inet;
    int controls = c->ops->cong_control != NULL, starts = !controls && tcp_in_slow_start(tp);
    u8 ca_state = tp->inet_conn.icsk_ca_state;
    state->cwnd_bytes = (double)tp->snd_cwnd * (double)c->mss;
    state->ssthresh_bytes = tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH || tp->snd_ssthresh == 0
                                ? GARGALO_UNSET
                                : (double)tp->snd_ssthresh * (double)c->mss;
    unsigned long rate = sk->sk_pacing_rate < sk->sk_max_pacing_rate ? sk->sk_pacing_rate : sk->sk_max_pacing_rate;
    int paces = sk->sk_pacing_status != SK_PACING_NONE && rate != ~0UL;
    state->pacing_rate_bps = paces ? (double)rate * 8 : GARGALO_UNSET;
    state->send_quantum_bytes = GARGALO_UNSET;
    if (paces) {
        /* About a millisecond of the rate, within what the module asks for and a large segment. */
        u64 burst = rate >> sk->sk_pacing_shift;
        u64 floor = (u64)(c->ops->min_tso_segs ? c->ops->min_tso_segs((struct sock *)sk) : 2) * c->mss;
        burst = burst < floor ? floor : burst > GSO_LEGACY_MAX_SIZE ? GSO_LEGACY_MAX_SIZE : burst;
        state->send_quantum_bytes = (double)burst;
    }
    state->flags = (starts ? GARGALO_SLOW_START : 0) | (controls ? GARGALO_GOVERNS_RECOVERY : 0);
    state->phase = ca_state == TCP_CA_Loss                                    ? "loss"
                   : ca_state == TCP_CA_Recovery || ca_state == TCP_CA_CWR    ? "recovery"
                   : starts                                                   ? "slow-start"
                   : controls                                                 ? "open"
                                                                              : "congestion-avoidance";
}

static void set_state(struct connection *c, u8 state) {
    struct inet_connection_sock *icsk = &c->tp.inet_conn;
    if (c->ops->set_state) {
        c->ops->set_state(&icsk->icsk_inet, state);
    }
    icsk->icsk_ca_state = state;
}

static void tell(struct connection *c, enum tcp_ca_event event) {
    if (c->ops->cwnd_event) {
        c->ops->cwnd_event(&c->tp.inet_conn.icsk_inet, event);
    }
}

static void *create(const void *data, const gargalo_init *init, gargalo_state *state) {
    struct connection *c = calloc(1, sizeof *c);
    if (c == NULL) {
        state->error = "no memory";
        return NULL;
    }
    struct tcp_sock *tp = &c->tp;
    struct sock *sk = &tp->inet_conn.icsk_inet;
    c->ops = data;
    c->host = init->host;
    c->mss = init->mss_bytes;
    for (u32 i = 0; i < parameter_count; i++) {
        c->values[i] = init->parameters[i];
    }
    tp->inet_conn.icsk_ca_ops = c->ops;
    tp->inet_conn.icsk_ca_initialized = 1;
    tp->mss_cache = tp->advmss = (u32)c->mss;
    tp->snd_cwnd = greatest(packets(c, init->initial_window_bytes), 1);
    tp->snd_cwnd_clamp = U32_MAX;
    tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
    tp->reordering = 3;
    tp->delivered = 1; /* the kernel counts the handshake's packet */
    tp->app_limited = ~0u;
    minmax_reset(&tp->rtt_min, 0, ~0u);
    sk->sk_pacing_rate = ~0UL;
    sk->sk_max_pacing_rate = ~0UL;
    sk->sk_pacing_shift = 10;
    sk->sk_gso_max_size = GSO_LEGACY_MAX_SIZE;
    sk->sk_gso_max_segs = 65535;
    sk->sk_state = 1;
    tp->ecn_flags = c->ops->flags & TCP_CONG_NEEDS_ECN ? TCP_ECN_OK : 0;
    enter(c, init->now_ns);
    tp->delivered_mstamp = tp->first_tx_mstamp = tp->tcp_mstamp;
    if (c->ops->init) {
        c->ops->init(sk);
    }
    write_state(c, state);
    return c;
}

static void destroy(void *controller) {
    struct connection *c = controller;
    struct sock *sk = enter(c, c->tp.tcp_clock_cache);
    if (c->ops->release) {
        c->ops->release(sk);
    }
    free(c);
}

static void *copy(const void *controller, const gargalo_host *host) {
    struct connection *c = malloc(sizeof *c);
    if (c != NULL) {
        memcpy(c, controller, sizeof *c);
        c->host = host;
    }
    return c;
}

static void fill(struct connection *c, struct rate_sample *rs, const gargalo_acked *ack, u32 delivered) {
    struct tcp_sock *tp = &c->tp;
    memset(rs, 0, sizeof *rs);
    rs->rtt_us = ack->rtt_ns == GARGALO_NONE ? -1 : (long)(ack->rtt_ns / NSEC_PER_USEC);
    rs->acked_sacked = delivered;
    rs->losses = (int)packets(c, c->loss_since_ack_bytes);
    rs->prior_in_flight = packets(c, ack->in_flight_before_bytes);
    rs->is_ece = ack->ce_bytes > 0;
    rs->interval_us = -1;
    rs->delivered = -1;
    if (!ack->has_sample) {
        return;
    }
    const gargalo_rate_sample *s = &ack->sample;
    rs->delivered = (s32)packets(c, s->delivered_bytes);
    rs->delivered_ce = (s32)packets(c, ack->ce_bytes);
    rs->interval_us = (long)(s->interval_ns / NSEC_PER_USEC);
    rs->snd_interval_us = (u32)(s->send_elapsed_ns / NSEC_PER_USEC);
    rs->rcv_interval_us = (u32)(s->ack_elapsed_ns / NSEC_PER_USEC);
    rs->prior_delivered = 1 + packets(c, s->prior_delivered_bytes);
    rs->prior_mstamp = tp->tcp_mstamp - rs->rcv_interval_us;
    rs->is_app_limited = s->app_limited != 0;
    rs->is_retrans = s->retransmission != 0;
    rs->last_end_seq = tp->snd_una;
    tp->rate_delivered = (u32)rs->delivered;
    tp->rate_interval_us = (u32)rs->interval_us;
    tp->rate_app_limited = rs->is_app_limited;
    tp->app_limited = s->app_limited ? greatest(tp->delivered + tp->packets_out, 1) : 0;
}

static void on_ack(void *controller, const gargalo_acked *ack, const gargalo_path *path, gargalo_state *state) {
    struct connection *c = controller;
    struct tcp_sock *tp = &c->tp;
    struct sock *sk = enter(c, ack->now_ns);
    u32 acked_before = packets(c, c->acked_bytes), delivered_before = packets(c, c->delivered_bytes);
    c->acked_bytes += ack->acknowledged_bytes;
    c->delivered_bytes = ack->has_sample ? ack->sample.total_delivered_bytes : c->delivered_bytes + ack->bytes;
    c->ce_bytes += ack->ce_bytes;
    tp->snd_una += (u32)ack->acknowledged_bytes;
    view(c, path);
    tp->bytes_acked = c->acked_bytes;
    u32 acked = packets(c, c->acked_bytes) - acked_before;
    u32 delivered = packets(c, c->delivered_bytes) - delivered_before;
    tp->delivered = 1 + packets(c, c->delivered_bytes);
    tp->delivered_ce = packets(c, c->ce_bytes);
    tp->is_cwnd_limited = ack->cwnd_limited != 0;
    tp->max_packets_out = greatest(packets(c, ack->in_flight_before_bytes), 1);
    if (ack->bytes > 0) {
        tp->delivered_mstamp = tp->tcp_mstamp;
    }
    if (ack->sent_at_ns != GARGALO_NONE) {
        tp->first_tx_mstamp = ack->sent_at_ns / NSEC_PER_USEC;
    }
    if (c->ops->in_ack_event) {
        c->ops->in_ack_event(sk, CA_ACK_SLOWPATH | (ack->ce_bytes > 0 ? CA_ACK_ECE : 0));
    }
    if (c->ops->pkts_acked && ack->bytes > 0) {
        struct ack_sample sample = {delivered, -1, packets(c, ack->in_flight_before_bytes)};
        if (ack->rtt_ns != GARGALO_NONE) {
            sample.rtt_us = (s32)(ack->rtt_ns / NSEC_PER_USEC);
        }
        c->ops->pkts_acked(sk, &sample);
    }
    if (c->ops->cong_control) {
        struct rate_sample rs;
        fill(c, &rs, ack, delivered);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
        c->ops->cong_control(sk, tp->snd_una, 0, &rs);
#else
        c->ops->cong_control(sk, &rs);
#endif
    } else if (!ack->in_recovery && acked > 0) {
        c->ops->cong_avoid(sk, tp->snd_una, acked);
        tp->snd_cwnd_stamp = tcp_jiffies32;
    }
    c->loss_since_ack_bytes = 0;
    write_state(c, state);
}

static void on_loss(void *controller, const gargalo_lost *lost, const gargalo_path *path, gargalo_state *state) {
    struct connection *c = controller;
    (void)state;
    enter(c, lost->now_ns);
    view(c, path);
    c->lost_bytes += lost->bytes;
    c->loss_since_ack_bytes += lost->bytes;
    c->tp.lost = packets(c, c->lost_bytes);
}

static void on_congestion(void *controller, const gargalo_congestion_event *event, const gargalo_path *path,
                          gargalo_state *state) {
    struct connection *c = controller;
    struct tcp_sock *tp = &c->tp;
    struct sock *sk = enter(c, event->now_ns);
    view(c, path);
    int timeout = event->cause == GARGALO_TIMEOUT;
    if (!timeout || event->consecutive <= 1) {
        /* A mark cannot be spurious. */
        tp->prior_ssthresh = event->cause == GARGALO_ECN ? 0 : tcp_current_ssthresh(sk);
        tp->undo_marker = event->cause == GARGALO_ECN ? 0 : greatest(tp->snd_una, 1);
        tp->prior_cwnd = tp->snd_cwnd;
        tp->snd_ssthresh = c->ops->ssthresh(sk);
    }
    tp->high_seq = tp->snd_nxt;
    tp->snd_cwnd_cnt = 0;
    if (timeout) {
        tp->inet_conn.icsk_retransmits = (u8)least(event->consecutive, 255);
        tell(c, CA_EVENT_LOSS);
        tp->snd_cwnd = 1;
        set_state(c, TCP_CA_Loss);
    } else {
        set_state(c, event->cause == GARGALO_ECN ? TCP_CA_CWR : TCP_CA_Recovery);
        if (!c->ops->cong_control) {
            /* The transport spreads the reduction over a round trip, as the kernel's does. */
            tp->snd_cwnd = greatest(least(tp->snd_cwnd, tp->snd_ssthresh), 1);
        }
    }
    tp->snd_cwnd_stamp = tcp_jiffies32;
    write_state(c, state);
}

static void on_recovered(void *controller, uint64_t now_ns, const gargalo_path *path, gargalo_state *state) {
    struct connection *c = controller;
    struct tcp_sock *tp = &c->tp;
    struct sock *sk = enter(c, now_ns);
    view(c, path);
    if (tcp_in_cwnd_reduction(sk) && !c->ops->cong_control) {
        tp->snd_cwnd = greatest(tp->snd_ssthresh, 1);
        tp->snd_cwnd_stamp = tcp_jiffies32;
        tell(c, CA_EVENT_COMPLETE_CWR);
    }
    tp->inet_conn.icsk_retransmits = 0;
    tp->undo_marker = 0;
    set_state(c, TCP_CA_Open);
    write_state(c, state);
}

static void on_spurious(void *controller, const gargalo_spurious *event, const gargalo_path *path,
                        gargalo_state *state) {
    struct connection *c = controller;
    struct tcp_sock *tp = &c->tp;
    struct sock *sk = enter(c, event->now_ns);
    view(c, path);
    if (tp->prior_ssthresh != 0) {
        tp->snd_cwnd = greatest(c->ops->undo_cwnd(sk), 1);
        tp->snd_ssthresh = greatest(tp->snd_ssthresh, tp->prior_ssthresh);
        tp->prior_ssthresh = 0;
    }
    tp->undo_marker = 0;
    set_state(c, TCP_CA_Open);
    write_state(c, state);
}

static void on_send(void *controller, const gargalo_sent *sent, const gargalo_path *path, gargalo_state *state) {
    struct connection *c = controller;
    struct tcp_sock *tp = &c->tp;
    if (sent->idle_ns == GARGALO_NONE) {
        return;
    }
    struct sock *sk = enter(c, sent->now_ns);
    view(c, path);
    if (sent->restart_window_bytes != GARGALO_NONE && sent->idle_ns > sent->rto_ns && !c->ops->cong_control) {
        tell(c, CA_EVENT_CWND_RESTART);
        tp->snd_ssthresh = tcp_current_ssthresh(sk);
        tp->snd_cwnd = greatest(least(tp->snd_cwnd, packets(c, sent->restart_window_bytes)), 1);
        tp->snd_cwnd_stamp = tcp_jiffies32;
        tp->snd_cwnd_used = 0;
    }
    tp->app_limited = sent->app_limited ? greatest(tp->delivered, 1) : 0;
    tell(c, CA_EVENT_TX_START);
    tp->lsndtime = tcp_jiffies32;
    write_state(c, state);
}

static void on_mss(void *controller, const gargalo_path *path, gargalo_state *state) {
    struct connection *c = controller;
    view(c, path);
    write_state(c, state);
}

static void on_established(void *controller, uint64_t window_bytes, const gargalo_path *path, gargalo_state *state) {
    struct connection *c = controller;
    view(c, path);
    c->tp.snd_cwnd = greatest(packets(c, window_bytes), 1);
    write_state(c, state);
}

static void halve(void *controller, gargalo_state *state) {
    struct connection *c = controller;
    struct tcp_sock *tp = &c->tp;
    if (!tcp_in_slow_start(tp)) {
        tp->snd_ssthresh = greatest(tp->snd_ssthresh / 2, 2);
    }
    tp->snd_cwnd = greatest(tp->snd_cwnd / 2, 1);
    write_state(c, state);
}

const char *gargalo_module_description = "a congestion control of Linux";

const gargalo_congestion *gargalo_congestion_v1(void) {
    static gargalo_algorithm algorithms[MOST];
    static gargalo_congestion table = {GARGALO_CONGESTION_ABI, 0, algorithms, GARGALO_SIZES};
    static char names[MOST][TCP_CA_NAME_MAX + 1];
    if (table.algorithm_count > 0) {
        return &table;
    }
    for (u32 i = 0; i < parameter_count; i++) {
        parameters[i].default_value = read_variable(&variables[i]);
        for (u32 j = 0; j < doc_count; j++) {
            if (strcmp(docs[j].name, parameters[i].name) == 0) {
                parameters[i].doc = docs[j].doc;
            }
        }
    }
    if (too_many != NULL || gargalo_module_init() != 0) {
        fprintf(stderr, "%s\n", too_many ? too_many : "the module's init has failed");
        return NULL;
    }
    for (u32 i = 0; i < registered_count; i++) {
        memcpy(names[i], registered[i]->name, TCP_CA_NAME_MAX);
        algorithms[i] = (gargalo_algorithm){
            .name = names[i],
            .summary = gargalo_module_description,
            .source = "a module of Linux",
            .parameters = parameters,
            .parameter_count = parameter_count,
            .data = registered[i],
            .create = create,
            .destroy = destroy,
            .clone = copy,
            .on_ack = on_ack,
            .on_congestion = on_congestion,
            .on_send = on_send,
            .on_loss = on_loss,
            .on_spurious = on_spurious,
            .on_recovered = on_recovered,
            .on_established = on_established,
            .on_mss = on_mss,
            .halve = halve,
        };
    }
    table.algorithm_count = registered_count;
    return &table;
}
