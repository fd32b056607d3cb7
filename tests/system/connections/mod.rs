//! Connections to the real binary, with and without TLS.

mod tls;
mod transport;
