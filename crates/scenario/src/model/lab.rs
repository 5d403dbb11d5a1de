//! What only the lab has: hosts with the kernel's stack, programs on them, and how it keeps time.

use std::collections::BTreeMap;

use gargalo_settings::{names, settings};
use gargalo_units::Duration;

settings! {
    /// A host, or with `*` at the end of the name several.
    pub struct Host as "Host" {
        /// Whose TCP/IP it has. The kernel's is there only in the lab; the simulator then refuses the
        /// scenario. Default: that of `lab.stack`.
        stack: Option<StackName> = None;
        /// Congestion control of the kernel for programs that do not choose one. Default: the system's.
        congestion: Option<String> = None;
        /// Settings of the host's network namespace, like `{ "net.ipv4.tcp_ecn" = "1" }`.
        sysctl: BTreeMap<String, String> = BTreeMap::new();
    }
}

names! {
    /// A TCP/IP stack.
    pub enum StackName {
        /// Gargalo's own, in the process of the run.
        Gargalo = "gargalo",
        /// That of the Linux kernel, in a network namespace of its own.
        Kernel = "kernel",
    }
}

settings! {
    /// A program that runs on a host with the kernel's stack. It finds other hosts by their names.
    pub struct Command as "Command" {
        /// Where it runs.
        host: String;
        /// A line for `/bin/sh`.
        run: String;
        /// When it starts.
        start: Duration = Duration::ZERO;
        /// The run does not wait for it, and ends it (a server).
        background: bool = false;
    }
}

settings! {
    /// How the lab works; without effect in the simulator.
    pub struct Lab: Copy as "Lab" {
        /// The stack of hosts that do not say.
        stack: StackName = StackName::Gargalo;
        /// Do not sleep when the next event is nearer than this: more exact, and takes a processor.
        busy_poll: Duration = Duration::ZERO;
        /// Run the network on this processor only.
        cpu: Option<u32> = None;
        /// Let hosts hand over many segments at once, as to a network card that segments.
        offload: bool = true;
    }
}
