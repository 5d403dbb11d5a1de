/* What the streams of a connection have written, kept until it is acknowledged. ngtcp2 holds pointers to it, not copies. */
#ifndef STREAMS_H
#define STREAMS_H

#include <ngtcp2/ngtcp2.h>

struct stream {
    struct stream *next;
    int64_t id;
    uint8_t *ring;                          /* `window` bytes */
    uint64_t written, sent, acked, highest; /* offsets; `highest` in any packet, to tell retransmissions */
    uint64_t served, blocked;               /* the last packet it was in, and for which flow control stopped it */
    /* If the end was SENT_ALONE, ngtcp2 does not tell whether the last data was acknowledged with or without it: UNSURE. */
    enum { NO_END, WRITTEN, SENT, SENT_ALONE, UNSURE, ACKED, RESET } end;
    uint8_t urgency;
};
struct streams {
    struct stream *first;
    uint64_t window; /* capacity for all streams together */
    uint64_t packet; /* the current one */
};

struct stream *stream_find(const struct streams *all, int64_t id);
/* NULL: out of memory. */
struct stream *stream_add(struct streams *all, int64_t id);
void stream_remove(struct streams *all, int64_t id);
void streams_clear(struct streams *all);

size_t stream_write(struct streams *all, struct stream *s, const uint8_t *data, size_t length, int fin);
uint64_t streams_unacknowledged(const struct streams *all, int in_flight);

/* Of those that have something to send, the most urgent, and of several the one that was served longest ago; or NULL. */
struct stream *stream_next(const struct streams *all);
/* What it has to send, in up to two pieces; returns their number. */
size_t stream_pieces(const struct streams *all, const struct stream *s, ngtcp2_vec pieces[2]);
void stream_sent(struct streams *all, struct stream *s, uint64_t length);
void stream_acked(struct stream *s, uint64_t offset, uint64_t length);
/* NULL: there is none. */
void stream_reset(struct stream *s);

/* Datagrams that wait to be sent: few, as what is more waits at the host, which knows what is too old. */
#define MOST_DATAGRAMS 16
struct datagram {
    size_t length;
    uint8_t data[];
};
struct datagrams {
    struct datagram *all[MOST_DATAGRAMS]; /* a ring */
    unsigned first, count;
};
/* 0: there is no room. */
int datagram_add(struct datagrams *datagrams, const uint8_t *data, size_t length);
struct datagram *datagram_first(const struct datagrams *datagrams);
void datagram_remove(struct datagrams *datagrams);

#endif
