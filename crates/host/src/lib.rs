//! A sans-IO IP host: many TCP connections, UDP sockets and ICMP behind one [`Host`] value; datagrams
//! go in as bytes and come out as bytes.
#![forbid(unsafe_code)]
