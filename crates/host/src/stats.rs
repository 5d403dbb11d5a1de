/// Counters of a host, in datagrams unless stated otherwise. The struct is flat, one field per counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostStats {
    /// Passed to [`Host::handle`](crate::Host::handle).
    pub received: u64,
    /// Returned by [`Host::poll_transmit`](crate::Host::poll_transmit).
    pub sent: u64,
    /// Dropped: not an IP datagram, or an inconsistent header.
    pub malformed: u64,
    /// Dropped: an IP, TCP, UDP or ICMP checksum is wrong.
    pub bad_checksums: u64,
    /// Dropped: a fragment.
    pub fragments: u64,
    /// Dropped: to an address that is not ours.
    pub not_ours: u64,
    /// Dropped: invalid source address (RFC 1122 §3.2.1.3).
    pub bad_sources: u64,
    /// Dropped: a protocol that is neither TCP, UDP nor ICMP.
    pub unknown_protocols: u64,
    /// Segments that belong to no connection.
    pub strangers: u64,
    /// Resets sent in answer to segments of no connection (RFC 9293 §3.10.7.1).
    pub resets_sent: u64,
    /// Connections opened by us.
    pub opened: u64,
    /// Connections opened by peers, cookies included.
    pub accepted: u64,
    /// SYNs dropped: backlog full and no cookies, or accept queue full.
    pub dropped_by_backlog: u64,
    /// Acknowledgements that would have opened a connection, dropped: accept queue full.
    pub dropped_by_accept_queue: u64,
    /// SYNs answered by a cookie.
    pub cookies_sent: u64,
    /// Connections opened by a cookie.
    pub cookies_accepted: u64,
    /// Acknowledgements without a valid cookie where one was expected.
    pub cookies_refused: u64,
    /// SYNs with MP_JOIN for no connection of ours, answered by a reset (RFC 8684 §3.2).
    pub joins_refused: u64,
    /// Half-open connections given up: no answer, or reset.
    pub half_open_failed: u64,
    /// Connections in TIME-WAIT that a new SYN has replaced (RFC 6191).
    pub time_wait_reused: u64,
    /// Connections in TIME-WAIT removed early because there were too many.
    pub time_wait_dropped: u64,
    /// Datagrams dropped because the send queue was full.
    pub outgoing_dropped: u64,
    /// ICMP messages received with a correct checksum.
    pub icmp_received: u64,
    /// Echo replies sent.
    pub echo_replies: u64,
    /// ICMP errors sent (port unreachable).
    pub icmp_errors_sent: u64,
    /// ICMP messages that the rate limit suppressed.
    pub icmp_limited: u64,
    /// ICMP errors about a connection that were processed.
    pub icmp_heeded: u64,
    /// ICMP errors about a connection whose sequence number is not outstanding (RFC 5927 §4.1), or
    /// about none at all.
    pub icmp_ignored: u64,
    /// Path MTUs lowered by "too big" errors of routers.
    pub too_big: u64,
    /// UDP datagrams delivered to sockets.
    pub udp_received: u64,
    /// UDP datagrams dropped because the socket's queue was full.
    pub udp_dropped: u64,
    /// UDP datagrams to unused ports.
    pub udp_unreachable: u64,
}
