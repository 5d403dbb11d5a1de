/* Congestion controls in C for Gargalo: the binary interface.
 *
 * A shared library exports one function, gargalo_congestion_v1(), which returns a table of algorithms. Each has
 * functions that create a controller (one for each path of each connection) and tell it of the events of its path.
 * After each event the controller writes its numbers (window, threshold, pacing rate, ...) into a gargalo_state; the
 * transport reads them from there.
 *
 * Times are nanoseconds of the world's clock, amounts bytes of payload, rates bits per second. GARGALO_NONE stands for
 * a number that is missing.
 *
 * Rules for all functions:
 * - Calls for one controller come one after another, in the order of time. Controllers of different connections may be
 *   called from different threads at once: keep all state in the controller, none in static variables.
 * - The records that a call is given are valid until it returns.
 * - The clock and randomness come from the records and from gargalo_host: then a run repeats byte for byte.
 * - A call must return soon: one that computes for longer than a second is reported as a loop, and ends the run.
 *
 * Licence: MIT OR Apache-2.0, at your option.
 */
#ifndef GARGALO_CONGESTION_H
#define GARGALO_CONGESTION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. A library's table begins with it, and a library of another version is refused; the
 * exported function has the same name in every version. */
#define GARGALO_CONGESTION_ABI 2u

/* A time, an amount or a rate that is missing. */
#define GARGALO_NONE UINT64_MAX

/* In gargalo_state: there is no slow-start threshold (it is infinite); the transport chooses the pacing rate or the
 * size of bursts. */
#define GARGALO_UNSET (-1.0)

/* What the host offers to one controller. The pointer is valid as long as the controller is. */
typedef struct gargalo_host {
    /* To be passed to the functions below. */
    void *context;
    /* 64 random bits of the controller's own stream, which the scenario's seed and the flow determine. */
    uint64_t (*random)(void *context);
    /* Functions of real numbers with the same result on every machine, to the last bit; those of the C library differ
     * from one to another. */
    double (*cbrt)(double x);
    double (*exp)(double x);
    double (*log)(double x);
    double (*pow)(double x, double y);
} gargalo_host;

/* How a path begins. */
typedef struct gargalo_init {
    /* When the path is opened. */
    uint64_t now_ns;
    /* Maximum segment size, at least 1. */
    uint64_t mss_bytes;
    /* The transport's initial window (RFC 6928). */
    uint64_t initial_window_bytes;
    /* The values of the algorithm's parameters, in the order of their declaration; see gargalo_parameter. */
    const double *parameters;
    const gargalo_host *host;
} gargalo_init;

/* Another path of the same connection (Multipath TCP). */
typedef struct gargalo_sibling {
    /* Settled window: the threshold while it recovers, the window otherwise. */
    uint64_t cwnd_bytes;
    /* Smoothed and least round-trip time, or GARGALO_NONE. */
    uint64_t srtt_ns;
    uint64_t min_rtt_ns;
    uint64_t mss_bytes;
    /* Acknowledged since the last loss, and between the last two. */
    uint64_t since_loss_bytes;
    uint64_t between_losses_bytes;
    /* Current delivery rate, bytes per second. */
    double rate_bytes_per_s;
    /* 1: established and not failed. */
    uint64_t can_send;
} gargalo_sibling;

/* The path that a controller serves, as it is at a call. */
typedef struct gargalo_path {
    /* Maximum segment size. */
    uint64_t mss_bytes;
    /* Smoothed, latest and least round-trip time, or GARGALO_NONE before the first sample. */
    uint64_t srtt_ns;
    uint64_t latest_rtt_ns;
    uint64_t min_rtt_ns;
    uint64_t in_flight_bytes;
    /* All paths of the connection in a fixed order, this one included; none where the transport has one path. */
    const gargalo_sibling *siblings;
    uint64_t sibling_count;
    /* Which of them this path is. */
    uint64_t index;
} gargalo_path;

/* The handshake is complete. */
typedef struct gargalo_established {
    uint64_t now_ns;
    /* The initial window: smaller than that of gargalo_init if packets of the handshake were lost, and other if the two
     * ends agreed on other segments. */
    uint64_t window_bytes;
} gargalo_established;

/* A packet is about to be sent. */
typedef struct gargalo_sent {
    uint64_t now_ns;
    /* Its payload. */
    uint64_t bytes;
    /* In flight before it. */
    uint64_t in_flight_bytes;
    /* Nothing was in flight: time since the last transmission; GARGALO_NONE otherwise. */
    uint64_t idle_ns;
    /* With idle_ns: the retransmission timeout, and the window to restart from (RFC 5681 section 4.1), GARGALO_NONE
     * where the transport does not restart. */
    uint64_t rto_ns;
    uint64_t restart_window_bytes;
    /* 1: the sender has less to send than the window allows. */
    uint32_t app_limited;
    /* 1: a retransmission. */
    uint32_t retransmission;
    /* With idle_ns: app_limited of the last packet before. */
    uint32_t was_app_limited;
    uint32_t reserved;
} gargalo_sent;

/* A sample of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation). */
typedef struct gargalo_rate_sample {
    /* Delivered and lost over the interval. */
    uint64_t delivered_bytes;
    uint64_t lost_bytes;
    /* The longer of the two below. */
    uint64_t interval_ns;
    uint64_t send_elapsed_ns;
    uint64_t ack_elapsed_ns;
    /* Total delivered when the newest acknowledged segment was sent: a clock of round trips. */
    uint64_t prior_delivered_bytes;
    /* Total delivered now. */
    uint64_t total_delivered_bytes;
    /* In flight when that segment was sent. */
    uint64_t tx_in_flight_bytes;
    /* 1: the application limited the sender then. */
    uint32_t app_limited;
    /* 1: that segment was a retransmission. */
    uint32_t retransmission;
} gargalo_rate_sample;

/* One incoming acknowledgement. */
typedef struct gargalo_acked {
    uint64_t now_ns;
    /* Newly delivered: acknowledged cumulatively or selectively. */
    uint64_t bytes;
    /* Acknowledged cumulatively (N of RFC 5681 section 3.1): what a window may grow for. */
    uint64_t acknowledged_bytes;
    /* Of the delivered bytes, those marked with Congestion Experienced. */
    uint64_t ce_bytes;
    /* Sample of the round-trip time, or GARGALO_NONE. */
    uint64_t rtt_ns;
    /* When the newest segment acknowledged here was sent, or GARGALO_NONE. */
    uint64_t sent_at_ns;
    /* In flight before this acknowledgement, and after it and the marking of losses. */
    uint64_t in_flight_before_bytes;
    uint64_t in_flight_bytes;
    /* Valid if has_sample is 1. */
    gargalo_rate_sample sample;
    uint32_t has_sample;
    /* 1: the window, not the application, limited sending during the last round trip. */
    uint32_t cwnd_limited;
    /* 1: the transport is in recovery and paces the reduction itself: no window grows. */
    uint32_t in_recovery;
    /* 1: a round trip ended with this acknowledgement. */
    uint32_t round_start;
} gargalo_acked;

/* One segment was marked lost. */
typedef struct gargalo_lost {
    uint64_t now_ns;
    /* Its payload. */
    uint64_t bytes;
    /* In flight after the marking. */
    uint64_t in_flight_bytes;
    /* When it was sent last, and the state of the transport then: time of the first segment of its sampling interval,
     * totals of delivered and lost bytes, time of the latest delivery, bytes in flight with it. */
    uint64_t sent_at_ns;
    uint64_t first_sent_at_ns;
    uint64_t delivered_bytes;
    uint64_t delivered_at_ns;
    uint64_t lost_bytes;
    uint64_t tx_in_flight_bytes;
    /* 1: the application limited the sender then. */
    uint32_t app_limited;
    /* 1: the first loss of the current round trip. */
    uint32_t new_burst;
} gargalo_lost;

/* Why the network is believed to be congested. */
#define GARGALO_LOSS 0u    /* losses found by acknowledgements */
#define GARGALO_ECN 1u     /* Congestion Experienced marks */
#define GARGALO_TIMEOUT 2u /* the retransmission timer expired */

/* A congestion event: at most one for each recovery epoch, one a round trip for marks, and each timeout. */
typedef struct gargalo_congestion_event {
    uint64_t now_ns;
    /* Marked lost so far in this event. */
    uint64_t lost_bytes;
    /* In flight when it was found, before losses were marked (FlightSize of RFC 5681). */
    uint64_t in_flight_bytes;
    /* GARGALO_LOSS, GARGALO_ECN or GARGALO_TIMEOUT. */
    uint32_t cause;
    /* Timeouts in a row; 1 for the first. */
    uint32_t consecutive;
} gargalo_congestion_event;

/* The latest congestion event was spurious. */
typedef struct gargalo_spurious {
    uint64_t now_ns;
    /* Its cause. */
    uint32_t cause;
    /* Timeouts in a row. */
    uint32_t consecutive;
} gargalo_spurious;

/* Flags of gargalo_state. */
#define GARGALO_SLOW_START 1u       /* the window about doubles each round trip */
#define GARGALO_GOVERNS_RECOVERY 2u /* cwnd_bytes is obeyed during recovery as it is, without PRR (RFC 9937) */

/* The numbers of a controller. The host keeps one of these for each controller and gives it to each call, with the
 * values of the call before: a function changes what has changed. Each is checked after each call; an invalid one ends
 * the run with an error that names library, algorithm, function and value. */
typedef struct gargalo_state {
    /* Congestion window, at least one segment, at most 2^40. */
    double cwnd_bytes;
    /* Slow-start threshold, at least 1, or GARGALO_UNSET. */
    double ssthresh_bytes;
    /* Pacing rate in bits per second, at least 1, or GARGALO_UNSET. */
    double pacing_rate_bps;
    /* Largest burst when pacing, at least 1, or GARGALO_UNSET. */
    double send_quantum_bytes;
    /* One word for plots, such as "slow-start", "congestion-avoidance" or "probe-bw". A constant: the text that it
     * points to never changes. */
    const char *phase;
    /* NULL, or what has gone wrong: the run then ends with this text, which is read at once. */
    const char *error;
    uint32_t flags;
    uint32_t reserved;
} gargalo_state;

/* Kinds of parameters, and what their values are in gargalo_init. */
#define GARGALO_NUMBER 0u   /* a number from minimum to maximum */
#define GARGALO_INTEGER 1u  /* a whole number from minimum to maximum */
#define GARGALO_SWITCH 2u   /* 0 or 1 */
#define GARGALO_CHOICE 3u   /* the index of one of choices */
#define GARGALO_DURATION 4u /* nanoseconds from minimum to maximum; scenarios give it with a unit, as "20ms" */

/* A parameter of an algorithm: a key in scenarios. */
typedef struct gargalo_parameter {
    const char *name;
    /* One line about it, with its unit, without a full stop at the end. */
    const char *doc;
    /* GARGALO_CHOICE: a comma-separated list of names; NULL otherwise. */
    const char *choices;
    double default_value;
    double minimum;
    double maximum;
    /* GARGALO_NUMBER, ... */
    uint32_t kind;
    uint32_t reserved;
} gargalo_parameter;

/* Adds a gauge to those that a table of results has; name is a constant that ends in its unit. */
typedef void (*gargalo_gauge)(void *context, const char *name, double value);

/* Flags of gargalo_algorithm. */
#define GARGALO_WATCHES_SENDS 1u /* on_send is to be called for each packet, not only for those after an idle time */

/* An algorithm. Functions may be NULL where that is said. */
typedef struct gargalo_algorithm {
    /* Name in scenarios: small letters, digits and hyphens. */
    const char *name;
    /* One line about it. */
    const char *summary;
    /* Where it is specified, or "". */
    const char *source;
    const gargalo_parameter *parameters;
    uint32_t parameter_count;
    uint32_t flags;
    /* Passed to create; for libraries whose algorithms share functions. */
    const void *data;
    /* Returns a new controller and fills *state. NULL: none can be made, and state->error says why. */
    void *(*create)(const void *data, const gargalo_init *init, gargalo_state *state);
    /* Frees a controller. */
    void (*destroy)(void *controller);
    /* Returns a copy with the same state for another host. */
    void *(*clone)(const void *controller, const gargalo_host *host);
    /* Data was acknowledged. */
    void (*on_ack)(void *controller, const gargalo_acked *ack, const gargalo_path *path, gargalo_state *state);
    /* The window should shrink. */
    void (*on_congestion)(void *controller, const gargalo_congestion_event *event, const gargalo_path *path,
                          gargalo_state *state);
    /* A packet is about to leave; see GARGALO_WATCHES_SENDS. May be NULL. */
    void (*on_send)(void *controller, const gargalo_sent *sent, const gargalo_path *path, gargalo_state *state);
    /* A segment was marked lost; comes before the congestion event. May be NULL. */
    void (*on_loss)(void *controller, const gargalo_lost *lost, const gargalo_path *path, gargalo_state *state);
    /* The latest congestion event was spurious: restore what it changed. May be NULL. */
    void (*on_spurious)(void *controller, const gargalo_spurious *event, const gargalo_path *path,
                        gargalo_state *state);
    /* Fast recovery, or recovery after a timeout, has ended. May be NULL. */
    void (*on_recovered)(void *controller, uint64_t now_ns, const gargalo_path *path, gargalo_state *state);
    /* The handshake of TCP is complete: path has the agreed segment size and the round trip of the handshake, if it was
     * measured. Called once, before the first data; not for QUIC, which reports the acknowledgements of its handshake as
     * any others. NULL: on_mss is called. */
    void (*on_established)(void *controller, const gargalo_established *established, const gargalo_path *path,
                           gargalo_state *state);
    /* The maximum segment size changed; the window must have one at least. May be NULL: the window is then raised. */
    void (*on_mss)(void *controller, const gargalo_path *path, gargalo_state *state);
    /* A subflow of Multipath TCP holds up others: give up half of the window. May be NULL. */
    void (*halve)(void *controller, gargalo_state *state);
    /* Calls gauge for each quantity worth plotting. May be NULL. */
    void (*gauges)(const void *controller, gargalo_gauge gauge, void *context);
} gargalo_algorithm;

/* What gargalo_congestion_v1() returns; valid as long as the process lives. */
typedef struct gargalo_congestion {
    /* GARGALO_CONGESTION_ABI. */
    uint32_t abi;
    uint32_t algorithm_count;
    const gargalo_algorithm *algorithms;
    /* Sizes of the structures that the library was compiled with: GARGALO_SIZES. */
    uint32_t sizes[13];
} gargalo_congestion;

#define GARGALO_SIZES                                                                                                  \
    {sizeof(gargalo_host),  sizeof(gargalo_init),  sizeof(gargalo_sibling),  sizeof(gargalo_path),                     \
     sizeof(gargalo_established), sizeof(gargalo_sent),  sizeof(gargalo_rate_sample), sizeof(gargalo_acked),           \
     sizeof(gargalo_lost),  sizeof(gargalo_congestion_event), sizeof(gargalo_spurious), sizeof(gargalo_state),         \
     sizeof(gargalo_parameter) + sizeof(gargalo_algorithm)}

#if defined(__GNUC__)
#define GARGALO_EXPORT __attribute__((visibility("default")))
#else
#define GARGALO_EXPORT
#endif

/* The function that a library defines. GARGALO_ALGORITHMS(array) does it for an array of algorithms. */
GARGALO_EXPORT const gargalo_congestion *gargalo_congestion_v1(void);

#define GARGALO_ALGORITHMS(array)                                                                                      \
    const gargalo_congestion *gargalo_congestion_v1(void) {                                                            \
        static const gargalo_congestion table = {GARGALO_CONGESTION_ABI, sizeof(array) / sizeof((array)[0]), (array),  \
                                                 GARGALO_SIZES};                                                       \
        return &table;                                                                                                 \
    }                                                                                                                  \
    typedef int gargalo_needs_a_semicolon

#ifdef __cplusplus
}
#endif

#endif
