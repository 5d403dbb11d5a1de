//! Requests to the kernel over a netlink socket (netlink(7)), one at a time.

use std::fmt::Debug;
use std::io;

use netlink_packet_core::{
    DecodeError, NLM_F_REQUEST, NetlinkDeserializable, NetlinkMessage, NetlinkPayload,
    NetlinkSerializable,
};
use netlink_sys::{Socket, SocketAddr};

/// Longest message that is sent, or expected as a response, in bytes.
const LONGEST: usize = 8192;

/// A netlink socket, in the namespace of the thread that opened it.
pub struct Channel {
    socket: Socket,
    sequence: u32,
}

impl Channel {
    /// Opens it for a protocol, such as `NETLINK_ROUTE`.
    ///
    /// # Errors
    /// When the system does not have it.
    pub fn open(protocol: isize) -> io::Result<Self> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        let sequence = 0;
        Ok(Self { socket, sequence })
    }

    /// Sends a request and waits for its response; `None` if that is only an acknowledgement, which the flag
    /// `NLM_F_ACK` requests.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn ask<M>(&mut self, request: M, flags: u16) -> io::Result<Option<M>>
    where
        M: NetlinkSerializable
            + NetlinkDeserializable<Error = DecodeError>
            + Into<NetlinkPayload<M>>
            + Debug,
    {
        self.sequence += 1;
        let mut message = NetlinkMessage::from(request);
        message.header.flags = NLM_F_REQUEST | flags;
        message.header.sequence_number = self.sequence;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let mut answer = Vec::with_capacity(LONGEST);
        loop {
            answer.clear();
            self.socket.recv(&mut answer, 0)?;
            let reply = NetlinkMessage::<M>::deserialize(&answer)
                .map_err(|e| io::Error::other(e.to_string()))?;
            if reply.header.sequence_number != self.sequence {
                continue;
            }
            match reply.payload {
                NetlinkPayload::Error(e) if e.code.is_none() => return Ok(None),
                NetlinkPayload::Error(e) => return Err(e.to_io()),
                NetlinkPayload::InnerMessage(m) => return Ok(Some(m)),
                _ => {}
            }
        }
    }
}
