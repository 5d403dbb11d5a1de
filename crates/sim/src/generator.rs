//! Sources of flows in virtual time: they are woken by events, and their flows start at once.

use gargalo_flow::{GeneratorSpec, NewFlow, Next, Source};
use gargalo_workload::Workload;

use crate::BuildError;
use crate::event::Target;
use crate::world::World;
use gargalo_flow::rng;

impl World {
    /// Adds a source of flows; its group must have been added.
    ///
    /// # Errors
    /// When hosts are not connected or the congestion control cannot be built.
    pub fn add_generator(&mut self, spec: GeneratorSpec) -> Result<(), BuildError> {
        for &(from, to) in &spec.pairs {
            self.ensure_routes((from, to, spec.path))?;
        }
        let label = spec.label.to_string();
        let made = Source::new(spec, self.settings.seed, self.settings.end);
        let (source, offer) = made.map_err(|transfers| BuildError::TooManyTransfers {
            source_label: label.clone(),
            transfers,
        })?;
        let spec = source.spec();
        let Some(group) = self.groups.get_mut(spec.group as usize) else {
            return Err(BuildError::NoGroup(label));
        };
        group.offer = offer;
        self.next_generated = self.next_generated.max(spec.id + 1);
        if let Some(&(from, to)) = spec.pairs.first() {
            let probe = spec.flow(from, to, Workload::default());
            let mut check = rng::stream(self.settings.seed, "check");
            self.controller(&probe, &spec.transport, &mut check)?;
        }
        self.generators.push(source);
        Ok(())
    }

    /// Puts the first wake-ups of all sources into the queue.
    pub(crate) fn arm_generators(&mut self, first: Target) {
        for (i, source) in self.generators.iter().enumerate() {
            if let Some(at) = source.next_transfer() {
                self.net.queue.push(at, first + i as u32);
            }
        }
    }

    /// Handles the event of source `i`: a transfer or embedded objects are due.
    pub(crate) fn on_generator(&mut self, i: u32, target: Target) -> Result<(), BuildError> {
        let now = self.now;
        while let Some(flows) = self
            .generators
            .get_mut(i as usize)
            .and_then(|s| s.parsed(now))
        {
            self.start_flows(i, flows)?;
        }
        let Some(source) = self.generators.get_mut(i as usize) else {
            return Ok(());
        };
        // One transfer per event: others at the same instant have their own events.
        if source.next_transfer().is_none_or(|at| at > now) {
            return Ok(());
        }
        let group = &mut self.groups[source.spec().group as usize];
        let flow = source.transfer(now, group);
        if let Some(at) = source.next_transfer() {
            self.net.queue.push(at.max(now), target);
        }
        self.start_flows(i, flow)
    }

    fn start_flows(
        &mut self,
        i: u32,
        flows: impl IntoIterator<Item = NewFlow>,
    ) -> Result<(), BuildError> {
        for flow in flows {
            let id = self.next_generated;
            self.next_generated += 1;
            let parent = flow.page.map(|page| (i, page));
            self.start_flow(flow.spec, id, &flow.stream, parent)?;
        }
        Ok(())
    }

    /// Continues the pages whose flows have completed since the last event.
    pub(crate) fn go_on_with_pages(&mut self) -> Result<(), BuildError> {
        while let Some((i, page)) = self.finished.pop() {
            let first_generator = self.first_generator();
            let Some(source) = self.generators.get_mut(i as usize) else {
                continue;
            };
            let group = &mut self.groups[source.spec().group as usize];
            match source.completed(self.now, page, group) {
                Next::ParsedAt(at) => self.net.queue.push(at, first_generator + i),
                Next::Flows(flows) => self.start_flows(i, flows)?,
            }
        }
        Ok(())
    }
}
