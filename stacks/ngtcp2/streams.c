/* Send buffers of streams. */
#include "streams.h"

#include <stdlib.h>
#include <string.h>

#define MIN(a, b) ((a) < (b) ? (a) : (b))

struct stream *stream_find(const struct streams *all, int64_t id) {
    struct stream *s = all->first;
    while (s && s->id != id) s = s->next;
    return s;
}
struct stream *stream_add(struct streams *all, int64_t id) {
    struct stream *s = calloc(1, sizeof *s);
    if (!s || !(s->ring = malloc(all->window))) return free(s), NULL;
    s->id = id;
    s->urgency = 3;
    s->next = all->first;
    return all->first = s;
}
void stream_remove(struct streams *all, int64_t id) {
    struct stream **p = &all->first, *s = stream_find(all, id);
    if (!s) return;
    while (*p != s) p = &(*p)->next;
    *p = s->next;
    free(s->ring);
    free(s);
}
void streams_clear(struct streams *all) {
    while (all->first) stream_remove(all, all->first->id);
}

size_t stream_write(struct streams *all, struct stream *s, const uint8_t *data, size_t length, int fin) {
    uint64_t kept = 0;
    if (!s || s->end != NO_END) return 0;
    for (struct stream *t = all->first; t; t = t->next) kept += t->written - t->acked;
    size_t taken = MIN(length, all->window - kept);
    for (size_t done = 0, n; done < taken; done += n, s->written += n) {
        size_t at = s->written % all->window;
        n = MIN(taken - done, all->window - at);
        memcpy(s->ring + at, data + done, n);
    }
    if (fin) s->end = WRITTEN;
    return taken;
}
uint64_t streams_unacknowledged(const struct streams *all, int in_flight) {
    uint64_t sum = 0;
    for (struct stream *s = all->first; s; s = s->next)
        sum += s->written - s->acked + (s->end != NO_END && s->end != ACKED && s->end != RESET && (s->end != UNSURE || in_flight));
    return sum;
}

struct stream *stream_next(const struct streams *all) {
    struct stream *next = NULL;
    for (struct stream *s = all->first; s; s = s->next)
        if ((s->sent < s->written || s->end == WRITTEN) && s->blocked != all->packet &&
            (!next || s->urgency < next->urgency || (s->urgency == next->urgency && s->served < next->served)))
            next = s;
    return next;
}
size_t stream_pieces(const struct streams *all, const struct stream *s, ngtcp2_vec pieces[2]) {
    size_t at = s->sent % all->window, size = s->written - s->sent, first = MIN(size, all->window - at);
    pieces[0] = (ngtcp2_vec){s->ring + at, first};
    pieces[1] = (ngtcp2_vec){s->ring, size - first};
    return (first > 0) + (size > first);
}
void stream_sent(struct streams *all, struct stream *s, uint64_t length) {
    s->sent += length;
    s->served = all->packet;
    if (s->end == WRITTEN && s->sent == s->written) s->end = length ? SENT : SENT_ALONE;
}
void stream_acked(struct stream *s, uint64_t offset, uint64_t length) {
    if (s->end == RESET) return;
    s->acked = offset + length;
    if (length == 0 || (s->end == SENT && s->acked == s->written)) s->end = ACKED;
    else if (s->end == SENT_ALONE && s->acked == s->written) s->end = UNSURE;
}
void stream_reset(struct stream *s) {
    if (!s) return;
    s->acked = s->sent = s->written;
    s->end = RESET;
}

int datagram_add(struct datagrams *datagrams, const uint8_t *data, size_t length) {
    struct datagram *made = datagrams->count < MOST_DATAGRAMS ? malloc(sizeof *made + length) : NULL;
    if (!made) return 0;
    made->length = length;
    memcpy(made->data, data, length);
    datagrams->all[(datagrams->first + datagrams->count++) % MOST_DATAGRAMS] = made;
    return 1;
}
struct datagram *datagram_first(const struct datagrams *datagrams) {
    return datagrams->count ? datagrams->all[datagrams->first % MOST_DATAGRAMS] : NULL;
}
void datagram_remove(struct datagrams *datagrams) {
    free(datagram_first(datagrams));
    datagrams->first++;
    datagrams->count--;
}
