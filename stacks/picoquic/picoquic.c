/* picoquic as a stack of Gargalo (gargalo_stack.h); its TLS is in tls.c, its clock and random bytes are in turn.c. */
#include <picoquic.h>
#include <picoquic_internal.h>
#include <picoquic_qlog.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "multipath.h"
#include "stats.h"
#include "tls.h"
#include "turn.h"

#define IP_UDP(address) ((address).ip_length == 4 ? 28 : 48) /* picoquic counts headers as part of an MTU */
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define CANCELLED 0x10c     /* H3_REQUEST_CANCELLED */
#define MOST_DATAGRAMS 16   /* that wait here; what is more waits at the host, which knows what is too old */

struct conn {
    struct turn turn;
    struct tls tls;
    const struct gargalo_stack_host *host;
    struct gargalo_stack_config config; /* its pointers are valid in `create` only */
    picoquic_quic_t *quic;
    picoquic_cnx_t *cnx; /* of a server: NULL until the first Initial */
    char *options;       /* of the congestion control */
    uint64_t ticket;     /* end of the life of the last ticket that the host got */
    int early, told, over;
    struct stats stats;
    struct paths paths;
};

/* The first is the default. "bbr1" has no round of ProbeRTT of its own: it is version 1 as in Linux. */
static const char *const congestion[] = {"newreno", "cubic", "dcubic", "fast", "bbr", "bbr1", "prague", "c4", NULL};
static const char *const specifications[] = {"", "", "", "", "bbr3", "bbr", "", "", NULL};

static void tell(struct conn *c, uint32_t kind, uint32_t value, const char *text) {
    if (kind == GARGALO_STACK_CLOSED || kind == GARGALO_STACK_FAILED) {
        if (c->told) return;
        c->told = 1;
    }
    c->host->event(c->host->context, kind, value, text);
}
static int on_event(picoquic_cnx_t *cnx, uint64_t stream, uint8_t *bytes, size_t length, picoquic_call_back_event_t event,
                    void *context, void *unused) {
    struct conn *c = context;
    int early = c->config.is_server ? cnx->nb_zero_rtt_received > 0 : c->early;
    switch (event) {
    case picoquic_callback_stream_data:
    case picoquic_callback_stream_fin:
        c->host->received(c->host->context, stream, bytes, length, event == picoquic_callback_stream_fin);
        break;
    case picoquic_callback_stream_reset:
        c->host->reset(c->host->context, stream);
        break;
    case picoquic_callback_stop_sending:
        c->host->stopped(c->host->context, stream);
        break;
    case picoquic_callback_datagram:
        c->host->datagram(c->host->context, bytes, length);
        break;
    case picoquic_callback_almost_ready: /* a client has the keys and the server's Finished; a server waits for the client's */
        if (c->config.is_server) break;
        __attribute__((fallthrough));
    case picoquic_callback_ready:
        tell(c, GARGALO_STACK_CONNECTED, !early ? GARGALO_STACK_NO_EARLY_DATA
             : c->config.is_server || cnx->zero_rtt_data_accepted ? GARGALO_STACK_EARLY_DATA_ACCEPTED : GARGALO_STACK_EARLY_DATA_RESENT, NULL);
        break;
    case picoquic_callback_stateless_reset:
        tell(c, GARGALO_STACK_FAILED, 0, "stateless reset by the peer");
        break;
    default: break;
    }
    return 0;
}
/* What a change of the connection's state means to the host. */
static void tell_end(struct conn *c) {
    uint64_t local = c->cnx->local_error, remote = c->cnx->remote_error | c->cnx->remote_application_error;
    int silence = local == PICOQUIC_ERROR_IDLE_TIMEOUT || local == PICOQUIC_ERROR_REPEAT_TIMEOUT || local == PICOQUIC_ERROR_HANDSHAKE_TIMEOUT;
    if (c->cnx->cnx_state < picoquic_state_disconnecting && c->cnx->cnx_state != picoquic_state_handshake_failure) return;
    c->over |= c->cnx->cnx_state == picoquic_state_disconnected;
    if (silence) tell(c, GARGALO_STACK_FAILED, 0, "timed out");
    else if (local) tell(c, GARGALO_STACK_FAILED, 0, picoquic_error_name(local));
    else if (remote) tell(c, GARGALO_STACK_FAILED, 0, "closed by the peer with an error");
    else tell(c, GARGALO_STACK_CLOSED, 0, NULL);
}
/* A ticket is kept as picoquic writes it to a file. These two are in none of its headers; its own tests declare them so. */
extern int picoquic_serialize_ticket(const picoquic_stored_ticket_t *ticket, uint8_t *bytes, size_t room, size_t *used);
extern int picoquic_deserialize_ticket(picoquic_stored_ticket_t **ticket, uint8_t *bytes, size_t length, size_t *used);

static void tell_session(struct conn *c) {
    const picoquic_stored_ticket_t *ticket = c->quic->p_first_ticket;
    uint8_t bytes[4096];
    size_t length;
    if (!ticket || ticket->was_used || ticket->time_valid_until == c->ticket) return;
    c->ticket = ticket->time_valid_until;
    if (!picoquic_serialize_ticket(ticket, bytes, sizeof bytes, &length)) c->host->session(c->host->context, bytes, length);
}
static void after(struct conn *c) {
    picoquic_cnx_t *was = c->cnx;
    c->cnx = picoquic_get_first_cnx(c->quic);
    if (c->cnx && !was) c->cnx->path[0]->send_mtu = c->config.datagram_size;
    if (!c->cnx) return;
    stats_update(&c->stats, c->cnx);
    if (c->stats.paths) paths_update(&c->paths, c->cnx, c->host, c->config.datagram_size, turn_host_time(c->turn.now), c->turn.now);
    tell_end(c);
    if (!c->config.is_server) tell_session(c);
}
/* {} or {"congestion_options":"..."}: what picoquic's congestion controls take as their options. */
static const char *take_options(struct conn *c, const char *json) {
    static const char key[] = "{\"congestion_options\":\"";
    size_t length = strlen(json), head = sizeof key - 1;
    if (!strcmp(json, "{}")) return NULL;
    if (length < head + 2 || strncmp(json, key, head) || strcspn(json + head, "\"\\") != length - head - 2)
        return "picoquic takes no options but congestion_options = \"...\"";
    c->options = strndup(json + head, length - head - 2);
    return NULL;
}
static void resume(struct conn *c, struct gargalo_bytes session) {
    picoquic_stored_ticket_t *ticket = NULL;
    size_t used;
    uint8_t *copy = session.length ? malloc(session.length) : NULL;
    if (!copy) return;
    memcpy(copy, session.data, session.length);
    /* One that has expired, or is of a later time, is of no use. */
    if (!picoquic_deserialize_ticket(&ticket, copy, session.length, &used) && ticket && ticket->time_valid_until > c->turn.now) {
        c->quic->p_first_ticket = ticket;
        c->ticket = ticket->time_valid_until;
    } else free(ticket);
    free(copy);
}
static const char *start(struct conn *c) {
    const struct gargalo_stack_config *config = &c->config; /* what a host of before did not have is 0 */
    const picoquic_congestion_algorithm_t *algorithm = picoquic_get_congestion_algorithm(config->congestion);
    struct sockaddr_storage local = address_of(&config->local), remote = address_of(&config->remote);
    int discovery = config->max_datagram_size > config->datagram_size;
    const char *error = take_options(c, config->options ? config->options : "{}");
    if (error) return error;
    if (!algorithm) return "picoquic has no such congestion control";
    /* The name of a file of tickets has it keep them; there is no such file. */
    c->quic = picoquic_create(1, NULL, NULL, NULL, config->alpn, on_event, c, NULL, NULL, NULL, c->turn.now, &c->turn.now, "",
                              config->ticket_key.data, MIN(config->ticket_key.length, 32));
    if (!c->quic) return "picoquic could not be started";
    if ((error = tls_start(&c->tls, c->quic->tls_master_ctx, config, c->host))) return error;
    picoquic_set_verify_certificate_callback(c->quic, &c->tls.verify, NULL);
    picoquic_enforce_client_only(c->quic, !config->is_server);
    picoquic_disable_port_blocking(c->quic, 1);
    picoquic_set_cookie_mode(c->quic, config->retry);
    picoquic_set_default_congestion_algorithm_ex(c->quic, algorithm, c->options);
    picoquic_set_default_idle_timeout(c->quic, config->idle_timeout / 1000000);
    picoquic_set_mtu_max(c->quic, config->max_datagram_size + IP_UDP(config->local));
    picoquic_set_default_pmtud_policy(c->quic, discovery ? picoquic_pmtud_basic : picoquic_pmtud_blocked);
    picoquic_set_max_data_control(c->quic, config->connection_window);
    c->quic->default_tp.initial_max_stream_data_bidi_local = c->quic->default_tp.initial_max_stream_data_bidi_remote = config->stream_window;
    c->quic->default_tp.initial_max_stream_id_bidir = config->max_streams;
    if (config->max_unidirectional_streams) {
        c->quic->default_tp.initial_max_stream_id_unidir = config->max_unidirectional_streams;
        c->quic->default_tp.initial_max_stream_data_uni = config->stream_window;
    }
    c->quic->default_tp.max_datagram_frame_size = config->max_datagram_frame;
    if (config->max_paths > 1) {
        c->quic->default_tp.initial_max_path_id = config->max_paths - 1;
        c->stats.paths = &c->paths;
    }
    if (config->qlog) picoquic_set_qlog(c->quic, "");
    stats_start(&c->stats, c->quic);
    if (config->is_server) return NULL;
    resume(c, config->session);
    c->cnx = picoquic_create_cnx(c->quic, picoquic_null_connection_id, picoquic_null_connection_id, (struct sockaddr *)&remote,
                                 c->turn.now, 0, config->server_name, config->alpn, 1);
    if (!c->cnx || picoquic_set_local_addr(c->cnx, (struct sockaddr *)&local) || picoquic_start_client_cnx(c->cnx))
        return "picoquic refuses the settings";
    c->cnx->path[0]->send_mtu = config->datagram_size;
    c->early = config->early_data && picoquic_is_0rtt_available(c->cnx);
    if (c->early) tell(c, GARGALO_STACK_EARLY, 0, NULL);
    return NULL;
}
static void finish(struct conn *c) {
    tls_stop(&c->tls, c->quic ? c->quic->tls_master_ctx : NULL);
    picoquic_free(c->quic);
    stats_stop(&c->stats);
    paths_stop(&c->paths);
    free(c->options);
}
static void destroy(void *stack) {
    struct conn *c = stack;
    turn_enter(&c->turn, turn_host_time(c->turn.now));
    finish(c);
    turn_leave();
    free(c);
}
static void *create(const struct gargalo_stack_config *config, const struct gargalo_stack_host *host, uint64_t now,
                    char *error, size_t room) {
    struct conn *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->host = c->turn.host = c->stats.host = host;
    c->stats.notices = config->notices;
    memcpy(&c->config, config, MIN(config->size, sizeof c->config));
    host->random(host->context, (uint8_t *)&c->turn.seed, sizeof c->turn.seed);
    turn_enter(&c->turn, now);
    const char *why = start(c);
    if (why) finish(c);
    turn_leave();
    if (!why) return c;
    snprintf(error, room, "%s", why);
    free(c);
    return NULL;
}
static void datagram_in(void *stack, uint64_t now, const struct gargalo_path *path, uint8_t *data, size_t length) {
    struct conn *c = stack;
    struct sockaddr_storage from = address_of(&path->remote), to = address_of(&path->local);
    turn_enter(&c->turn, now);
    picoquic_incoming_packet(c->quic, data, length, (struct sockaddr *)&from, (struct sockaddr *)&to, 0,
                             c->config.ecn ? path->ecn : 0, c->turn.now);
    after(c);
    turn_leave();
}
static size_t datagram_out(void *stack, uint64_t now, struct gargalo_path *path, uint8_t *out, size_t room) {
    struct conn *c = stack;
    struct sockaddr_storage to = {0}, from = {0};
    size_t length = 0;
    int interface = 0, error = 0;
    turn_enter(&c->turn, now);
    if (c->quic->pending_stateless_packet)
        picoquic_prepare_next_packet(c->quic, c->turn.now, out, room, &length, &to, &from, &interface, NULL, NULL);
    else if (c->cnx && !c->over && c->cnx->next_wake_time <= c->turn.now)
        error = picoquic_prepare_packet(c->cnx, c->turn.now, out, room, &length, &to, &from, &interface);
    c->over |= error == PICOQUIC_ERROR_DISCONNECTED;
    after(c);
    turn_leave();
    if (!length) return 0;
    path->remote = host_address(&to);
    if (from.ss_family) path->local = host_address(&from);
    path->ecn = c->config.ecn && c->cnx && c->cnx->congestion_alg ? c->cnx->congestion_alg->ecn_mark : 0;
    return length;
}
static uint64_t next_timer(void *stack) {
    struct conn *c = stack;
    return c->cnx && !c->over ? turn_host_time(c->cnx->next_wake_time) : GARGALO_NONE;
}
/* What is due is done when the next packet is asked for. */
static void timeout(void *stack, uint64_t now) {}

static int64_t open_of(struct conn *c, uint64_t now, int unidirectional) {
    if (!c->cnx || c->told) return -1;
    turn_enter(&c->turn, now);
    uint64_t id = picoquic_get_next_local_stream_id(c->cnx, unidirectional);
    uint64_t most = unidirectional ? c->cnx->max_streams_unidir_remote : c->cnx->max_streams_bidir_remote;
    int error = id / 4 >= most || picoquic_set_app_stream_ctx(c->cnx, id, NULL);
    turn_leave();
    return error ? -1 : (int64_t)id;
}
static int64_t open_stream(void *stack, uint64_t now) { return open_of(stack, now, 0); }
static int64_t open_unidirectional_stream(void *stack, uint64_t now) { return open_of(stack, now, 1); }

static int send_datagram(void *stack, uint64_t now, const uint8_t *data, size_t length) {
    struct conn *c = stack;
    int waiting = 0, error;
    if (!c->cnx || c->told) return 0;
    if (!c->cnx->remote_parameters.max_datagram_frame_size) return -1;
    for (picoquic_misc_frame_header_t *frame = c->cnx->first_datagram; frame; frame = frame->next_misc_frame) waiting++;
    if (waiting >= MOST_DATAGRAMS) return 0;
    turn_enter(&c->turn, now);
    error = picoquic_queue_datagram_frame(c->cnx, length, data);
    turn_leave();
    return error ? -1 : 1;
}
static void reset_stream(void *stack, uint64_t now, uint64_t id) {
    struct conn *c = stack;
    if (!c->cnx || c->told) return;
    turn_enter(&c->turn, now);
    picoquic_reset_stream(c->cnx, id, CANCELLED); /* fails if it has ended */
    stream_remove(&c->stats, id);
    turn_leave();
}
static void stop_sending(void *stack, uint64_t now, uint64_t id) {
    struct conn *c = stack;
    if (!c->cnx || c->told) return;
    turn_enter(&c->turn, now);
    picoquic_stop_sending(c->cnx, id, CANCELLED); /* likewise */
    turn_leave();
}
/* Even numbers are shared in turn by streams of the same one; 9 is picoquic's default. */
static void set_urgency(void *stack, uint64_t now, uint64_t id, uint8_t urgency) {
    struct conn *c = stack;
    if (c->cnx && !c->told) picoquic_set_stream_priority(c->cnx, id, (uint8_t)(2 + 2 * urgency));
}
static int update_keys(void *stack, uint64_t now) {
    struct conn *c = stack;
    if (!c->cnx || c->told) return 0;
    turn_enter(&c->turn, now);
    int error = picoquic_start_key_rotation(c->cnx); /* not ready */
    turn_leave();
    return !error;
}
static size_t write_stream(void *stack, uint64_t now, uint64_t id, const uint8_t *data, size_t length, int fin) {
    struct conn *c = stack;
    if (!c->cnx || c->told) return 0;
    turn_enter(&c->turn, now);
    uint64_t kept = stats_unacknowledged(&c->stats, c->cnx), room = kept < c->config.send_window ? c->config.send_window - kept : 0;
    struct stream *s = stream_find(&c->stats, id);
    if (!s) s = stream_add(&c->stats, id);
    size_t taken = s && !s->ended ? MIN(length, room) : 0;
    if (s && !s->ended && (taken || fin) && !picoquic_add_to_stream(c->cnx, id, data, taken, fin)) {
        s->written += taken;
        s->ended = fin;
    } else taken = 0;
    turn_leave();
    return taken;
}
static uint64_t unacknowledged(void *stack) {
    struct conn *c = stack;
    return c->cnx ? stats_unacknowledged(&c->stats, c->cnx) : 0;
}
static void migrate(void *stack, uint64_t now, const struct gargalo_address *address) {
    struct conn *c = stack;
    struct sockaddr_storage local = address_of(address);
    if (!c->cnx || c->told) return;
    turn_enter(&c->turn, now);
    if (picoquic_probe_new_path(c->cnx, (struct sockaddr *)&c->cnx->path[0]->first_tuple->peer_addr, (struct sockaddr *)&local, c->turn.now))
        picoquic_set_local_addr(c->cnx, (struct sockaddr *)&local); /* before the handshake is confirmed */
    turn_leave();
}
static void open_path(void *stack, uint64_t now, const struct gargalo_path *path) {
    struct conn *c = stack;
    if (!c->cnx || c->told) return;
    turn_enter(&c->turn, now);
    paths_want(&c->paths, path);
    after(c);
    turn_leave();
}
static size_t tell_paths(void *stack, struct gargalo_stack_path *out, size_t room) {
    struct conn *c = stack;
    size_t count = 0;
    turn_look();
    for (size_t k = 0; c->cnx && k < c->paths.count && count < room; k++) {
        const struct path *p = &c->paths.all[k];
        size_t i = count;
        if (p->opened == GARGALO_NONE) continue;
        count++;
        out[i].id = p->id;
        out[i].local = p->local;
        out[i].remote = p->remote;
        out[i].opened = p->opened;
        out[i].closed = p->closed;
        out[i].received_bytes = p->received_bytes;
        stats_tell_path(p, c->cnx, &out[i].sender);
    }
    turn_leave();
    return count;
}
static void close_in_order(void *stack, uint64_t now) {
    struct conn *c = stack;
    turn_enter(&c->turn, now);
    if (!c->cnx) c->over = 1;
    else if (!c->told) picoquic_close(c->cnx, 0);
    tell(c, GARGALO_STACK_CLOSED, 0, NULL);
    turn_leave();
}
static int is_over(void *stack) { return ((struct conn *)stack)->over; }
static void stats(void *stack, struct gargalo_stack_stats *out) {
    struct conn *c = stack;
    turn_look();
    stats_tell(&c->stats, c->cnx, out);
    turn_leave();
}

const struct gargalo_stack *gargalo_stack_v1(void) {
    static const struct gargalo_stack table = {
        .abi = GARGALO_STACK_ABI,
        .features = GARGALO_STACK_ZERO_RTT | GARGALO_STACK_RETRY | GARGALO_STACK_MIGRATION | GARGALO_STACK_ECN |
                    GARGALO_STACK_QLOG | GARGALO_STACK_MTU_DISCOVERY | GARGALO_STACK_OPTIONS |
                    GARGALO_STACK_LOCAL_ADDRESS | GARGALO_STACK_UNIDIRECTIONAL | GARGALO_STACK_DATAGRAMS |
                    GARGALO_STACK_CANCEL | GARGALO_STACK_URGENCY | GARGALO_STACK_KEY_UPDATE |
                    GARGALO_STACK_MULTIPATH,
        .size = sizeof table,
        .name = "picoquic",
        .version = VERSION,
        .congestion = congestion,
        .create = create,
        .destroy = destroy,
        .datagram_in = datagram_in,
        .datagram_out = datagram_out,
        .next_timer = next_timer,
        .timeout = timeout,
        .open_stream = open_stream,
        .write = write_stream,
        .unacknowledged = unacknowledged,
        .migrate = migrate,
        .close = close_in_order,
        .is_over = is_over,
        .stats = stats,
        .specifications = specifications,
        .open_unidirectional_stream = open_unidirectional_stream,
        .send_datagram = send_datagram,
        .reset_stream = reset_stream,
        .stop_sending = stop_sending,
        .set_urgency = set_urgency,
        .update_keys = update_keys,
        .open_path = open_path,
        .paths = tell_paths,
    };
    return &table;
}
