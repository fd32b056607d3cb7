//! A span of the queue: the backlogs of its consumers, and the turns in which the writer takes from them.

use std::collections::{HashMap, VecDeque};

use crate::fair_queue::Consumer;

use super::super::queued::QueuedWrite;
use super::super::task::Task;

/// Identifies a backlog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Lane {
    /// `None` for writes of the service itself and of its operator. Only [`MAX_QUEUED`](super::MAX_QUEUED) limits their number.
    pub(super) consumer: Option<Consumer>,
    /// Whether the backlog holds the writes that are known to be large.
    pub(super) is_large: bool,
}

/// Writes, and the task that runs after all of them.
#[derive(Default)]
pub(super) struct Span {
    pub(super) backlogs: HashMap<Lane, VecDeque<Box<dyn QueuedWrite>>>,
    /// The lanes with a backlog, in the order of their turns.
    pub(super) turns: VecDeque<Lane>,
    pub(super) then: Option<Task>,
}

impl Span {
    pub(super) fn push(&mut self, lane: Lane, write: Box<dyn QueuedWrite>) {
        let backlog = self.backlogs.entry(lane).or_default();
        if backlog.is_empty() {
            self.turns.push_back(lane);
        }
        backlog.push_back(write);
    }

    /// Removes and returns the newest write of `consumer`. Prefers writes that are not known to be large.
    pub(super) fn pop_newest(
        &mut self,
        consumer: Option<Consumer>,
    ) -> Option<Box<dyn QueuedWrite>> {
        let lanes = [false, true].map(|is_large| Lane { consumer, is_large });
        let lane = lanes.into_iter().find(|lane| self.backlogs.contains_key(lane))?;
        let backlog = self.backlogs.get_mut(&lane)?;
        let newest = backlog.pop_back();
        if backlog.is_empty() {
            self.backlogs.remove(&lane);
            self.turns.retain(|turn| *turn != lane);
        }
        newest
    }

    /// Removes and returns the next write of the lane at position `at` of the turns.
    pub(super) fn pop(&mut self, at: usize) -> Option<(Option<Consumer>, Box<dyn QueuedWrite>)> {
        let lane = self.turns.remove(at)?;
        let backlog = self.backlogs.get_mut(&lane)?;
        let write = backlog.pop_front()?;
        if backlog.is_empty() {
            self.backlogs.remove(&lane);
        } else {
            self.turns.push_back(lane);
        }
        Some((lane.consumer, write))
    }
}
