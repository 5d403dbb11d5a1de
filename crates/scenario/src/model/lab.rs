//! What only the lab has: hosts with the kernel's stack, programs on them, and how it keeps time.

use std::collections::BTreeMap;

use gargalo_units::Duration;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::quantity::Quantity;

/// A host, or with `*` at the end of the name several.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Whose TCP/IP it has. The kernel's is there only in the lab; the simulator then refuses the
    /// scenario. Default: that of `lab.stack`.
    pub stack: Option<StackName>,
    /// Congestion control of the kernel for programs that do not choose one. Default: the system's.
    pub congestion: Option<String>,
    /// Settings of the host's network namespace, like `{ "net.ipv4.tcp_ecn" = "1" }`.
    pub sysctl: Option<BTreeMap<String, String>>,
}

/// A TCP/IP stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum StackName {
    /// Gargalo's own, in the process of the run.
    #[default]
    Gargalo,
    /// That of the Linux kernel, in a network namespace of its own.
    Kernel,
}

/// A program that runs on a host with the kernel's stack. It finds other hosts by their names.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// Where it runs.
    pub host: String,
    /// A line for `/bin/sh`.
    pub run: String,
    /// When it starts.
    #[schemars(extend("default" = "0s"))]
    pub start: Option<Quantity<Duration>>,
    /// The run does not wait for it, and ends it (a server).
    #[schemars(extend("default" = false))]
    pub background: Option<bool>,
}

/// How the lab works; without effect in the simulator.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lab {
    /// The stack of hosts that do not say.
    #[schemars(extend("default" = "gargalo"))]
    pub stack: Option<StackName>,
    /// Do not sleep when the next event is nearer than this: more exact, and takes a processor.
    #[schemars(extend("default" = "0s"))]
    pub busy_poll: Option<Quantity<Duration>>,
    /// Run the network on this processor only.
    pub cpu: Option<u32>,
    /// Let hosts hand over many segments at once, as to a network card that segments.
    #[schemars(extend("default" = true))]
    pub offload: Option<bool>,
}
