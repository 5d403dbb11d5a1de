/* Offers the congestion controls that a Linux module registers as those of a plug-in; see gargalo_linux.h.
 *
 * What the kernel's TCP keeps for a module in its socket is kept here for each controller, and the module's functions
 * are called in the order in which the kernel calls them. Windows are whole packets of the path's segment size.
 *
 * Licence: MIT OR Apache-2.0, at your option.
 */
#include <stdarg.h>
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

void tcp_enter_cwr(struct sock *sk) {
    struct tcp_sock *tp = tcp_sk(sk);
    struct inet_connection_sock *icsk = inet_csk(sk);
    tp->prior_ssthresh = 0;
    if (icsk->icsk_ca_state >= TCP_CA_CWR) {
        return;
    }
    tp->undo_marker = 0;
    tp->high_seq = tp->snd_nxt;
    tp->snd_cwnd_cnt = 0;
    tp->prior_cwnd = tp->snd_cwnd;
    tp->prr_delivered = 0;
    tp->prr_out = 0;
    tp->snd_ssthresh = icsk->icsk_ca_ops->ssthresh(sk);
    if (icsk->icsk_ca_ops->set_state) {
        icsk->icsk_ca_ops->set_state(sk, TCP_CA_CWR);
    }
    icsk->icsk_ca_state = TCP_CA_CWR;
}

u32 tcp_tso_autosize(const struct sock *sk, unsigned int mss_now, int min_tso_segs) {
    unsigned long most = sk->sk_gso_max_size - 1 - MAX_TCP_HEADER, bytes = sk->sk_pacing_rate >> sk->sk_pacing_shift;
    u32 segments = (u32)((bytes < most ? bytes : most) / mss_now);
    return least(greatest(segments, (u32)min_tso_segs), sk->sk_gso_max_segs);
}

struct net gargalo_net = {.ipv4 = {.sysctl_tcp_min_tso_segs = 2}};

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

void gargalo_printk(char loudest, const char *format, ...) {
    if (format[0] == KERN_SOH[0]) {
        if (format[1] > loudest) {
            return;
        }
        format += 2;
    } else if (loudest < KERN_DEBUG[1]) {
        return;
    }
    va_list values;
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
}

/* --- memory --- */

/* Before each block: the next one of its connection. */
struct gargalo_memory {
    struct gargalo_memory *next;
    size_t size;
    _Alignas(16) u8 bytes[];
};

void *kcalloc(size_t count, size_t size, gfp_t flags) {
    (void)flags;
    if (size != 0 && count > (SIZE_MAX / 2) / size) {
        return NULL;
    }
    struct gargalo_memory *m = calloc(1, sizeof *m + count * size);
    if (m == NULL) {
        return NULL;
    }
    m->size = count * size;
    if (gargalo_call.memory) {
        m->next = *gargalo_call.memory;
        *gargalo_call.memory = m;
    }
    return m->bytes;
}

void kfree(const void *memory) {
    if (memory == NULL) {
        return;
    }
    struct gargalo_memory *m = container_of(memory, struct gargalo_memory, bytes);
    if (gargalo_call.memory) {
        struct gargalo_memory **link = gargalo_call.memory;
        while (*link != NULL && *link != m) {
            link = &(*link)->next;
        }
        if (*link == m) {
            *link = m->next;
        }
    }
    free(m);
}

/* Pointers into blocks of a connection become those into the blocks of its copy. */
static void move_pointers(u64 *words, size_t count, const struct gargalo_memory *from, const struct gargalo_memory *to) {
    for (; from != NULL; from = from->next, to = to->next) {
        for (size_t i = 0; i < count; i++) {
            u64 offset = words[i] - (u64)(uintptr_t)from->bytes;
            if (offset < from->size) {
                words[i] = (u64)(uintptr_t)to->bytes + offset;
            }
        }
    }
}

static void free_all(struct gargalo_memory *m) {
    while (m != NULL) {
        struct gargalo_memory *next = m->next;
        free(m);
        m = next;
    }
}

/* --- the module: what it registers --- */

enum { MOST = 32 };

static struct parameter {
    void *variable;
    enum gargalo_type type;
    const struct kernel_param_ops *ops;
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
    variables[parameter_count] = (struct parameter){variable, type, NULL};
    gargalo_parameter *p = &parameters[parameter_count];
    p->name = name;
    p->doc = "parameter of the module";
    p->kind = type == gargalo_type_bool ? GARGALO_SWITCH : GARGALO_INTEGER;
    p->minimum = RANGES[type].least;
    p->maximum = RANGES[type].most;
    parameter_count += 1;
}

void gargalo_module_param_ops(const char *name, void *variable, const struct kernel_param_ops *ops) {
    u32 index = parameter_count;
    gargalo_module_param(name, variable, gargalo_type_uint);
    if (index < parameter_count) {
        variables[index].ops = ops;
    }
}

int param_set_uint_minmax(const char *value, const struct kernel_param *kp, unsigned int low, unsigned int high) {
    unsigned long long n = strtoull(value, NULL, 0);
    if (n < low || n > high) {
        return -EINVAL;
    }
    *(unsigned int *)kp->arg = (unsigned int)n;
    return 0;
}
int param_set_uint(const char *value, const struct kernel_param *kp) {
    return param_set_uint_minmax(value, kp, 0, UINT_MAX);
}
int param_get_uint(char *buffer, const struct kernel_param *kp) {
    return sprintf(buffer, "%u\n", *(const unsigned int *)kp->arg);
}

/* Whether the module takes the values of a connection; it sees them as text. The variables stay as they are. */
static const char *refused(const double *values) {
    static _Thread_local char told[160];
    for (u32 i = 0; i < parameter_count; i++) {
        const struct kernel_param_ops *ops = variables[i].ops;
        if (ops == NULL || ops->set == NULL) {
            continue;
        }
        double before = read_variable(&variables[i]);
        struct kernel_param kp = {parameters[i].name, variables[i].variable};
        char text[32];
        snprintf(text, sizeof text, "%.0f", values[i]);
        int error = ops->set(text, &kp);
        write_variable(&variables[i], before);
        if (error) {
            snprintf(told, sizeof told, "the module refuses %s = %s (%s)", kp.name, text, strerror(-error));
            return told;
        }
    }
    return NULL;
}

static const struct tcp_congestion_ops *registered[MOST];
static u32 registered_count;
static int (*inits[MOST])(void);
static u32 init_count;

void gargalo_module(int (*init)(void)) {
    if (init_count < MOST) {
        inits[init_count++] = init;
    }
}

static int init_modules(void) {
    int error = 0;
    for (u32 i = 0; i < init_count && error == 0; i++) {
        error = inits[i]();
    }
    return error;
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(4, 14, 0)
/* What the kernel does for a module without undo_cwnd; later ones refuse it. */
static u32 undo_as_before(struct sock *sk) {
    return greatest(tcp_sk(sk)->snd_cwnd, tcp_sk(sk)->snd_ssthresh << 1);
}
#endif

int tcp_register_congestion_control(struct tcp_congestion_ops *ops) {
#if LINUX_VERSION_CODE < KERNEL_VERSION(4, 14, 0)
    if (!ops->undo_cwnd) {
        ops->undo_cwnd = undo_as_before;
    }
#endif
    if (!ops->ssthresh || !ops->undo_cwnd || !(ops->cong_avoid || ops->cong_control)) {
        pr_err("%.16s lacks %s\n", ops->name,
               !ops->ssthresh    ? "ssthresh"
               : !ops->undo_cwnd ? "undo_cwnd, which Linux needs since 4.14 (--kernel 4.13 for an older module)"
                                 : "cong_avoid and cong_control: it needs one");
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
    u64 loss_at_ns;
    u64 loss_now_bytes;
    /* Reported selectively and not yet acknowledged. */
    u64 sacked_bytes;
    /* What is acknowledged at least since a recovery has ended. */
    u32 una_floor;
    u32 sent_at_entry;
    int has_floor;
    int started;
    /* 1: the module itself began the reduction that is under way, which is then paced here. */
    int reduces;
    struct gargalo_memory *memory;
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
        init_modules();
    }
    applied = c->values;
}

/* How long the machine has been running when the world's clock is 0. */
#define BOOT_NS (300 * (u64)NSEC_PER_SEC)

/* The time, and what a module may have read of it. */
static struct sock *enter(struct connection *c, u64 now_ns) {
    apply(c);
    now_ns += BOOT_NS;
    gargalo_call.now_ns = now_ns;
    gargalo_call.random = c->host->random;
    gargalo_call.context = c->host->context;
    gargalo_call.memory = &c->memory;
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
    tp->sacked_out = packets(c, c->sacked_bytes);
    tp->packets_out = packets(c, path->in_flight_bytes) + tp->sacked_out;
    u32 next = tp->snd_una + (u32)(path->in_flight_bytes + c->sacked_bytes);
    if (after(next, tp->snd_nxt)) {
        tp->snd_nxt = tp->write_seq = next;
    }
    /* Whatever was sent has been delivered, was lost or is in flight. */
    tp->bytes_sent = c->delivered_bytes + c->lost_bytes + path->in_flight_bytes;
    tp->segs_out = tp->data_segs_out = packets(c, tp->bytes_sent);
}

/* The kernel's own pacing rate: 2 windows a round trip in slow start, 1.2 later; modules without cong_control read it. */
static void update_pacing_rate(struct connection *c) {
    struct tcp_sock *tp = &c->tp;
    if (c->ops->cong_control || tp->srtt_us == 0) {
        return;
    }
    u64 percent = tp->snd_cwnd < tp->snd_ssthresh / 2 ? 200 : 120;
    u64 rate = (u64)tp->mss_cache * greatest(tp->snd_cwnd, tp->packets_out) * 8 * USEC_PER_SEC / 100 * percent;
    tp->inet_conn.icsk_inet.sk_pacing_rate = (unsigned long)(rate / tp->srtt_us);
}

/* The kernel initialises a congestion control when the connection is established: the handshake has been measured. */
static void start(struct connection *c) {
    if (c->started) {
        return;
    }
    c->started = 1;
    update_pacing_rate(c);
    if (c->ops->init) {
        c->ops->init(&c->tp.inet_conn.icsk_inet);
    }
}

static void write_state(const struct connection *c, gargalo_state *state) {
    const struct inet_connection_sock *icsk = &c->tp.inet_conn;
    for (size_t i = 0; i < sizeof icsk->gargalo_guard / sizeof(u64); i++) {
        if (icsk->gargalo_guard[i] != 0) {
            state->error = "the module's private state is larger than ICSK_CA_PRIV_SIZE; for a module of a kernel with "
                           "more, build it with -- -DICSK_CA_PRIV_SIZE=144";
        }
    }
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
        if (c->ops->tso_segs_goal || c->ops->tso_segs) {
            burst = c->ops->tso_segs_goal ? c->ops->tso_segs_goal((struct sock *)sk)
                                          : c->ops->tso_segs((struct sock *)sk, tp->mss_cache);
            burst = (burst > 0 ? burst : 1) * c->mss;
        }
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

/* Disorder is when something was reported out of order and nothing is known to be lost. */
static void disorder(struct connection *c) {
    u8 now = c->tp.inet_conn.icsk_ca_state, then = c->sacked_bytes > 0 ? TCP_CA_Disorder : TCP_CA_Open;
    if (now <= TCP_CA_Disorder && now != then) {
        set_state(c, then);
    }
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
    state->error = refused(c->values);
    if (state->error) {
        free(c);
        return NULL;
    }
    enter(c, init->now_ns);
    tp->delivered_mstamp = tp->first_tx_mstamp = tp->tcp_mstamp;
    write_state(c, state);
    return c;
}

static void destroy(void *controller) {
    struct connection *c = controller;
    struct sock *sk = enter(c, c->tp.tcp_clock_cache - BOOT_NS);
    if (c->started && c->ops->release) {
        c->ops->release(sk);
    }
    free_all(c->memory);
    gargalo_call.memory = NULL;
    free(c);
}

static void *copy(const void *controller, const gargalo_host *host) {
    struct connection *c = malloc(sizeof *c);
    if (c != NULL) {
        memcpy(c, controller, sizeof *c);
        c->host = host;
        const struct gargalo_memory *own = ((const struct connection *)controller)->memory;
        struct gargalo_memory **link = &c->memory;
        for (const struct gargalo_memory *m = own; m != NULL; m = m->next) {
            *link = malloc(sizeof *m + m->size);
            if (*link == NULL) {
                free_all(c->memory);
                free(c);
                return NULL;
            }
            memcpy(*link, m, sizeof *m + m->size);
            (*link)->next = NULL;
            link = &(*link)->next;
        }
        move_pointers(c->tp.inet_conn.icsk_ca_priv, ICSK_CA_PRIV_SIZE / sizeof(u64), own, c->memory);
        for (struct gargalo_memory *m = c->memory; m != NULL; m = m->next) {
            move_pointers((u64 *)(void *)m->bytes, m->size / sizeof(u64), own, c->memory);
        }
    }
    return c;
}

static void fill(struct connection *c, struct rate_sample *rs, const gargalo_acked *ack, u32 delivered) {
    struct tcp_sock *tp = &c->tp;
    memset(rs, 0, sizeof *rs);
    rs->rtt_us = ack->rtt_ns == GARGALO_NONE ? -1 : (long)(ack->rtt_ns / NSEC_PER_USEC);
    rs->acked_sacked = delivered;
    rs->losses = c->loss_at_ns == ack->now_ns ? (int)packets(c, c->loss_now_bytes) : 0;
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
    rs->lost = (s32)packets(c, s->lost_bytes);
    rs->tx_in_flight = packets(c, s->tx_in_flight_bytes);
    rs->prior_mstamp = tp->tcp_mstamp - rs->rcv_interval_us;
    rs->is_app_limited = s->app_limited != 0;
    rs->is_retrans = s->retransmission != 0;
    rs->last_end_seq = tp->snd_una;
    tp->rate_delivered = (u32)rs->delivered;
    tp->rate_interval_us = (u32)rs->interval_us;
    tp->rate_app_limited = rs->is_app_limited;
    tp->app_limited = s->app_limited ? greatest(tp->delivered + tp->packets_out, 1) : 0;
}

/* Proportional rate reduction (RFC 6937, RFC 9937) of a reduction that the module has begun; the transport paces its own. */
static void reduce(struct connection *c, u32 delivered) {
    struct tcp_sock *tp = &c->tp;
    u32 pipe = tcp_packets_in_flight(tp), prior = greatest(tp->prior_cwnd, 1);
    if (delivered == 0) {
        return;
    }
    tp->prr_delivered += delivered;
    tp->prr_out = tp->data_segs_out - c->sent_at_entry;
    s64 sent = tp->prr_out, room;
    if (pipe > tp->snd_ssthresh) {
        room = (s64)(((u64)tp->snd_ssthresh * tp->prr_delivered + prior - 1) / prior) - sent;
    } else {
        room = max_t(s64, (s64)tp->prr_delivered - sent, delivered) + 1;
        room = min_t(s64, room, tp->snd_ssthresh - pipe);
    }
    tp->snd_cwnd = greatest(pipe + (u32)max_t(s64, room, 0), 1);
}

static void end_reduction(struct connection *c) {
    struct tcp_sock *tp = &c->tp;
    tp->snd_cwnd = greatest(tp->snd_ssthresh, 1);
    tp->snd_cwnd_stamp = tcp_jiffies32;
    tell(c, CA_EVENT_COMPLETE_CWR);
}

static void on_ack(void *controller, const gargalo_acked *ack, const gargalo_path *path, gargalo_state *state) {
    struct connection *c = controller;
    struct tcp_sock *tp = &c->tp;
    struct sock *sk = enter(c, ack->now_ns);
    u32 acked_before = packets(c, c->acked_bytes), delivered_before = packets(c, c->delivered_bytes);
    c->acked_bytes += ack->acknowledged_bytes;
    c->delivered_bytes = ack->has_sample ? ack->sample.total_delivered_bytes : c->delivered_bytes + ack->bytes;
    c->ce_bytes += ack->ce_bytes;
    c->sacked_bytes += ack->bytes;
    c->sacked_bytes -= c->sacked_bytes < ack->acknowledged_bytes ? c->sacked_bytes : ack->acknowledged_bytes;
    tp->snd_una += (u32)ack->acknowledged_bytes;
    if (c->has_floor && before(tp->snd_una, c->una_floor)) {
        tp->snd_una = c->una_floor;
    }
    c->has_floor = 0;
    view(c, path);
    start(c);
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
    tp->rx_opt.saw_tstamp = true;
    tp->rx_opt.rcv_tsval = tcp_jiffies32;
    if (ack->sent_at_ns != GARGALO_NONE) {
        u64 sent_ns = ack->sent_at_ns + BOOT_NS;
        tp->first_tx_mstamp = sent_ns / NSEC_PER_USEC;
        tp->rx_opt.rcv_tsecr = (u32)(sent_ns / NSEC_PER_MSEC);
    }
    int plain = ack->acknowledged_bytes == ack->bytes && c->sacked_bytes == 0 && ack->ce_bytes == 0;
    if (c->ops->in_ack_event) {
        u32 flags = plain ? CA_ACK_WIN_UPDATE : CA_ACK_SLOWPATH;
        c->ops->in_ack_event(sk, flags | (ack->ce_bytes > 0 ? CA_ACK_ECE : 0));
    }
    if (c->ops->pkts_acked && ack->bytes > 0) {
        u64 flown = ack->has_sample ? ack->sample.total_delivered_bytes - ack->sample.prior_delivered_bytes
                                    : ack->in_flight_before_bytes;
        struct ack_sample sample = {acked, -1, (u32)flown};
        if (ack->rtt_ns != GARGALO_NONE) {
            sample.rtt_us = (s32)(ack->rtt_ns / NSEC_PER_USEC);
        }
#if LINUX_VERSION_CODE >= KERNEL_VERSION(4, 7, 0)
        c->ops->pkts_acked(sk, &sample);
#else
        c->ops->pkts_acked(sk, sample.pkts_acked, sample.rtt_us);
#endif
    }
    disorder(c);
    if (c->reduces && !before(tp->snd_una, tp->high_seq)) {
        c->reduces = 0;
        end_reduction(c);
        set_state(c, TCP_CA_Open);
    }
    if (c->ops->cong_control) {
        struct rate_sample rs;
        fill(c, &rs, ack, delivered);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
        c->ops->cong_control(sk, tp->snd_una, 0, &rs);
#else
        c->ops->cong_control(sk, &rs);
#endif
    } else if (c->reduces) {
        reduce(c, delivered);
    } else if (!ack->in_recovery && acked > 0) {
        c->ops->cong_avoid(sk, tp->snd_una, acked);
        tp->snd_cwnd_stamp = tcp_jiffies32;
        if (tp->inet_conn.icsk_ca_state == TCP_CA_CWR) {
            /* It has called tcp_enter_cwr(). */
            c->reduces = 1;
            c->sent_at_entry = tp->data_segs_out;
        }
    }
    update_pacing_rate(c);
    write_state(c, state);
}

static void on_loss(void *controller, const gargalo_lost *lost, const gargalo_path *path, gargalo_state *state) {
    struct connection *c = controller;
    (void)state;
    enter(c, lost->now_ns);
    c->lost_bytes += lost->bytes;
    c->loss_now_bytes = lost->bytes + (c->loss_at_ns == lost->now_ns ? c->loss_now_bytes : 0);
    c->loss_at_ns = lost->now_ns;
    view(c, path);
    start(c);
    struct tcp_sock *tp = &c->tp;
    tp->lost = packets(c, c->lost_bytes);
    if (c->ops->skb_marked_lost) {
        struct sk_buff skb = {.len = (u32)lost->bytes, .segments = greatest(packets(c, lost->bytes), 1)};
        skb.cb.tx.in_flight = packets(c, lost->tx_in_flight_bytes);
        skb.cb.tx.lost = packets(c, lost->lost_bytes);
        skb.cb.tx.delivered = 1 + packets(c, lost->delivered_bytes);
        skb.cb.tx.delivered_mstamp = (lost->delivered_at_ns + BOOT_NS) / NSEC_PER_USEC;
        skb.cb.tx.first_tx_mstamp = (lost->first_sent_at_ns + BOOT_NS) / NSEC_PER_USEC;
        skb.cb.tx.is_app_limited = lost->app_limited != 0;
        c->ops->skb_marked_lost(&tp->inet_conn.icsk_inet, &skb);
    }
}

static void on_congestion(void *controller, const gargalo_congestion_event *event, const gargalo_path *path,
                          gargalo_state *state) {
    struct connection *c = controller;
    struct tcp_sock *tp = &c->tp;
    struct sock *sk = enter(c, event->now_ns);
    view(c, path);
    start(c);
    u32 next = tp->snd_una + (u32)event->in_flight_bytes;
    if (after(next, tp->snd_nxt)) {
        tp->snd_nxt = tp->write_seq = next;
    }
    u8 was = tp->inet_conn.icsk_ca_state;
    int timeout = event->cause == GARGALO_TIMEOUT, mark = event->cause == GARGALO_ECN;
    /* The window is reduced once for what was sent before the reduction. */
    int again = timeout ? was > TCP_CA_Disorder && after(tp->high_seq, tp->snd_una) &&
                              (was != TCP_CA_Loss || event->consecutive > 1)
                        : was == TCP_CA_CWR && after(tp->high_seq, tp->snd_una);
    if (!again) {
        /* A mark cannot be spurious. */
        tp->prior_ssthresh = mark ? 0 : tcp_current_ssthresh(sk);
        tp->undo_marker = mark ? 0 : greatest(tp->snd_una, 1);
        tp->prior_cwnd = tp->snd_cwnd;
        tp->snd_ssthresh = c->ops->ssthresh(sk);
        if (timeout) {
            tell(c, CA_EVENT_LOSS);
        }
    }
    tp->high_seq = tp->snd_nxt;
    tp->snd_cwnd_cnt = 0;
    c->reduces = 0;
    if (timeout) {
        tp->inet_conn.icsk_retransmits = (u8)least(event->consecutive, 255);
        tp->snd_cwnd = 1;
        set_state(c, TCP_CA_Loss);
    } else {
        /* Without a packet marked lost, a tail loss probe has repaired one. */
        int probe = !mark && event->lost_bytes == 0;
        if (probe) {
            tell(c, CA_EVENT_TLP_RECOVERY);
        }
        set_state(c, mark || probe ? TCP_CA_CWR : TCP_CA_Recovery);
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
    /* All that was outstanding when it began has been acknowledged. */
    c->sacked_bytes = 0;
    c->una_floor = tp->high_seq;
    c->has_floor = 1;
    view(c, path);
    if (tcp_in_cwnd_reduction(sk) && !c->ops->cong_control) {
        end_reduction(c);
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
    start(c);
    if (sent->restart_window_bytes != GARGALO_NONE && sent->idle_ns > sent->rto_ns && !c->ops->cong_control) {
        u32 least_window = greatest(packets(c, sent->restart_window_bytes), 1);
        tell(c, CA_EVENT_CWND_RESTART);
        tp->snd_ssthresh = tcp_current_ssthresh(sk);
        /* Half for each timeout without a transmission (RFC 2861). */
        for (u64 idle = sent->idle_ns; idle > sent->rto_ns && tp->snd_cwnd > least_window; idle -= sent->rto_ns) {
            tp->snd_cwnd >>= 1;
        }
        tp->snd_cwnd = greatest(tp->snd_cwnd, least_window);
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

static void on_established(void *controller, const gargalo_established *established, const gargalo_path *path,
                           gargalo_state *state) {
    struct connection *c = controller;
    enter(c, established->now_ns);
    view(c, path);
    c->tp.snd_cwnd = greatest(packets(c, established->window_bytes), 1);
    start(c);
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

/* The names of Gargalo's own congestion controls, each between blanks; `gargalo plugin build` sets it. */
#ifndef GARGALO_BUILT_IN
#define GARGALO_BUILT_IN " "
#endif
#define OF_LINUX "linux-"

/* The module's name as scenarios have it; before that of a built-in one is "linux-". */
static void name_of(char *name, const struct tcp_congestion_ops *ops) {
    char own[TCP_CA_NAME_MAX + 3] = " ";
    for (int i = 0; i < TCP_CA_NAME_MAX && ops->name[i]; i++) {
        char c = ops->name[i];
        own[i + 1] = c == '_' ? '-' : c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    size_t length = strlen(own + 1);
    own[length + 1] = ' ';
    int taken = strstr(GARGALO_BUILT_IN, own) != NULL;
    own[length + 1] = 0;
    sprintf(name, "%s%s", taken ? OF_LINUX : "", own + 1);
}

const char *gargalo_module_description = "a congestion control of Linux";

const gargalo_congestion *gargalo_congestion_v1(void) {
    static gargalo_algorithm algorithms[MOST];
    static gargalo_congestion table = {GARGALO_CONGESTION_ABI, 0, algorithms, GARGALO_SIZES};
    static char names[MOST][sizeof OF_LINUX + TCP_CA_NAME_MAX];
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
    if (too_many != NULL || init_modules() != 0) {
        fprintf(stderr, "%s\n", too_many ? too_many : "the module's init has failed");
        return NULL;
    }
    for (u32 i = 0; i < registered_count; i++) {
        name_of(names[i], registered[i]);
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
