//! A memory budget for data in transfer: large responses until they are sent, and large request bodies until their
//! request is answered. A client and a tenant use at most a quarter of it, all clients without a key at most half.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;

use crate::base::error::{Error, Result};
use crate::fair::fair_queue::{Consumer, client_network};

/// Transfers of at most this many bytes are not counted.
pub const MIN_COUNTED_SIZE: usize = 64 * 1024;

/// The `Retry-After` of a request that exceeds the budget, in seconds.
const RETRY_AFTER: u32 = 1;

/// The payer of a transfer: the client, and with a key also the tenant.
#[derive(Debug, Clone, Copy)]
pub struct Payer {
    /// The address of the client, whose network pays.
    pub client: IpAddr,
    /// The tenant of a request with a key.
    pub tenant: Option<Consumer>,
}

impl Payer {
    /// Returns the accounts of a transfer: all, the client, and the tenant or all clients without a key.
    fn accounts(self) -> Accounts {
        let (network, has_key) = (client_network(self.client), self.tenant.is_some());
        let group = self.tenant.map_or(Account::Keyless, Account::Tenant);
        [Account::Total, Account::Client { network, has_key }, group].map(Some)
    }
}

/// What bytes count against, each within a limit of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Account {
    /// All transfers.
    Total,
    /// All clients without a key.
    Keyless,
    /// A client's network. Requests with and without a key count separately, so that public traffic never uses up the
    /// share of members.
    Client { network: IpAddr, has_key: bool },
    /// A tenant, for requests with a key.
    Tenant(Consumer),
}

impl Account {
    /// Returns the limit in a budget of `total` bytes.
    const fn limit(self, total: usize) -> usize {
        match self {
            Self::Total => total,
            Self::Keyless => total / 2,
            Self::Client { .. } | Self::Tenant(_) => total / 4,
        }
    }
}

/// The accounts that a charge is counted in.
type Accounts = [Option<Account>; 3];

/// The memory budget. Clones share one budget.
#[derive(Clone)]
pub struct MemoryBudget(Arc<Inner>);

struct Inner {
    /// The size of the budget, in bytes.
    total: usize,
    /// The bytes in use. An account with no bytes has no entry.
    used: Mutex<HashMap<Account, usize>>,
    /// The charges of shared buffers in transfer, by buffer address.
    shared_buffers: Mutex<HashMap<usize, Weak<Charge>>>,
}

/// The error for a charge that exceeds the budget or a share of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetExceeded(Account);

impl fmt::Display for BudgetExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Account::Total => "the transfer memory is used up",
            Account::Keyless => "the keyless clients' share of the transfer memory is used up",
            Account::Client { .. } => "a client's share of the transfer memory is used up",
            Account::Tenant(_) => "a tenant's share of the transfer memory is used up",
        })
    }
}

impl From<BudgetExceeded> for Error {
    fn from(over: BudgetExceeded) -> Self {
        Self::overloaded(RETRY_AFTER, over)
    }
}

impl MemoryBudget {
    /// Creates a budget of `total` bytes.
    pub fn new(total: usize) -> Self {
        let (used, shared_buffers) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Inner { total, used, shared_buffers }))
    }

    /// Charges `bytes` for a request or a response.
    ///
    /// # Errors
    /// [`BudgetExceeded`] if the charge exceeds the budget or a share of it. A transfer that is larger than a share
    /// succeeds if it is the only one in that share and takes at most half of the budget.
    pub fn charge(&self, payer: Payer, bytes: usize) -> Result<Charge, BudgetExceeded> {
        self.charge_accounts(payer.accounts(), bytes)
    }

    /// Charges a response of `bytes` that shares `buffer` with other responses. The first charge returned is that of
    /// the client, which pays for the whole response while it holds any part of it. The second counts the buffer once
    /// for all responses, until the last one drops it.
    ///
    /// # Errors
    /// As [`charge`](Self::charge).
    pub fn charge_shared(
        &self,
        payer: Payer,
        bytes: usize,
        buffer: &Bytes,
    ) -> Result<(Charge, Arc<Charge>), BudgetExceeded> {
        let [total, client, group] = payer.accounts();
        let charge = self.charge_accounts([client, None, None], bytes)?;
        let address = buffer.as_ptr().addr();
        let mut buffers = self.0.shared_buffers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = buffers.get(&address).and_then(Weak::upgrade) {
            return Ok((charge, known));
        }
        let counted = Arc::new(self.charge_accounts([total, group, None], buffer.len())?);
        buffers.retain(|_, known| known.strong_count() > 0);
        buffers.insert(address, Arc::downgrade(&counted));
        Ok((charge, counted))
    }

    /// Returns the memory of a request with a body of at most `max_body` bytes. Nothing is charged yet.
    pub fn for_request(&self, payer: Payer, max_body: usize) -> RequestMemory {
        let charge = Charge { budget: self.clone(), accounts: payer.accounts(), bytes: 0 };
        let reserved = Reserved { charge, response_bytes: 0 };
        RequestMemory { max_body, reserved: Arc::new(Mutex::new(reserved)) }
    }

    /// Returns the bytes in use.
    pub fn used(&self) -> usize {
        self.lock().get(&Account::Total).copied().unwrap_or_default()
    }

    fn charge_accounts(&self, accounts: Accounts, bytes: usize) -> Result<Charge, BudgetExceeded> {
        let mut charge = Charge { budget: self.clone(), accounts, bytes: 0 };
        charge.resize(bytes)?;
        Ok(charge)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Account, usize>> {
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counted bytes. Dropping the charge releases them.
pub struct Charge {
    budget: MemoryBudget,
    accounts: Accounts,
    bytes: usize,
}

impl Charge {
    /// Changes the charge to `bytes`.
    ///
    /// # Errors
    /// [`BudgetExceeded`] if that exceeds the budget or a share of it. The charge is then unchanged.
    fn resize(&mut self, bytes: usize) -> Result<(), BudgetExceeded> {
        self.resize_within(bytes, 0)
    }

    /// Changes the charge to `bytes`, unless that exceeds a limit by more than `extra`.
    fn resize_within(&mut self, bytes: usize, extra: usize) -> Result<(), BudgetExceeded> {
        if bytes > self.bytes {
            let mut used = self.budget.lock();
            let total = self.budget.0.total;
            for account in self.accounts.iter().flatten() {
                let others = used.get(account).map_or(0, |used| used - self.bytes);
                let mut limit = account.limit(total);
                if others == 0 {
                    limit = limit.max(total / 2);
                }
                if others.saturating_add(bytes) > limit.saturating_add(extra) {
                    return Err(BudgetExceeded(*account));
                }
            }
            self.count(&mut used, bytes);
            drop(used);
            self.bytes = bytes;
        } else {
            self.resize_unchecked(bytes);
        }
        Ok(())
    }

    /// Changes the charge to `bytes`, even beyond the budget.
    fn resize_unchecked(&mut self, bytes: usize) {
        if bytes != self.bytes {
            self.count(&mut self.budget.lock(), bytes);
            self.bytes = bytes;
        }
    }

    fn count(&self, used: &mut HashMap<Account, usize>, bytes: usize) {
        for account in self.accounts.iter().flatten() {
            match used.entry(*account) {
                Entry::Occupied(mut entry) => {
                    *entry.get_mut() = *entry.get() - self.bytes + bytes;
                    if *entry.get() == 0 {
                        entry.remove();
                    }
                }
                Entry::Vacant(entry) => drop(entry.insert(bytes)),
            }
        }
    }

    /// Moves `bytes`, or all if there are fewer, into a new charge.
    #[must_use]
    pub fn split(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { budget: self.budget.clone(), accounts: self.accounts, bytes }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.resize_unchecked(0);
    }
}

/// The memory of one request: its body, and the response to its write. It is an extension of the request. As an extension of
/// a response, it marks the response to a completed write. Dropping the last clone releases the memory.
#[derive(Clone)]
pub struct RequestMemory {
    max_body: usize,
    reserved: Arc<Mutex<Reserved>>,
}

struct Reserved {
    charge: Charge,
    /// The bytes of the charge that are for the response.
    response_bytes: usize,
}

impl RequestMemory {
    /// Returns the largest body, in bytes.
    pub const fn max_body(&self) -> usize {
        self.max_body
    }

    /// Charges `bytes` for the body and its parsed form. Small bodies are not charged.
    ///
    /// # Errors
    /// 413 if one request may never take that much, 503 if there is no room now.
    pub fn count_body(&self, bytes: usize) -> Result<()> {
        let bytes = if bytes > MIN_COUNTED_SIZE { bytes } else { 0 };
        let mut taken = self.lock();
        let share = taken.charge.budget.0.total / 4;
        if bytes > share {
            return Err(Error::body_needs_too_much_memory(share));
        }
        let bytes = bytes + taken.response_bytes;
        Ok(taken.charge.resize(bytes)?)
    }

    /// Reserves `bytes` for a large response, replacing an earlier reservation.
    ///
    /// # Errors
    /// 503 if there is no room.
    pub fn reserve(&self, bytes: usize) -> Result<()> {
        let mut taken = self.lock();
        let body = taken.charge.bytes - taken.response_bytes;
        taken.charge.resize(body + bytes)?;
        taken.response_bytes = bytes;
        Ok(())
    }

    /// Releases the body's memory, and charges `bytes` for the response to the completed write. A reserved response is
    /// charged even if it has grown. Any other may exceed each limit by an eighth of the budget, because a client that
    /// receives an error would repeat the write.
    ///
    /// # Errors
    /// [`BudgetExceeded`] if a response that was not reserved exceeds a limit by more.
    pub fn into_response(self, bytes: usize) -> Result<Charge, BudgetExceeded> {
        let mut taken = self.lock();
        let reserved = std::mem::take(&mut taken.response_bytes);
        let mut charge = taken.charge.split(reserved);
        taken.charge.resize_unchecked(0);
        if reserved > 0 {
            charge.resize_unchecked(bytes);
        } else {
            let extra = charge.budget.0.total / 8;
            charge.resize_within(bytes, extra)?;
        }
        Ok(charge)
    }

    fn lock(&self) -> MutexGuard<'_, Reserved> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
