//! Fair shares of what is scarce: queues, budgets of memory, and threads for long work.

pub mod fair_queue;
pub mod low_priority;
pub mod memory_budget;
