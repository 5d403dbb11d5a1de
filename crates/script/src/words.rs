//! Words of the language and their numbers.

use gargalo_units::Ecn;

/// Letters of control bits (RFC 9293 §3.1, RFC 3168, RFC 9768), in the order of printing.
pub(crate) const FLAGS: [(char, u16); 9] = [
    ('F', 0x001),
    ('S', 0x002),
    ('R', 0x004),
    ('P', 0x008),
    ('.', 0x010),
    ('U', 0x020),
    ('E', 0x040),
    ('W', 0x080),
    ('A', 0x100),
];

const ECN: [(&str, Ecn); 4] = [
    ("noecn", Ecn::NotEct),
    ("ect0", Ecn::Ect0),
    ("ect1", Ecn::Ect1),
    ("ce", Ecn::Ce),
];

pub(crate) fn ecn_word(ecn: Ecn) -> &'static str {
    ECN.iter()
        .find(|(_, e)| *e == ecn)
        .map_or("noecn", |(word, _)| word)
}

pub(crate) fn ecn_of(word: &str) -> Option<Ecn> {
    ECN.iter().find(|(w, _)| *w == word).map(|(_, e)| *e)
}

/// Flags of MP_CAPABLE (RFC 8684 §3.1).
pub(crate) const CAPABLE_FLAGS: [(&str, u8); 8] = [
    ("flag_a", 0x80),
    ("flag_b", 0x40),
    ("flag_c", 0x20),
    ("flag_d", 0x10),
    ("flag_e", 0x08),
    ("flag_f", 0x04),
    ("flag_g", 0x02),
    ("flag_h", 0x01),
];

/// Constants of assertions: `enum` of linux/tcp_states.h, `tcp_ca_state`, and bits of `tcpi_options`.
pub(crate) const CONSTANTS: [(&str, i64); 26] = [
    ("TCP_ESTABLISHED", 1),
    ("TCP_SYN_SENT", 2),
    ("TCP_SYN_RECV", 3),
    ("TCP_FIN_WAIT1", 4),
    ("TCP_FIN_WAIT2", 5),
    ("TCP_TIME_WAIT", 6),
    ("TCP_CLOSE", 7),
    ("TCP_CLOSE_WAIT", 8),
    ("TCP_LAST_ACK", 9),
    ("TCP_LISTEN", 10),
    ("TCP_CLOSING", 11),
    ("TCP_CA_Open", 0),
    ("TCP_CA_Disorder", 1),
    ("TCP_CA_CWR", 2),
    ("TCP_CA_Recovery", 3),
    ("TCP_CA_Loss", 4),
    ("TCPI_OPT_TIMESTAMPS", 1),
    ("TCPI_OPT_SACK", 2),
    ("TCPI_OPT_WSCALE", 4),
    ("TCPI_OPT_ECN", 8),
    ("TCPI_OPT_ECN_SEEN", 16),
    ("TCPI_OPT_SYN_DATA", 32),
    ("TCPI_OPT_USEC_TS", 64),
    ("TCPI_OPT_TFO_CHILD", 128),
    ("True", 1),
    ("False", 0),
];
