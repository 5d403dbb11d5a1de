/* A toy stack for Gargalo: a handshake of one round trip, numbered packets, cumulative acknowledgements, go-back-N and
 * one congestion control, a window that never changes. It is not QUIC, but it has every part that a wrapper needs. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gargalo_stack.h"

enum { HELLO = 1, WELCOME, DATA, ACK, BYE };
/* The window is for data; the ring has room for the ends of streams besides, which are always taken. */
enum { HEADER = 24, WINDOW = 256, RING = 512, PAYLOAD = 1000 };

/* A packet that is sent and not acknowledged: a piece of a stream. */
struct packet {
    uint64_t stream;
    uint64_t sent_at;
    uint16_t length;
    uint8_t fin;
    uint8_t data[PAYLOAD];
};

struct toy {
    const struct gargalo_stack_host *host;
    struct gargalo_address remote;
    struct packet *packets; /* a ring; packet n is at n % RING */
    uint64_t first;         /* the oldest packet that is not acknowledged */
    uint64_t next;          /* the next packet to send, again or for the first time */
    uint64_t end;           /* the number of the next new packet */
    uint64_t expected;      /* the next packet to arrive */
    uint64_t rto, srtt, deadline;
    uint64_t sent_packets, sent_bytes, again, timeouts;
    uint64_t streams; /* opened here */
    int is_server, knows_peer, is_open, is_over;
    int owes_ack, owes_bye;
};

static void put(uint8_t *out, uint64_t number) {
    for (int i = 0; i < 8; i++) out[i] = (uint8_t)(number >> (8 * i));
}

static uint64_t get(const uint8_t *in) {
    uint64_t number = 0;
    for (int i = 0; i < 8; i++) number |= (uint64_t)in[i] << (8 * i);
    return number;
}

static void *create(const struct gargalo_stack_config *config, const struct gargalo_stack_host *host, uint64_t now,
                    char *error, size_t room) {
    struct toy *t = calloc(1, sizeof *t);
    if (t == NULL || (t->packets = calloc(RING, sizeof *t->packets)) == NULL) {
        free(t);
        snprintf(error, room, "no memory");
        return NULL;
    }
    t->host = host;
    t->remote = config->remote;
    t->is_server = config->is_server;
    t->rto = 2 * config->initial_rtt;
    t->srtt = GARGALO_NONE;
    t->deadline = config->is_server ? GARGALO_NONE : now; /* a client begins at once */
    return t;
}

static void destroy(void *stack) {
    struct toy *t = stack;
    free(t->packets);
    free(t);
}

static void opened(struct toy *t) {
    if (t->is_open) return;
    t->is_open = 1;
    t->deadline = GARGALO_NONE;
    t->host->event(t->host->context, GARGALO_STACK_CONNECTED, GARGALO_STACK_NO_EARLY_DATA, NULL);
}

static void acknowledged(struct toy *t, uint64_t now, uint64_t until) {
    if (until <= t->first || until > t->end) return;
    t->srtt = now - t->packets[(until - 1) % RING].sent_at;
    t->rto = 2 * t->srtt + 10000000;
    t->host->rtt_sample(t->host->context, t->srtt);
    t->first = until;
    if (t->next < until) t->next = until;
    t->deadline = t->first < t->end ? now + t->rto : GARGALO_NONE;
}

static void datagram_in(void *stack, uint64_t now, const struct gargalo_path *path, uint8_t *data, size_t length) {
    struct toy *t = stack;
    if (length < HEADER || t->is_over) return; /* a peer or the network may send anything */
    uint64_t number = get(data + 8);
    switch (data[0]) {
    case HELLO:
        t->remote = path->remote;
        t->knows_peer = 1;
        if (t->is_server) opened(t);
        break;
    case WELCOME:
        if (!t->is_server) opened(t);
        break;
    case DATA:
        t->owes_ack = 1;
        if (!t->is_open || number != t->expected) break; /* go-back-N: only the next one */
        t->expected++;
        t->host->received(t->host->context, get(data + 16), data + HEADER, length - HEADER, data[1]);
        break;
    case ACK:
        acknowledged(t, now, number);
        break;
    case BYE:
        t->is_over = 1;
        t->host->event(t->host->context, GARGALO_STACK_CLOSED, 0, NULL);
        break;
    }
}

static size_t datagram_out(void *stack, uint64_t now, struct gargalo_path *path, uint8_t *out, size_t room) {
    struct toy *t = stack;
    size_t length = HEADER;
    if (room < HEADER + PAYLOAD) return 0;
    memset(out, 0, HEADER);
    path->remote = t->remote;
    if (t->owes_bye) {
        t->owes_bye = 0;
        t->is_over = 1;
        out[0] = BYE;
    } else if (t->is_over) {
        return 0;
    } else if (!t->is_server && !t->is_open && t->deadline <= now) {
        t->deadline = now + t->rto;
        out[0] = HELLO;
    } else if (t->is_server && t->knows_peer) {
        t->knows_peer = 0;
        out[0] = WELCOME;
    } else if (t->owes_ack) {
        t->owes_ack = 0;
        out[0] = ACK;
        put(out + 8, t->expected);
    } else if (t->next < t->end) {
        struct packet *p = &t->packets[t->next % RING];
        out[0] = DATA;
        out[1] = p->fin;
        put(out + 8, t->next);
        put(out + 16, p->stream);
        memcpy(out + HEADER, p->data, p->length);
        length += p->length;
        t->again += p->sent_at != 0;
        t->sent_packets++;
        t->sent_bytes += p->length;
        p->sent_at = now;
        if (t->next == t->first) t->deadline = now + t->rto;
        t->next++;
    } else {
        return 0;
    }
    return length;
}

static uint64_t next_timer(void *stack) {
    struct toy *t = stack;
    return t->is_over ? GARGALO_NONE : t->deadline;
}

static void timeout(void *stack, uint64_t now) {
    struct toy *t = stack;
    if (!t->is_open || t->deadline > now) return; /* a HELLO is sent again by datagram_out */
    t->timeouts++;
    t->rto *= 2;
    t->deadline = now + t->rto;
    t->next = t->first;
}

static int64_t open_stream(void *stack, uint64_t now) {
    struct toy *t = stack;
    (void)now;
    return (int64_t)(4 * t->streams++ + (t->is_server ? 1 : 0)); /* RFC 9000 §2.1 */
}

static size_t write_data(void *stack, uint64_t now, uint64_t stream, const uint8_t *data, size_t length, int fin) {
    struct toy *t = stack;
    size_t taken = 0;
    (void)now;
    while (t->end - t->first < (taken < length ? WINDOW : RING) && (taken < length || fin)) {
        struct packet *p = &t->packets[t->end++ % RING];
        size_t n = length - taken < PAYLOAD ? length - taken : PAYLOAD;
        if (n > 0) memcpy(p->data, data + taken, n);
        taken += n;
        p->stream = stream;
        p->length = (uint16_t)n;
        p->sent_at = 0;
        p->fin = fin && taken == length;
        if (p->fin) break;
    }
    return taken;
}

static uint64_t unacknowledged(void *stack) {
    struct toy *t = stack;
    return t->end - t->first;
}

static void close_now(void *stack, uint64_t now) {
    struct toy *t = stack;
    (void)now;
    t->owes_bye = !t->is_over;
}

static int is_over(void *stack) {
    struct toy *t = stack;
    return t->is_over && !t->owes_bye;
}

static void stats(void *stack, struct gargalo_stack_stats *s) {
    struct toy *t = stack;
    s->sent_packets = t->sent_packets;
    s->sent_bytes = t->sent_bytes;
    s->retransmitted_packets = t->again;
    s->timeouts = t->timeouts;
    s->cwnd = WINDOW * PAYLOAD;
    s->in_flight = (t->next - t->first) * PAYLOAD;
    s->srtt = t->srtt;
    s->phase = "fixed"; /* what is not known stays GARGALO_NONE */
}

const struct gargalo_stack *gargalo_stack_v1(void) {
    static const char *const congestion[] = {"fixed", NULL};
    static const struct gargalo_stack table = {
        .abi = GARGALO_STACK_ABI,
        .features = 0,
        .size = sizeof(struct gargalo_stack),
        .name = "toy-stack",
        .version = "1.0",
        .congestion = congestion,
        .create = create,
        .destroy = destroy,
        .datagram_in = datagram_in,
        .datagram_out = datagram_out,
        .next_timer = next_timer,
        .timeout = timeout,
        .open_stream = open_stream,
        .write = write_data,
        .unacknowledged = unacknowledged,
        .migrate = NULL,
        .close = close_now,
        .is_over = is_over,
        .stats = stats,
    };
    return &table;
}
