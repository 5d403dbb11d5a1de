//! What the kernel tells about a Multipath TCP connection and its subflows (`SOL_MPTCP`, linux/mptcp.h).

use std::collections::BTreeMap;
use std::mem::size_of;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use gargalo_sim::{Counts, Edge, Marks, SubflowResult, SubflowSample};
use gargalo_trace::Quantiles;
use gargalo_units::{Bytes, Instant};
use nix::libc;
use socket2::SockAddrStorage;

use super::info::TcpInfo;
use crate::multipath::{MultipathReport, SubflowReport};
use crate::traffic::{Flow, Recorder, Totals};

const SOL_MPTCP: libc::c_int = 284;
const MPTCP_INFO: libc::c_int = 1;
const MPTCP_TCPINFO: libc::c_int = 2;
const MPTCP_SUBFLOW_ADDRS: libc::c_int = 3;
/// `struct mptcp_subflow_data`: sizes and a count.
const DATA: usize = 16;
/// Most subflows asked for; the kernel has at most 9.
const MOST: usize = 16;
/// Offset of `mptcpi_flags` in `struct mptcp_info`.
const FLAGS: usize = 8;
/// `MPTCP_INFO_FLAG_FALLBACK`.
const FALLBACK: u32 = 1;

/// Asks for an option; how much of `buffer` was filled, `None` if the kernel refuses.
fn ask(socket: BorrowedFd<'_>, option: libc::c_int, buffer: &mut [u8]) -> Option<usize> {
    let mut length = buffer.len() as libc::socklen_t;
    // SAFETY: pointer and length are those of `buffer`.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            SOL_MPTCP,
            option,
            buffer.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    (done == 0).then_some((length as usize).min(buffer.len()))
}

/// Asks for something of `size` bytes about each subflow.
fn of_subflows(socket: BorrowedFd<'_>, option: libc::c_int, size: usize) -> Vec<Vec<u8>> {
    let mut buffer = vec![0; DATA + MOST * size];
    buffer[..4].copy_from_slice(&(DATA as u32).to_ne_bytes());
    buffer[12..16].copy_from_slice(&(size as u32).to_ne_bytes());
    let Some(filled) = ask(socket, option, &mut buffer) else {
        return Vec::new();
    };
    let word = |at: usize| {
        buffer[at..]
            .first_chunk()
            .map_or(0, |b| u32::from_ne_bytes(*b))
    };
    let count = (word(4) as usize)
        .min(MOST)
        .min(filled.saturating_sub(DATA) / size);
    buffer[DATA..]
        .chunks(size)
        .take(count)
        .map(<[u8]>::to_vec)
        .collect()
}

/// `TCP_INFO` of every subflow.
pub(super) fn infos(socket: BorrowedFd<'_>) -> Vec<TcpInfo> {
    let all = of_subflows(socket, MPTCP_TCPINFO, size_of::<libc::tcp_info>());
    all.iter().map(|bytes| TcpInfo::from_bytes(bytes)).collect()
}

/// Local and remote address of every subflow.
fn addresses(socket: BorrowedFd<'_>) -> Vec<(SocketAddr, SocketAddr)> {
    const ONE: usize = size_of::<libc::sockaddr_storage>();
    let all = of_subflows(socket, MPTCP_SUBFLOW_ADDRS, 2 * ONE);
    let both = all
        .iter()
        .filter_map(|b| Some((address(&b[..ONE])?, address(&b[ONE..])?)));
    both.collect()
}

fn address(bytes: &[u8]) -> Option<SocketAddr> {
    let mut storage = SockAddrStorage::zeroed();
    let size = storage.size_of() as usize;
    if bytes.len() < size {
        return None;
    }
    // SAFETY: a sockaddr_storage is plain bytes, and `bytes` has as many.
    unsafe {
        let to: *mut libc::sockaddr_storage = storage.view_as();
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), size);
        socket2::SockAddr::new(storage, size as libc::socklen_t)
    }
    .as_socket()
}

/// Addresses of every subflow, and what the kernel knows of it.
fn subflows(socket: BorrowedFd<'_>) -> impl Iterator<Item = ((SocketAddr, SocketAddr), TcpInfo)> {
    addresses(socket).into_iter().zip(infos(socket))
}

/// What became of a connection.
pub(super) fn report(
    flow: &Flow,
    side: usize,
    socket: BorrowedFd<'_>,
    recorder: &Recorder,
    marked: &Marked,
) -> MultipathReport {
    let mut info = [0; 128];
    let known = ask(socket, MPTCP_INFO, &mut info);
    let flags = info[FLAGS..]
        .first_chunk()
        .map_or(0, |b| u32::from_ne_bytes(*b));
    let one = |(id, ((local, remote), i)): (usize, ((SocketAddr, SocketAddr), TcpInfo))| {
        let (link, reverse_link) = recorder.links_of(local, remote);
        let totals = i.totals();
        let mut rtt = Quantiles::default();
        i.srtt().into_iter().for_each(|t| rtt.record(t));
        SubflowReport {
            local,
            remote,
            received_bytes: i.received_bytes(),
            result: SubflowResult {
                id: id as u32,
                link,
                reverse_link,
                gateway: None,
                opened: flow.spec.start,
                closed: None,
                backup: false,
                delivered: Bytes::new(i.acknowledged_bytes()),
                stats: gargalo_tcp::Stats {
                    sent_packets: totals.sent_packets,
                    sent_bytes: totals.sent_bytes,
                    retransmitted_packets: totals.retransmitted_packets,
                    lost_packets: totals.lost_packets,
                    ce_marks: i.ce_marks(),
                    ..gargalo_tcp::Stats::default()
                },
                rtt,
                marks: marked.get(&(local, remote)).cloned().unwrap_or_default(),
                inside: Counts::default(),
            },
        }
    };
    MultipathReport {
        flow: flow.spec.id,
        side,
        // Of a connection that was accepted as TCP it knows nothing.
        fell_back: known.is_none() || flags & FALLBACK != 0,
        subflows: subflows(socket).enumerate().map(one).collect(),
        stats: None,
        out_of_order_max: 0,
    }
}

/// Marks of subflows by their addresses, at the edges of the measured window.
pub(super) type Marked = BTreeMap<(SocketAddr, SocketAddr), Marks>;

/// An edge of the measured window passes.
pub(super) fn mark(
    flow: &Flow,
    socket: BorrowedFd<'_>,
    recorder: &Recorder,
    edge: Edge,
    marked: &mut Marked,
) {
    for mut s in report(flow, flow.sender(), socket, recorder, marked).subflows {
        s.result.mark(edge);
        marked.insert((s.local, s.remote), s.result.marks);
    }
}

/// Rows of the samples of subflows.
pub(super) fn samples(
    time: Instant,
    flow: u64,
    socket: BorrowedFd<'_>,
    recorder: &Recorder,
) -> Vec<SubflowSample> {
    let one = |(id, ((local, remote), i)): (usize, ((SocketAddr, SocketAddr), TcpInfo))| {
        let s = i.sample(time, flow, Bytes::ZERO);
        SubflowSample {
            time,
            flow,
            subflow: id as u32,
            link: recorder.links_of(local, remote).0,
            cwnd: s.cwnd,
            ssthresh: s.ssthresh,
            in_flight: s.in_flight,
            srtt: s.srtt,
            delivery_rate: s.delivery_rate,
            sent: Bytes::new(i.totals().sent_bytes),
            delivered: Bytes::new(i.acknowledged_bytes()),
            phase: s.phase,
        }
    };
    subflows(socket).enumerate().map(one).collect()
}

/// Counters of two subflows together.
pub(super) fn add(a: Totals, b: Totals) -> Totals {
    Totals {
        sent_packets: a.sent_packets + b.sent_packets,
        sent_bytes: a.sent_bytes + b.sent_bytes,
        retransmitted_packets: a.retransmitted_packets + b.retransmitted_packets,
        lost_packets: a.lost_packets + b.lost_packets,
        timeouts: a.timeouts + b.timeouts,
        spurious: a.spurious + b.spurious,
    }
}
