//! Nobody floods a mailbox, the outbox or the DNS.
