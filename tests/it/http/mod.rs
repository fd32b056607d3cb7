//! What all routes share.

mod browsers;
mod deep_pages;
mod encoded;
mod errors;
mod etags;
mod filters;
mod fuzzed;
mod missing;
mod numbers;
mod order;
mod paging;
mod rate_limits;
mod round_trips;
mod values;
