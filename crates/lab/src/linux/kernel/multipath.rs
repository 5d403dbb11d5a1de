//! The kernel's information about a Multipath TCP connection and its current subflows (`SOL_MPTCP`, linux/mptcp.h).

use std::mem::size_of;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::libc;
use socket2::SockAddrStorage;

use super::info::TcpInfo;

const SOL_MPTCP: libc::c_int = 284;
const MPTCP_INFO: libc::c_int = 1;
const MPTCP_TCPINFO: libc::c_int = 2;
const MPTCP_SUBFLOW_ADDRS: libc::c_int = 3;
/// `struct mptcp_subflow_data`: sizes and a count.
const DATA: usize = 16;
/// Most subflows requested; the kernel has at most 9.
const MOST: usize = 16;
/// Offset of `mptcpi_flags` in `struct mptcp_info`.
const FLAGS: usize = 8;
/// Bit `MPTCP_INFO_FLAG_FALLBACK` of the flags: the connection has fallen back to TCP.
const FALLBACK: u32 = 1;

/// Reads a socket option; returns how much of `buffer` was filled, `None` if the kernel refuses.
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

/// Reads an option with a record of `size` bytes for each subflow.
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

/// Returns the `TCP_INFO` of every subflow.
fn infos(socket: BorrowedFd<'_>) -> Vec<TcpInfo> {
    let all = of_subflows(socket, MPTCP_TCPINFO, size_of::<libc::tcp_info>());
    all.iter().map(|bytes| TcpInfo::from_bytes(bytes)).collect()
}

/// Returns the local and remote address of every subflow.
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

/// The addresses of every subflow, with its `TCP_INFO`.
pub(super) fn subflows(
    socket: BorrowedFd<'_>,
) -> impl Iterator<Item = ((SocketAddr, SocketAddr), TcpInfo)> {
    addresses(socket).into_iter().zip(infos(socket))
}

/// Whether the connection is plain TCP. The kernel has no such information about one that was accepted as TCP.
pub(super) fn has_fallen_back(socket: BorrowedFd<'_>) -> bool {
    let mut info = [0; 128];
    let known = ask(socket, MPTCP_INFO, &mut info);
    let flags = info[FLAGS..].first_chunk();
    known.is_none() || flags.is_some_and(|b| u32::from_ne_bytes(*b) & FALLBACK != 0)
}
