//! The sequences of requests that PostHog's own clients send. `docs/clients.md` names these tests.

mod generated;
mod terraform;
mod toolkit;
