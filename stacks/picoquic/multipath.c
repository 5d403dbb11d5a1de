#include "multipath.h"

#include <picoquic_internal.h>
#include <stdlib.h>

#include "address.h"

struct path *path_of(struct paths *paths, const picoquic_path_t *path) {
    for (size_t i = 0; i < paths->count; i++)
        if (paths->all[i].id == path->unique_path_id) return &paths->all[i];
    if (paths->count == MOST_PATHS) return NULL;
    struct path *new = &paths->all[paths->count++];
    *new = (struct path){.id = path->unique_path_id, .opened = GARGALO_NONE, .closed = GARGALO_NONE,
                         .local = host_address(&path->first_tuple->local_addr),
                         .remote = host_address(&path->first_tuple->peer_addr)};
    return new;
}
void paths_want(struct paths *paths, const struct gargalo_path *path) {
    if (paths->wanted_count < MOST_PATHS) paths->wanted[paths->wanted_count++] = *path;
}
/* Until the peer has issued connection IDs for it, a path is not allowed. */
static void open_wanted(struct paths *paths, picoquic_cnx_t *cnx, size_t datagram_size, uint64_t clock) {
    while (paths->wanted_count) {
        const struct gargalo_path *next = &paths->wanted[0];
        struct sockaddr_storage local = address_of(&next->local), remote = address_of(&next->remote);
        if (!cnx->is_multipath_enabled ||
            picoquic_probe_new_path(cnx, (struct sockaddr *)&remote, (struct sockaddr *)&local, clock)) return;
        cnx->path[cnx->nb_paths - 1]->send_mtu = datagram_size;
        paths->wanted_count--;
        memmove(paths->wanted, paths->wanted + 1, paths->wanted_count * sizeof *paths->wanted);
    }
}
void paths_update(struct paths *paths, picoquic_cnx_t *cnx, const struct gargalo_stack_host *host, size_t datagram_size,
                  uint64_t now, uint64_t clock) {
    open_wanted(paths, cnx, datagram_size, clock);
    for (int i = 0; i < cnx->nb_paths; i++) {
        picoquic_path_t *path = cnx->path[i];
        struct path *known = path_of(paths, path);
        int ready = path->unique_path_id ? path->first_tuple->challenge_verified : cnx->cnx_state >= picoquic_state_client_almost_ready;
        if (path->send_mtu < datagram_size) path->send_mtu = datagram_size; /* of one that the peer has opened */
        if (!known) continue;
        if (ready && known->opened == GARGALO_NONE) known->opened = now;
        if (path->rtt_is_initialized && path->rtt_sample != known->rtt)
            host->path_rtt_sample(host->context, known->id, 1000 * (known->rtt = path->rtt_sample));
        if (path->nb_retransmit > known->retransmit) known->timeouts += path->nb_retransmit - known->retransmit;
        known->retransmit = path->nb_retransmit;
        if (path->path_is_demoted && known->closed == GARGALO_NONE) known->closed = now;
    }
    for (size_t k = 0; k < paths->count; k++)
        if (paths->all[k].closed == GARGALO_NONE && picoquic_get_path_id_from_unique(cnx, paths->all[k].id) < 0)
            paths->all[k].closed = now;
}

/* Adds a piece; returns how many of its bytes are new. */
static uint64_t add(struct range **at, uint64_t from, uint64_t to) {
    uint64_t new = to - from;
    while (*at && (*at)->to < from) at = &(*at)->next;
    for (struct range *r; (r = *at) && r->from <= to;) {
        uint64_t start = r->from > from ? r->from : from, end = r->to < to ? r->to : to;
        new -= end > start ? end - start : 0;
        if (r->from < from) from = r->from;
        if (r->to > to) to = r->to;
        *at = r->next;
        free(r);
    }
    struct range *made = malloc(sizeof *made);
    if (!made) return 0;
    *made = (struct range){*at, from, to};
    *at = made;
    return new;
}
void paths_arrived(struct paths *paths, struct path *path, uint64_t stream, uint64_t offset, uint64_t length, uint64_t now) {
    struct arrived *a = paths->arrived;
    while (a && a->stream != stream) a = a->next;
    if (!a) {
        if (!(a = calloc(1, sizeof *a))) return;
        a->stream = stream;
        a->next = paths->arrived;
        paths->arrived = a;
    }
    if (path->opened == GARGALO_NONE) path->opened = now;
    if (length) path->received_bytes += add(&a->ranges, offset, offset + length);
}
void paths_stop(struct paths *paths) {
    for (struct arrived *a; (a = paths->arrived); free(a)) {
        paths->arrived = a->next;
        for (struct range *r; (r = a->ranges); free(r)) a->ranges = r->next;
    }
}
