/* A QUIC implementation for Gargalo, as a shared library.
 *
 * One object is one end of one connection. The library reads no clock, socket or random source of its own: every call
 * has the time, datagrams are arguments and results, and random bytes come from the host. So it runs in virtual time as
 * well as over real sockets, and the same seed gives the same bytes.
 *
 * Rules
 * - The library exports `const struct gargalo_stack *gargalo_stack_v1(void)`. The table and its strings live as long as
 *   the library.
 * - Times are nanoseconds since the start of the run, and never decrease. Sizes are bytes, rates bits per second.
 * - Calls for one object come one at a time, from any thread. Objects of several threads may exist at once.
 * - After `datagram_in`, `timeout` and every call with a time that comes from the application the host calls
 *   `datagram_out` until it returns 0, then `next_timer`.
 * - The host's functions may be called only during a call to the library, with the context of that object.
 * - No exception or panic may leave a function.
 *
 * Copyright and licence: MIT OR Apache-2.0, as the project.
 */
#ifndef GARGALO_STACK_H
#define GARGALO_STACK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. A library's table begins with it, and a library of another version is refused; the
 * exported function has the same name in every version. */
#define GARGALO_STACK_ABI 1

/* No timer; and for sizes, rates and counters: the library does not report it. */
#define GARGALO_NONE UINT64_MAX

/* Features: what a scenario may request of the library. Without the bit, the request is an error before the run. */
#define GARGALO_STACK_ZERO_RTT (1u << 0)  /* early data with a session of an earlier connection (RFC 9001 §4.6) */
#define GARGALO_STACK_RETRY (1u << 1)     /* as a server: address validation by Retry (RFC 9000 §8.1.2) */
#define GARGALO_STACK_MIGRATION (1u << 2) /* as a client: a new local address (RFC 9000 §9) */
#define GARGALO_STACK_ECN (1u << 3)       /* sends ECT(0) and reports marks (RFC 9000 §13.4) */
#define GARGALO_STACK_QLOG (1u << 4)      /* writes qlog */
#define GARGALO_STACK_NO_PACING (1u << 5) /* pacing can be switched off */
#define GARGALO_STACK_MTU_DISCOVERY (1u << 6) /* searches for larger datagrams (RFC 8899) */
#define GARGALO_STACK_INITIAL_WINDOW (1u << 7) /* follows initial_window; otherwise it is ten packets (RFC 9002 §7.2) */
#define GARGALO_STACK_OPTIONS (1u << 8)   /* takes options of its own */
#define GARGALO_STACK_LOCAL_ADDRESS (1u << 9) /* fills `path.local` of each datagram: after `migrate` it may go on to use
                                               * the address before, until the new one is validated (RFC 9000 §9.2) */
#define GARGALO_STACK_ECDSA (1u << 10)    /* cannot use Ed25519: the certificate of its connections is ECDSA with P-256 */
/* Each of these needs its functions in the table. */
#define GARGALO_STACK_UNIDIRECTIONAL (1u << 11) /* unidirectional streams (RFC 9000 §2.1) */
#define GARGALO_STACK_DATAGRAMS (1u << 12)  /* datagrams (RFC 9221) */
#define GARGALO_STACK_CANCEL (1u << 13)     /* RESET_STREAM and STOP_SENDING (RFC 9000 §3.5) */
#define GARGALO_STACK_URGENCY (1u << 14)    /* streams of different urgency (RFC 9218 §4.1) */
#define GARGALO_STACK_KEY_UPDATE (1u << 15) /* updates keys when it is asked to (RFC 9001 §6) */

#define GARGALO_STACK_MULTIPATH (1u << 17) /* several paths at once (draft-ietf-quic-multipath); needs
                                            * GARGALO_STACK_LOCAL_ADDRESS, too */
#define GARGALO_STACK_PACKETS (1u << 16) /* reports its packets; without GARGALO_STACK_QLOG the host writes qlog of them */

/* The calendar time at the start of a run, since the Unix epoch: 1 January 2025, 00:00 UTC. A library adds the time of the
 * call where it needs a date, for a certificate or a ticket. */
#define GARGALO_CALENDAR_START 1735689600 /* s */

/* Kinds of events; see `gargalo_stack_host.event`. */
#define GARGALO_STACK_EARLY 1     /* client: early data may be written */
#define GARGALO_STACK_CONNECTED 2 /* the handshake is complete */
#define GARGALO_STACK_CLOSED 3    /* the connection has ended in order */
#define GARGALO_STACK_FAILED 4    /* it has failed; the text says why, and has "timed out" if that is why */

/* Early data of a connection; the value of a GARGALO_STACK_CONNECTED. */
#define GARGALO_STACK_NO_EARLY_DATA 0
#define GARGALO_STACK_EARLY_DATA_ACCEPTED 1
#define GARGALO_STACK_EARLY_DATA_REJECTED 2 /* the library has discarded the streams: the host opens them again, in the
                                             * same order and with the same numbers, and writes all data again */
#define GARGALO_STACK_EARLY_DATA_RESENT 3   /* rejected, and the library sends the stream data again by itself */

struct gargalo_address {
    uint8_t ip[16];    /* IPv4: the first four bytes */
    uint16_t port;     /* in the byte order of the machine */
    uint8_t ip_length; /* 4 or 16 */
    uint8_t reserved[5];
};

/* Where a datagram comes from and goes to. */
struct gargalo_path {
    struct gargalo_address local;
    struct gargalo_address remote;
    uint8_t ecn; /* the two bits of the IP header (RFC 3168 §5): 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE */
    uint8_t reserved[7];
};

/* What happens to packets, and their types (RFC 9000 §17). */
#define GARGALO_PACKET_SENT 1
#define GARGALO_PACKET_RECEIVED 2
#define GARGALO_PACKET_ACKNOWLEDGED 3 /* one that was sent, as is the next */
#define GARGALO_PACKET_LOST 4         /* declared lost */
#define GARGALO_PACKET_INITIAL 0
#define GARGALO_PACKET_0_RTT 1
#define GARGALO_PACKET_HANDSHAKE 2
#define GARGALO_PACKET_1_RTT 3

/* Something that has happened to a packet. */
struct gargalo_packet {
    uint64_t number;
    uint32_t size; /* with header and tag; 0: not known */
    uint8_t event; /* GARGALO_PACKET_SENT … */
    uint8_t type;  /* GARGALO_PACKET_INITIAL … */
    uint8_t ack_eliciting; /* RFC 9002 §2 */
    uint8_t reserved;
};

/* Bytes that belong to the caller and are valid during the call. */
struct gargalo_bytes {
    const uint8_t *data;
    size_t length;
};

/* What a scenario requests of one end. Valid during `create` only. */
struct gargalo_stack_config {
    uint64_t size; /* of this structure: later versions add fields at the end */
    struct gargalo_address local;
    struct gargalo_address remote;
    const char *congestion;      /* one of `gargalo_stack.congestion` */
    const char *server_name;     /* for SNI and the certificate */
    const char *alpn;            /* the only application protocol */
    struct gargalo_bytes certificate; /* DER, self-signed; Ed25519, or ECDSA with P-256 if either end
                                       * has GARGALO_STACK_ECDSA: a client trusts exactly this one */
    struct gargalo_bytes private_key; /* DER, PKCS #8; empty for a client */
    struct gargalo_bytes ticket_key;  /* 64 secret bytes: the same for all connections of a server until it restarts */
    struct gargalo_bytes session;     /* client: what it gave to `session` in an earlier connection, or empty */
    uint64_t initial_window;     /* congestion window */
    uint64_t stream_window;      /* receive window of a stream */
    uint64_t connection_window;  /* receive window of the connection */
    uint64_t send_window;        /* capacity of the send buffer */
    uint64_t idle_timeout;       /* ns */
    uint64_t initial_rtt;        /* ns; before the first sample (RFC 9002 §6.2.2) */
    uint64_t max_streams;        /* that the peer may have open at once */
    uint32_t datagram_size;      /* UDP payload of a full packet */
    uint32_t max_datagram_size;  /* greatest that discovery may find; equal to datagram_size: no discovery */
    uint8_t is_server;
    uint8_t early_data;          /* client: send early data if there is a session; server: accept it, and issue tickets
                                  * that allow it */
    uint8_t retry;               /* server: answer the first Initial with a Retry */
    uint8_t ecn;
    uint8_t pacing;
    uint8_t qlog;                /* call `qlog`; otherwise it is ignored, as the next two are */
    uint8_t secrets;             /* call `secret` */
    uint8_t notices;             /* call `notice` */
    const char *options;         /* what the scenario has for this stack: an object of JSON, "{}" for nothing */
    uint64_t max_unidirectional_streams; /* that the peer may have open at once; 0: the flow has none, and the library may
                                          * tell the peer another limit */
    uint32_t max_datagram_frame; /* the largest DATAGRAM frame to accept (RFC 9221 §3); 0: the flow has none, and `datagram` must
                                  * not be called; the library may tell the peer another limit */
    uint8_t packets;             /* call `packet`; otherwise it is ignored */
    uint8_t reserved[3];
    uint64_t max_paths;          /* at once; 1: no multipath */
};

/* The host. The structure is valid as long as the object; every function takes `context` first. Later versions add functions
 * at the end. */
struct gargalo_stack_host {
    void *context;
    /* Writes `length` random bytes of this object's own stream. */
    void (*random)(void *context, uint8_t *out, size_t length);
    /* Reports an event; repetitions are ignored. `value`: early data, for GARGALO_STACK_CONNECTED.
     * `text`: UTF-8, or NULL. */
    void (*event)(void *context, uint32_t kind, uint32_t value, const char *text);
    /* Stream data has arrived, in order, each byte once; `fin`: the stream ends after it. It counts as read. */
    void (*received)(void *context, uint64_t stream, const uint8_t *data, size_t length, int fin);
    /* Client: a session to resume from later, as bytes of the library's own choice (ticket, transport parameters). The
     * same one may be reported again. */
    void (*session)(void *context, const uint8_t *data, size_t length);
    /* A line for an SSLKEYLOGFILE, without the end of line. */
    void (*secret)(void *context, const char *line);
    /* Bytes of a qlog file. */
    void (*qlog)(void *context, const uint8_t *data, size_t length);
    /* Something worth a row in the table of events: a word such as "loss", and details. */
    void (*notice)(void *context, const char *kind, const char *detail);
    /* A round-trip sample, ns. */
    void (*rtt_sample)(void *context, uint64_t rtt);
    /* A datagram that is sent now, before those of `datagram_out`: an answer of a server that has no connection yet, or
     * the rest of several that a library makes at once. */
    void (*send)(void *context, const struct gargalo_path *path, const uint8_t *data, size_t length);
    /* A datagram has arrived (RFC 9221); with `max_datagram_frame` only. */
    void (*datagram)(void *context, const uint8_t *data, size_t length);
    /* The peer asks for the end of a stream (STOP_SENDING): the host calls `reset_stream`. Only a peer whose library has
     * GARGALO_STACK_CANCEL does so. */
    void (*stopped)(void *context, uint64_t stream);
    /* The peer has reset a stream: an error, unless the host has called `stop_sending` for it. */
    void (*reset)(void *context, uint64_t stream);
    /* Something has happened to a packet; with GARGALO_STACK_PACKETS. */
    void (*packet)(void *context, const struct gargalo_packet *packet);
    /* A round-trip sample of a path, ns, in place of `rtt_sample`; with `max_paths` above 1. */
    void (*path_rtt_sample)(void *context, uint64_t path, uint64_t rtt);
};

/* Counters and state of the sender; GARGALO_NONE where the library does not report it. */
struct gargalo_stack_stats {
    uint64_t size;                  /* of this structure, set by the host */
    uint64_t sent_packets;          /* ack-eliciting packets sent */
    uint64_t sent_bytes;            /* stream data sent, retransmissions included */
    uint64_t retransmitted_packets; /* packets with stream data that was sent before */
    uint64_t lost_packets;          /* declared lost */
    uint64_t timeouts;              /* probe timeouts */
    uint64_t spurious;              /* losses found to be spurious */
    uint64_t cwnd;                  /* congestion window */
    uint64_t ssthresh;              /* GARGALO_NONE also while it is infinite */
    uint64_t in_flight;
    uint64_t srtt;                  /* ns; GARGALO_NONE before the first sample */
    uint64_t pacing_rate;           /* bit/s */
    uint64_t delivery_rate;         /* bit/s */
    const char *phase;              /* state of the congestion control in one word, valid until the next call; or NULL */
};

/* A path of a connection with several (draft-ietf-quic-multipath). */
struct gargalo_stack_path {
    uint64_t id; /* the same at both ends */
    struct gargalo_address local;
    struct gargalo_address remote;
    uint64_t opened;         /* when it could carry data */
    uint64_t closed;         /* when it was abandoned; GARGALO_NONE: not yet */
    uint64_t received_bytes; /* of stream data that arrived first on this path */
    struct gargalo_stack_stats sender;
};

struct gargalo_stack {
    uint32_t abi;      /* GARGALO_STACK_ABI */
    uint32_t features; /* bits of GARGALO_STACK_… */
    uint64_t size;     /* of this structure: later versions add functions at the end */
    const char *name;    /* `stack = "name"` in scenarios */
    const char *version; /* of the implementation inside */
    const char *const *congestion; /* names of its congestion controls, the default first; ends with NULL */

    /* Creates one end; a client connects. NULL: failed, and `error` (of `room` bytes) has a sentence that ends with 0. */
    void *(*create)(const struct gargalo_stack_config *config, const struct gargalo_stack_host *host, uint64_t now,
                    char *error, size_t room);
    /* Frees it; of the host's functions only `qlog` may be called, for the end of a file. */
    void (*destroy)(void *stack);

    /* A datagram has arrived; it may be changed in place. */
    void (*datagram_in)(void *stack, uint64_t now, const struct gargalo_path *path, uint8_t *data, size_t length);
    /* Writes the next datagram that may be sent now; returns its length, 0 for none. The remote address and the mark of
     * `path` are to be filled, with GARGALO_STACK_LOCAL_ADDRESS the local address, too; without, it is sent from the present
     * one, and `datagram_in` has that for each. */
    size_t (*datagram_out)(void *stack, uint64_t now, struct gargalo_path *path, uint8_t *out, size_t room);
    /* When `timeout` must be called, pacing included; GARGALO_NONE: never. */
    uint64_t (*next_timer)(void *stack);
    void (*timeout)(void *stack, uint64_t now);

    /* Opens a bidirectional stream; returns its number, or -1 if the peer's limit is reached. */
    int64_t (*open_stream)(void *stack, uint64_t now);
    /* Takes stream data, no more than `send_window` has room for; returns how many bytes were taken. The host keeps the
     * rest, and offers it again after `datagram_in` and `timeout`. `fin`: the stream ends here; there is no data then, and
     * all before it is taken. */
    size_t (*write)(void *stack, uint64_t now, uint64_t stream, const uint8_t *data, size_t length, int fin);
    /* Stream data and ends of streams that are written and not acknowledged: not 0 while there are any. NULL: the
     * library does not report it. */
    uint64_t (*unacknowledged)(void *stack);

    /* The local address has changed. NULL without GARGALO_STACK_MIGRATION. */
    void (*migrate)(void *stack, uint64_t now, const struct gargalo_address *local);
    /* Closes the connection in order, without an error. */
    void (*close)(void *stack, uint64_t now);
    /* Whether the connection has ended and nothing more will be sent. */
    int (*is_over)(void *stack);
    /* May be called after the end of the connection: what was counted until then. */
    void (*stats)(void *stack, struct gargalo_stack_stats *stats);

    /* What each name of `congestion` follows, in the same order and as many: of BBR "bbr"
     * (draft-cardwell-iccrg-bbr-congestion-control-00, version 1), "bbr2" (the same draft, -02) or "bbr3"
     * (draft-ietf-ccwg-bbr); "" where the library does not say. NULL: for none. Missing in tables that are smaller. */
    const char *const *specifications;

    /* What the library does once in a process, before any `create`: tables of its own, a library of cryptography. It must
     * not draw from the random numbers of one connection. NULL: nothing. This and what follows may be missing in tables
     * that are smaller. */
    void (*prepare)(void);
    /* As `open_stream`, unidirectional. NULL without GARGALO_STACK_UNIDIRECTIONAL. */
    int64_t (*open_unidirectional_stream)(void *stack, uint64_t now);
    /* Takes a datagram that is sent once, in one packet (RFC 9221). 1: taken; 0: not now, the host offers it again, and
     * discards it when it is too old: a library keeps no long queue of its own; -1: it does not fit into a packet, or the
     * peer takes none. Called once the handshake is complete. NULL without GARGALO_STACK_DATAGRAMS. */
    int (*send_datagram)(void *stack, uint64_t now, const uint8_t *data, size_t length);
    /* Ends a stream at once: what is written and not acknowledged is not sent any more (RESET_STREAM, RFC 9000 §3.1). It
     * may have ended. Both with the application's error 0x10c (H3_REQUEST_CANCELLED, RFC 9114 §8.1). NULL without
     * GARGALO_STACK_CANCEL, as the next. */
    void (*reset_stream)(void *stack, uint64_t now, uint64_t stream);
    /* Asks the peer to end a stream (STOP_SENDING); what still arrives on it need not be reported. */
    void (*stop_sending)(void *stack, uint64_t now, uint64_t stream);
    /* The urgency of what is written on a stream, from 0, which goes first, to 7 (RFC 9218 §4.1); streams of equal urgency are
     * served in turn or one after another, as the library does. Without a call it is 3. NULL without GARGALO_STACK_URGENCY. */
    void (*set_urgency)(void *stack, uint64_t now, uint64_t stream, uint8_t urgency);
    /* Begins to send with the next keys, and returns 1; 0: that is not allowed yet (RFC 9001 §6.1: before the handshake is
     * confirmed, or a packet with the present keys acknowledged), and the host asks again. NULL without
     * GARGALO_STACK_KEY_UPDATE. */
    int (*update_keys)(void *stack, uint64_t now);
    /* Client, once the handshake is complete: opens a further path between these addresses as soon as the peer allows it. NULL
     * without GARGALO_STACK_MULTIPATH, as the next. */
    void (*open_path)(void *stack, uint64_t now, const struct gargalo_path *path);
    /* Fills in the paths that can or could carry data, in the order of opening, those that were abandoned included, and returns how
     * many there are; `room` is at least `max_paths`, and 16. The `size` of each `sender` is set by the host. */
    size_t (*paths)(void *stack, struct gargalo_stack_path *out, size_t room);
    /* The network reports that a datagram sent on `path` was larger than the MTU of a link (RFC 1191, RFC 8201), as a socket does by
     * EMSGSIZE; `mtu` with the IP header. Anybody can forge such a report (RFC 9000 §14.2.1). NULL: it is ignored. */
    void (*packet_too_big)(void *stack, uint64_t now, const struct gargalo_path *path, uint64_t mtu);
};

/* The function that the library exports. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const struct gargalo_stack *gargalo_stack_v1(void);

#ifdef __cplusplus
}
#endif

#endif
