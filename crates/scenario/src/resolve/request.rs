//! Requests: sizes, order, and how objects are dealt out to connections.

use gargalo_units::{Bytes, Duration};
use gargalo_workload::distribution::Distribution;
use gargalo_workload::{Objects, Order};

use super::flows::Refuse;
use super::traffic;
use crate::model::{OrderName, Request, SizeSpec};
use crate::resolved::Workload;

/// Most bytes of an object in a frame (RFC 9113 §6.5.2, SETTINGS_MAX_FRAME_SIZE: its initial value), and
/// the most that the option may say.
const FRAME: (u64, u64) = (16_384, 16_777_215);

/// One workload for each connection.
pub(super) fn resolve(r: &Request, refuse: &mut Refuse<'_>) -> Vec<Workload> {
    let all = objects(r, refuse);
    // A million objects of that size still add up to less than 2^63 bytes.
    let most = Bytes::new(1_000_000_000_000);
    if r.request_size.is_some_and(|q| q.0 > most) {
        refuse(
            "request",
            "an object or request of more than 1TB",
            "use workload.bulk",
        );
    }
    let request_size = r.request_size.map_or(Bytes::new(100), |q| q.0);
    if request_size.is_zero() {
        refuse(
            "request.request_size",
            "a request of no bytes",
            "give 1B or more",
        );
    }
    let order = order(r, refuse);
    let count = all.count();
    let connections = r.connections.unwrap_or(1) as usize;
    if connections > count.max(1) {
        let message = format!("{connections} connections for {count} objects");
        refuse(
            "request.connections",
            &message,
            "give at most one for each object",
        );
        return Vec::new();
    }
    let dealt = |c: usize| match &all {
        Objects::Listed(sizes) => {
            Objects::Listed(sizes.iter().copied().skip(c).step_by(connections).collect())
        }
        Objects::Drawn { size, .. } => Objects::Drawn {
            count: (count - c).div_ceil(connections) as u32,
            size: *size,
        },
    };
    (0..connections)
        .map(|c| Workload::Request {
            request_size,
            objects: dealt(c),
            think_time: r.think_time.map_or(Duration::ZERO, |q| q.0),
            order,
        })
        .collect()
}

/// Sizes of all objects.
fn objects(r: &Request, refuse: &mut Refuse<'_>) -> Objects {
    let sizes: Vec<Bytes> = match (&r.sizes, &r.size) {
        (Some(_), Some(_)) => {
            refuse(
                "request.sizes",
                "both size and sizes are given",
                "keep one of them",
            );
            Vec::new()
        }
        (None, None) => {
            refuse(
                "request",
                "neither size nor sizes is given",
                "add `size = \"10kB\"`",
            );
            Vec::new()
        }
        (Some(list), None) => {
            if r.objects.is_some_and(|n| n as usize != list.len()) {
                let message = format!(
                    "objects is {}, but {} sizes are given",
                    r.objects.unwrap_or_default(),
                    list.len()
                );
                refuse("request.objects", &message, "leave objects out");
            }
            list.iter().map(|q| q.0).collect()
        }
        (None, Some(SizeSpec::Fixed(size))) => vec![size.0; r.objects.unwrap_or(1) as usize],
        (None, Some(random)) => {
            let size: Distribution = traffic::size(random, "request.size", refuse);
            let count = r.objects.unwrap_or(1);
            return Objects::Drawn { count, size };
        }
    };
    if sizes.iter().any(|s| s.is_zero()) {
        refuse(
            "request",
            "an object of size zero",
            "give objects of 1B or more",
        );
    }
    if sizes.iter().any(|s| s.get() > 1_000_000_000_000) {
        refuse(
            "request",
            "an object or request of more than 1TB",
            "use workload.bulk",
        );
    }
    Objects::Listed(sizes.into())
}

fn order(r: &Request, refuse: &mut Refuse<'_>) -> Order {
    let name = match (r.order, r.pipelined) {
        (Some(_), Some(_)) => {
            let message = "both order and pipelined are given";
            let help = "keep order: `pipelined = true` means `order = \"pipelined\"`";
            refuse("request.pipelined", message, help);
            OrderName::Sequential
        }
        (Some(name), None) => name,
        (None, Some(true)) => OrderName::Pipelined,
        (None, _) => OrderName::Sequential,
    };
    let thinks = r.think_time.is_some_and(|q| !q.0.is_zero());
    if thinks && r.order.is_some_and(|o| o != OrderName::Sequential) {
        let message = "a think_time, but everything is asked for at once";
        let help = "leave it out, or say order = \"sequential\"";
        refuse("request.think_time", message, help);
    }
    if name != OrderName::Multiplexed && r.frame.is_some() {
        let message = "a frame, but answers do not come in frames";
        let help = "leave it out, or say order = \"multiplexed\"";
        refuse("request.frame", message, help);
    }
    let frame = r.frame.map_or(Bytes::new(FRAME.0), |q| q.0);
    if !(1..=FRAME.1).contains(&frame.get()) {
        let message = format!("a frame of {frame}");
        refuse(
            "request.frame",
            &message,
            "give 1B to 16777215B; 16KiB is usual",
        );
    }
    match name {
        OrderName::Sequential => Order::Sequential,
        OrderName::Pipelined => Order::Pipelined,
        OrderName::Multiplexed => Order::Multiplexed { frame },
    }
}
